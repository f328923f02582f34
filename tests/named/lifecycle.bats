#!/usr/bin/env bats
# The life of named sandboxes: the state changes, and what each keeps.
load helpers

@test "a sandbox is created, started, stopped, started again and removed" {
	for image in host bb; do
		ak create otter --image "$image"
		is_state otter created
		ak start otter
		is_state otter running
		run ak exec otter sh -c 'echo inside; hostname'
		says "inside
otter"
		ak stop otter
		is_state otter stopped
		ak start otter
		is_state otter running
		ak stop otter
		ak remove otter
		[ -z "$(state otter)" ]
		[ ! -e "$STATE/sandboxes/otter" ]
	done
}

@test "every move that a state does not allow is refused, and says what to do first" {
	ak create moves
	for act in stop pause resume; do
		run ak "$act" moves
		fails_with 125 "sandbox 'moves' is created, so it cannot $act (start it first)"
	done
	ak start moves
	run ak start moves
	fails_with 125 "sandbox 'moves' is running, so it cannot start (stop it first)"
	run ak resume moves
	fails_with 125 "sandbox 'moves' is running, so it cannot resume"
	run ak remove moves
	fails_with 125 "sandbox 'moves' is running, so it cannot be removed (add -f, or stop it first)"
	ak pause moves
	is_state moves paused
	for act in start pause; do
		run ak "$act" moves
		fails_with 125 "sandbox 'moves' is paused, so it cannot $act (resume it first)"
	done
	ak stop moves
	for act in stop pause resume; do
		run ak "$act" moves
		fails_with 125 "sandbox 'moves' is stopped, so it cannot $act (start it first)"
	done
	is_state moves stopped
}

@test "restart starts a stopped one and renews a running one" {
	ak create again
	ak restart again
	first=$(supervisor again)
	ak exec -d again sleep 100
	ak restart again
	is_state again running
	[ "$(supervisor again)" != "$first" ]
	run ak exec again sh -c 'ls -d /proc/[0-9]* | wc -l'
	[ "$output" -le 4 ]
}

# bats test_tags=once
@test "several names are done one by one, and one that fails does not stop the others" {
	ak create several-1
	ak create several-3
	run ak start several-1 several-2 several-3
	[ "$status" -eq 125 ]
	[[ "$output" == "agentkernel: no sandbox named 'several-2' "* ]]
	is_state several-1 running
	is_state several-3 running
	run ak remove -f several-1 several-2 several-3
	[ "$status" -eq 0 ]
}

@test "a name that is taken stays its owner's" {
	ak create taken --label first=yes
	id=$(ak info taken | grep '^id ')
	run ak create taken
	fails_with 125 "there is a sandbox 'taken' already ('agentkernel remove taken' removes it)"
	run ak create taken --image bb
	fails_with 125 "there is a sandbox 'taken' already"
	[ "$(ak info taken | grep '^id ')" = "$id" ]
	[ -z "$(find "$STATE/sandboxes/.making" -mindepth 1)" ]
}

@test "of many creations of one name at once just one succeeds" {
	as bash -c "for i in \$(seq 20); do $AK create race 2>/dev/null && echo made >>$W/made & done; wait"
	[ "$(wc -l <"$W/made")" -eq 1 ]
	[ -z "$(find "$STATE/sandboxes/.making" -mindepth 1)" ]
}

# bats test_tags=once
@test "names that are none are refused before anything is made" {
	before=$(ls -A "$STATE/sandboxes" 2>/dev/null)
	for name in A -a a- .a a. _a a_ a/b ../a a..b/ "a b" ä "$(printf 'x%.0s' $(seq 64))" "" . .. $'a\nb' "a;b" .making; do
		run ak create -- "$name"
		[ "$status" -eq 125 ]
		[[ "$output" == *"invalid sandbox name"* || "$output" == *"missing argument"* ]] || { echo "$name: $output"; false; }
		run ak remove -f -- "$name"
		[ "$status" -eq 125 ] || { echo "remove '$name': $status $output"; false; }
	done
	[ "$(ls -A "$STATE/sandboxes" 2>/dev/null)" = "$before" ]
	for name in a 0 a..b a_b-c.d "$(printf 'x%.0s' $(seq 63))"; do
		ak create -- "$name"
		ak remove -- "$name"
	done
}

# bats test_tags=once
@test "commands to one that is not there say so" {
	for words in "start nosuch" "stop nosuch" "restart nosuch" "pause nosuch" "resume nosuch" "remove nosuch" \
		"info nosuch" "exec nosuch true" "ps nosuch" "logs nosuch" "kill nosuch 12345678" "fork nosuch other" \
		"checkpoint create nosuch" "update nosuch --memory 1G"; do
		# shellcheck disable=SC2086
		run ak $words
		fails_with 125 "no sandbox named 'nosuch' (see agentkernel list --all)"
	done
	ak remove -f nosuch # already in the requested state
	[ ! -e "$STATE/sandboxes/nosuch" ]
}

