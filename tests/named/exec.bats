#!/usr/bin/env bats
# Commands in a running sandbox: streams, ends, signals, and detached commands. Sandbox e has the
# host's image, b image bb.
load helpers

prepare_file() {
	started e --mount "$PROBE:/probe:ro" && started b --image bb
}

runs_inside() {
	ak exec -T e sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " "' | grep -q -- "$1"
}

not_inside() {
	! runs_inside "$1"
}

@test "the exit status is the command's own" {
	for status_wanted in 0 1 42 255; do
		run ak exec e sh -c "exit $status_wanted"
		[ "$status" -eq "$status_wanted" ]
		[ -z "$output" ]
	done
	run ak exec e sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ]
	run -127 ak exec e nosuch
	[[ "$output" == *nosuch* ]]
	run -126 ak exec e /etc/hosts
	[ "$(wc -l <<<"$output")" -eq 1 ]
}

@test "stdin, stdout and stderr are the caller's own" {
	run bash -c "$(declare -f as ak); echo in | ak exec -T e sh -c 'cat; echo err >&2' 2>$W/err"
	says in
	[ "$(cat "$W/err")" = err ]
	ak exec e sh -c 'cat; echo more' </etc/hostname >"$W/out"
	[ "$(cat "$W/out")" = "$(cat /etc/hostname; echo more)" ]
	run bash -c "$(declare -f as ak); ak exec -T e sh -c 'cat; echo closed' <&-"
	[[ "$output" == *closed ]]
	run bash -c "$(declare -f as ak); printf 'echo 1\n$AK exec e true\necho 2\n' | as sh"
	says "1
2"
}

# bats test_tags=once
@test "gigabytes flow through without anyone's copying: the supervisor and the client stay idle" {
	before=$(awk '{ print $14 + $15 }' "/proc/$(supervisor e)/stat")
	bytes=$(ak exec -T e sh -c 'head -c 2000000000 /dev/zero' | wc -c)
	[ "$bytes" -eq 2000000000 ]
	bytes=$(head -c 1000000000 /dev/zero | ak exec -T e wc -c)
	[ "$bytes" -eq 1000000000 ]
	[ $(($(awk '{ print $14 + $15 }' "/proc/$(supervisor e)/stat") - before)) -lt 20 ] # hundredths of a second
}

@test "a pipe that closes early ends the command" {
	run bash -c "$(declare -f as ak); ak exec -T e yes | head -n 1"
	says y
	until_true not_inside '^yes'
}

@test "variables, directory and user of one command" {
	run ak exec -e A=1 -e B='x y' -w /tmp e sh -c 'echo "$A/$B"; pwd'
	says "1/x y
/tmp"
	run as env FROM=caller OTHER=no "$AK" exec -e FROM -e MISSING e sh -c 'echo "$FROM${OTHER-}${MISSING-}"'
	says caller
	run ak exec -w relative e true
	fails_with 125 "relative' inside"
	run ak exec -w /no/such e true
	fails_with 125 "/no/such"
	run ak exec -e =x e true
	fails_with 125 "does not start with a name"
	run ak exec -u nosuch e true
	fails_with 125 "--user"
	if has_many_ids; then
		run ak exec -u app -w /tmp b sh -c 'id -u; id -G; echo $HOME $USER; touch made.app; stat -c %u made.app'
		says "1234
1234 55
/home/app app
1234"
		run ak exec -u 7:8 b id -u
		says 7
	else
		run ak exec -u app b true
		fails_with 125 "this sandbox has one user only"
	fi
}

@test "a user that the sandbox has made itself is one" {
	has_many_ids || skip "needs more than one id"
	ak exec b sh -c 'echo "made:x:4321:4321::/tmp:/bin/sh" >>/etc/passwd; echo "club:x:99:made" >>/etc/group'
	run ak exec -u made b sh -c 'id -u; id -G; echo $HOME'
	says "4321
4321 99
/tmp"
}

@test "a deadline ends the command and all its children: 124" {
	start=$(date +%s%N)
	run ak exec --timeout 300ms e sh -c 'sleep 71 & sleep 71'
	[ "$status" -eq 124 ]
	[[ "$output" == *"300ms"* || "$output" == *time* ]]
	[ $((($(date +%s%N) - start) / 1000000)) -lt 3000 ]
	run ak exec --timeout 200ms e /probe ignore-signals 72
	[ "$status" -eq 124 ]
	until_true not_inside 'sleep 7[1]'
	run ak exec --timeout 0 e true
	[ "$status" -eq 125 ]
}

@test "signals to the client reach the command" {
	for signal in INT TERM HUP USR1 QUIT; do
		client exec -T e sh -c "trap 'echo got $signal; exit 7' $signal; echo up; while :; do sleep 0.02; done" >"$W/out"
		until_true grep -q up "$W/out"
		kill "-$signal" "$CLIENT"
		wait "$CLIENT" && status=0 || status=$?
		[ "$status" -eq 7 ] || { echo "$signal: $status"; cat "$W/out"; false; }
		grep -q "got $signal" "$W/out"
	done
}

@test "killing the client ends an attached command, and not a detached one" {
	id=$(ak exec -d e sleep 73)
	client exec -T e sh -c 'trap "" HUP; sleep 74; sleep 74'
	until_true runs_inside 'sleep 7[4]'
	kill -9 "$CLIENT"
	wait "$CLIENT" || true
	until_true not_inside 'sleep 7[4]'
	runs_inside 'sleep 7[3]'
	ak kill e "$id"
	until_true not_inside 'sleep 7[3]'
}

@test "a detached command is listed, logged and killed by its id" {
	id=$(ak exec -d e sh -c 'echo out; echo err >&2; echo out2; exec sleep 75')
	[[ "$id" =~ ^[0-9a-f]{8}$ ]]
	run ak ps e
	[[ "$output" == *"$id"*running*detached*"sleep 75"* ]]
	logged() { [ "$(ak logs e "$id" 2>/dev/null | wc -l)" -eq 2 ]; }
	until_true logged
	ak logs e "$id" >"$W/out" 2>"$W/err"
	[ "$(cat "$W/out")" = $'out\nout2' ]
	[ "$(cat "$W/err")" = err ]
	ak kill e "$id" --signal USR1
	ended() { ak ps e | grep -q "$id.*signal 10"; }
	until_true ended
	run ak kill e "$id"
	fails_with 125 "no command $id runs in sandbox 'e'"
	for bad in 0 xyz 123456789 "" -- ; do
		run ak kill e "$bad"
		[ "$status" -eq 125 ]
	done
	run ak kill e "$id" --signal NOSUCH
	fails_with 125 "no signal 'NOSUCH'"
}

@test "ps --json has argument lists and pids, also of commands that have ended" {
	id=$(ak exec -d e sh -c 'echo $$' '' 'two  words' $'line\nfeed')
	ended() { ak ps e | grep -q "$id.*exited 0"; }
	until_true ended
	ak ps e --json >"$W/ps"
	python3 -c 'import json, sys
t = [t for t in json.load(open(sys.argv[1])) if t["id"] == sys.argv[2]][0]
assert t["argv"] == ["sh", "-c", "echo $$", "", "two  words", "line\nfeed"], t
assert t["pid"] == int(sys.argv[3]) and not t["running"], t' "$W/ps" "$id" "$(ak logs e "$id")"
	# arguments beyond 16 KiB are omitted completely
	id=$(ak exec -d e sh -c 'exit 0' small "$(head -c 20000 /dev/zero | tr '\0' x)" last)
	until_true ended
	ak ps e --json | python3 -c 'import json, sys
t = [t for t in json.load(sys.stdin) if t["id"] == sys.argv[1]][0]
assert t["argv"] == ["sh", "-c", "exit 0", "small"] and t["argv_cut"], t' "$id"
}