# bats test_tags=once
@test "each command works with and without the word sandbox" {
	ak sandbox create words
	for act in start pause resume restart stop remove; do
		ak sandbox "$act" words
	done
	ak create words
	for act in start pause resume restart stop; do
		ak "$act" words
	done
	ak info words >"$W/short"
	ak sandbox info words >"$W/long"
	cmp "$W/short" "$W/long"
	[ "$(ak list -aq)" = "$(ak sandbox list -aq)" ]
	[ "$(ak gc)" = "$(ak sandbox gc)" ]
	ak update words --memory 1G
	ak sandbox update words --memory 1G
	ak fork words words2
	ak sandbox fork words words3
}

# bats test_tags=once
@test "list shows what runs, or all, or those with a label" {
	started labels-1 --label project=web --label tier=front
	ak create labels-2 --label project=web
	run ak list --quiet --label project=web
	says labels-1
	run ak list --all --quiet --label project=web
	says "labels-1
labels-2"
	run ak list --all --quiet --label project=web --label tier=front
	says labels-1
	run ak list --all --quiet --label project=we
	says ""
	run ak list --label project=web
	[[ "${lines[1]}" =~ ^labels-1\ +running\ +host\ .*project=web,tier=front$ ]]
	for label in novalue =x; do
		run ak create labels-3 --label "$label"
		fails_with 125 "invalid label '$label'"
	done
	[ -z "$(state labels-3)" ]
}

# bats test_tags=once
@test "what --json prints can be read by a machine" {
	started json --label "a=\"quoted\"" --ttl 1h
	ak exec -d json sh -c 'echo "\"quoted\""'
	ak checkpoint create json --comment $'two\nlines "quoted"' >/dev/null
	for words in "list --json" "list --all --json" "info json --json" "ps json --json" "gc --json" \
		"gc --dry-run --json" "checkpoint list --json" "exec --json json true" "create json2 --json"; do
		# shellcheck disable=SC2086
		run ak $words
		python3 -c 'import json, sys; json.loads(sys.argv[1])' "$output" || { echo "$words: $output"; false; }
	done
	ak info json --json | python3 -c 'import json, sys, time
o = json.load(sys.stdin)
assert o["labels"] == ["a=\"quoted\""] and o["state"] == "running" and o["image"] == "host", o
assert 3500 < o["expires"] - time.time() <= 3600, o
assert o["policy"]["profile"] == "moderate", o'
}

@test "two removals at once, and ten, remove it once and all are content" {
	for round in 1 2 3; do
		started twice
		as bash -c "for i in \$(seq 10); do $AK remove -f twice || echo \$? & done; wait" >"$W/out" 2>&1
		[ ! -s "$W/out" ] || { cat "$W/out"; false; }
		[ ! -e "$STATE/sandboxes/twice" ]
		[ -z "$(find "$STATE/sandboxes/.trash" -mindepth 1)" ]
	done
}

# bats test_tags=once
@test "a start or removal that meets another start does not wait for its lock" {
	# a process that has the lock but has not reported yet that it is running
	ak create meets
	ak start meets
	cp "$STATE/sandboxes/meets/run" "$W/run"
	chmod 644 "$W/run"
	ak stop meets
	for words in "start meets" "remove meets"; do
		run as python3 - "$AK" "$STATE/sandboxes/meets" "$W/run" $words <<-'PY'
		import fcntl, os, struct, subprocess, sys, time
		ak, sandbox, run = sys.argv[1:4]
		lock = os.open(sandbox + "/lock", os.O_RDWR)
		fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0)) # F_OFD_SETLK
		begin = time.time()
		waiting = subprocess.Popen([ak] + sys.argv[4:], stderr=subprocess.PIPE, text=True)
		time.sleep(0.3)
		old = open(sandbox + "/run").read()
		open(sandbox + "/new", "w").write(open(run).read())
		os.rename(sandbox + "/new", sandbox + "/run")
		print(waiting.wait(), "is running, so it cannot" in waiting.stderr.read(), time.time() - begin < 3)
		open(sandbox + "/run", "w").write(old)
		PY
		says "125 True True"
	done
}

@test "a removal that waited for another never takes a new one of the same name" {
	# the first died between the move to the trash and the sweep; the second waited for its lock
	ak create heir
	run as python3 - "$AK" "$STATE/sandboxes" <<-'PY'
	import fcntl, os, struct, subprocess, sys, time
	ak, all = sys.argv[1:]
	lock = os.open(all + "/heir/lock", os.O_RDWR)
	fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0)) # F_OFD_SETLK
	waiting = subprocess.Popen([ak, "remove", "heir"], stderr=subprocess.PIPE, text=True)
	time.sleep(0.3)
	os.makedirs(all + "/.trash", exist_ok=True)
	os.rename(all + "/heir", all + "/.trash/0123456789abcdef")
	subprocess.run([ak, "create", "heir", "--label", "the=new"], check=True)
	os.close(lock)
	print(waiting.wait(), os.path.exists(all + "/heir"))
	PY
	[[ "$output" == *" True" ]] || { echo "$output"; false; }
	run ak list -a -q --label the=new
	says heir
	ak gc >/dev/null
}