@test "ps --json: null while a command runs, then an exit code as a shell has it, and the signal" {
	id=$(ak exec -d e sleep 600)
	state() { ak ps e --json | python3 -c 'import json, sys
t = [t for t in json.load(sys.stdin) if t["id"] == sys.argv[1]][0]
print(t["running"], t["exit_code"], t["signal"], (t["ended_ms"] or 0) > t["started_ms"])' "$id"; }
	[ "$(state)" = "True None None False" ]
	ak kill e "$id" --signal KILL
	ended() { [ "$(state)" = "False 137 9 True" ]; }
	until_true ended
}

# bats test_tags=once
@test "logs without an id are the latest command's, and -f goes on to its end" {
	ak exec -d e echo earlier
	id=$(ak exec -d e sh -c 'for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; exit 3')
	run ak logs -f e "$id"
	says "line 1
line 2
line 3
line 4
line 5"
	run ak logs e
	[ "${lines[0]}" = "line 1" ]
	ak ps e | grep -q "$id.*exited 3"
	run ak logs e 00000001
	fails_with 125 "no log of command 00000001"
}

# bats test_tags=once
@test "ten megabytes of output leave the last of it, in bounded room" {
	id=$(ak exec -d e sh -c 'seq 800000; echo the end') # 10.9 MB
	ak logs -f e "$id" >/dev/null 2>&1
	ak logs e "$id" >"$W/out" 2>"$W/err"
	[ "$(tail -n 1 "$W/out")" = "the end" ]
	grep -q 'bytes of output are missing here: older ones are not kept' "$W/err"
	[ "$(wc -c <"$W/out")" -ge 1000000 ]
	[ "$(cat "$STATE/sandboxes/e/log/$id".* | wc -c)" -le $((2 * 1048576 + 65536)) ]
	tail -n +2 "$W/out" | head -n -1 | awk 'NR > 1 && $1 != last + 1 { exit 1 } { last = $1 }' # no gap
}

@test "logs are there after stop, and after the supervisor's death" {
	started logged
	first=$(ak exec -d logged echo first)
	ak logs -f logged "$first" >/dev/null
	ak stop logged
	run ak logs logged "$first"
	says first
	ak start logged
	second=$(ak exec -d logged sh -c 'echo second; exec sleep 100')
	said() { [ "$(ak logs logged "$second")" = second ]; }
	until_true said
	kill -9 "$(supervisor logged)"
	until_true is_state logged "stopped (supervisor died)"
	run ak logs logged "$second"
	says second
	run ak logs logged "$first"
	says first
}

@test "logs -f of a command that dies with its supervisor comes to an end" {
	started mourned
	id=$(ak exec -d mourned sh -c 'echo alive; exec sleep 100')
	client logs -f mourned "$id" >"$W/out"
	until_true grep -q alive "$W/out"
	kill -9 "$(supervisor mourned)"
	over() { ! kill -0 "$CLIENT" 2>/dev/null; }
	until_true over
}

# bats test_tags=once
@test "only so many ended commands and their logs are kept" {
	started many
	as bash -c "for i in \$(seq 45); do $AK exec -d many true >/dev/null; done"
	few() { [ "$(find "$STATE/sandboxes/many/log" -name '*.0' | wc -l)" -le 33 ]; }
	until_true few
	[ "$(ak ps many | wc -l)" -le 34 ]
}

@test "fifty commands at once, each with its own output" {
	as bash -c "for i in \$(seq 50); do $AK exec -T e sh -c 'sleep 0.2; echo '\$i >$W/out.\$i & done; wait"
	[ "$(cat "$W"/out.* | sort -n)" = "$(seq 50)" ]
}

@test "no end is missed while another command writes and writes" {
	id=$(ak exec -d e yes)
	as timeout 30 bash -c "for i in \$(seq 80); do $AK exec -T e true || exit 1; done"
	for _ in $(seq 15); do
		quick=$(ak exec -d e true)
	done
	done_all() { ! ak ps e | grep 'running.*true$'; }
	until_true done_all
	ak kill e "$id"
	[ -n "$quick" ]
}

@test "a long command holds up no other" {
	client exec -T e sleep 76
	id=$(ak exec -d e sh -c 'while :; do :; done')
	start=$(date +%s%N)
	for _ in 1 2 3 4 5; do
		ak exec e true
	done
	[ $((($(date +%s%N) - start) / 1000000)) -lt 2000 ]
	kill "$CLIENT"
	ak kill e "$id"
	wait "$CLIENT" || true
}

# bats test_tags=once
@test "many and long arguments: a hundred kilobytes, three megabytes, and too much in words" {
	run as bash -c "$AK exec -T e sh -c 'echo \$# \${#1}' x \$(seq -f %0100.0f 1000)"
	says "1000 100"
	as python3 - "$AK" >"$W/out" <<-'PY'
	import resource, subprocess, sys
	resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, 64 << 20))
	words = ["y" * 100000] * 30 + ["last"]
	r = subprocess.run([sys.argv[1], "exec", "-T", "e", "sh", "-c", 'echo $# ${#1}', "x"] + words,
	    capture_output=True, text=True, stdin=subprocess.DEVNULL)
	print(r.stdout.strip() or r.stderr.strip())
	PY
	grep -qx '31 100000' "$W/out" || grep -q 'agentkernel: .*too long' "$W/out" || { head -c 300 "$W/out"; false; }
	ak exec e true # and it still works
}