@test "one with a time to live removes itself when it is over, while it runs" {
	started brief --ttl 3s
	ak exec -d brief sleep 100
	pid=$(supervisor brief)
	gone_now() { [ ! -e "$STATE/sandboxes/brief" ] && [ ! -e "/proc/$pid/exe" ]; }
	until_true gone_now
	run ak audit --sandbox brief --type remove
	[[ "$output" == *expired* ]]
}

# bats test_tags=once
@test "one that has expired does not start, and gc removes it" {
	ak create late --ttl 1s
	ak create late-2 --ttl 1s
	sleep 2.1
	run ak start late-2
	fails_with 125 "sandbox 'late-2' has expired (--ttl)"
	run ak gc --dry-run
	[[ "${lines[0]}" == *": "[1-9]* ]]
	[ -e "$STATE/sandboxes/late" ]
	run ak gc
	[[ "${lines[0]}" == *": "[1-9]* ]]
	[ ! -e "$STATE/sandboxes/late" ]
	for ttl in 0s 10ms 99999d soon -1s; do
		run ak create late --ttl "$ttl"
		[ "$status" -eq 125 ]
		[[ "$output" == *--ttl* ]]
	done
}

@test "stop asks first, waits, and then ends what does not listen" {
	started deaf --mount "$PROBE:/probe:ro"
	ak exec -d deaf /probe ignore-signals 100
	ak exec -d deaf sh -c 'trap "echo asked >/tmp/asked; exit" TERM; while :; do sleep 0.05; done'
	sleep 0.2
	start=$(date +%s%N)
	ak stop --timeout 500ms deaf
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$took" -ge 450 ]
	[ "$took" -lt 5000 ]
	ak start deaf
	run ak exec deaf cat /tmp/asked
	says asked
}

@test "pause stops every process where it is, resume lets it go on" {
	started still
	ak exec -d still sh -c 'i=0; while :; do i=$((i+1)); echo $i >/tmp/count; done'
	sleep 0.1
	ak pause still
	upper=$STATE/sandboxes/still/disk.0/upper/tmp/count
	first=$(stat -c %z "$upper") # its content is empty most of the time
	sleep 0.3
	[ "$(stat -c %z "$upper")" = "$first" ]
	run ak exec still true
	fails_with 125 "sandbox 'still' is paused ('agentkernel resume still')"
	ak ps still | grep -q running # queries still work
	ak resume still
	changed() { [ "$(stat -c %z "$upper")" != "$first" ]; }
	until_true changed
	ak exec still true
}

@test "a restrictive sandbox is restrictive at every start, whatever the caller says later" {
	started narrow -p restrictive
	for round in 1 2; do
		run ak exec narrow sh -c 'id -u; grep CapBnd /proc/self/status'
		says "1000
CapBnd:	0000000000000000"
		run ak exec -u 0 narrow true
		fails_with 125 "the restrictive profile has no root inside"
		run ak exec -u root narrow true
		[ "$status" -eq 125 ]
		AGENTKERNEL_PROFILE=permissive as "$AK" restart narrow
	done
}

@test "each has a host name, machine id and id of its own, and keeps them" {
	started one-1
	started one-2
	first=$(ak exec one-1 cat /etc/machine-id /etc/hostname)
	second=$(ak exec one-2 cat /etc/machine-id /etc/hostname)
	[ "$first" != "$second" ]
	[[ "$first" =~ ^[0-9a-f]{32}$'\n'one-1$ ]]
	ak restart one-1
	[ "$(ak exec one-1 cat /etc/machine-id /etc/hostname)" = "$first" ]
}

@test "what is left of create, start, stop and remove is nothing" {
	for image in host bb; do
		started tidy --image "$image"
		ak exec tidy true
		mapfile -t groups < <(groups_of tidy)
		[ "${AS:-root}" != root ] || [ "${#groups[@]}" -gt 0 ]
		ak stop tidy
		gone "${groups[@]}" "$STATE/sandboxes/tidy/control.sock"
		ak remove tidy
	done
	names=$(ak list -a -q)
	# shellcheck disable=SC2086
	[ -z "$names" ] || ak remove -f $names
	for checkpoint in $(ak checkpoint list --json | grep -o '"id":"[^"]*"' | cut -d'"' -f4); do
		ak checkpoint remove "$checkpoint"
	done
	left=$(leftovers)
	[ -z "$left" ] || { echo "$left"; false; }
	run ak gc --json
	says '{"expired":0,"dead":0,"leftovers":0,"layers":0,"pins":0,"quarantined":0}'
}