# bats test_tags=once
@test "exec into one that is not running or does not exist says what to do" {
	ak create idle
	run ak exec idle true
	fails_with 125 "sandbox 'idle' is not running (agentkernel start idle)"
	run ak exec -d idle true
	fails_with 125 "sandbox 'idle' is not running"
	for words in "ps idle" "kill idle 12345678"; do
		# shellcheck disable=SC2086
		run ak $words
		fails_with 125 "sandbox 'idle' is not running"
	done
	run ak exec
	[ "$status" -eq 125 ]
}

# bats test_tags=once
@test "--json tells all about one command" {
	run ak exec --json e sh -c 'echo out; echo err >&2; exit 4'
	python3 -c 'import json, sys
o = json.loads(sys.argv[1])
assert o["exit_code"] == 4 and o["stdout"] == "out\n" and o["stderr"] == "err\n" and not o["timed_out"], o' "$output"
	run ak exec --json --timeout 200ms e sleep 9
	python3 -c 'import json, sys; assert json.loads(sys.argv[1])["timed_out"]' "$output"
}

@test "stopping while commands run ends them all, and their clients say so" {
	started ends
	client exec -T ends sleep 100
	sleep 0.2
	ak stop ends
	wait "$CLIENT" && status=0 || status=$?
	[ "$status" -eq 143 ] || [ "$status" -eq 137 ] || [ "$status" -eq 125 ]
}

@test "a daemon that a command leaves lives on, and ends with the sandbox" {
	started daemon
	run ak exec -T daemon sh -c 'setsid sh -c "sleep 78.'$$'; true" >/dev/null 2>&1 & echo left'
	says left
	run ak exec -T daemon sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 7[8].'$$'"'
	[ "$output" -ge 1 ]
	ak stop --timeout 1s daemon
	run ! pgrep -f "^sleep 78.$$"
}

@test "a file is renamed from one directory to another, also in the workspace" {
	mkdir project && give project && cd project
	started renames --workspace
	run ak exec renames sh -c 'mkdir /tmp/a /tmp/b a b && touch /tmp/a/f a/f && python3 -c "
import os
for a, b in ((\"/tmp/a/f\", \"/tmp/b/f\"), (\"/tmp/b/f\", os.path.expanduser(\"~/f\")), (\"a/f\", \"b/f\")):
    os.rename(a, b)
print(\"renamed\")"'
	says renamed
	ak remove -f renames
}
