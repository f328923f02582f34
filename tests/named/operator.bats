#!/usr/bin/env bats
# What an operator can find out afterwards, and what works when a resource is scarce.

load helpers

# The last line of the audit log about SANDBOX of TYPE, as "program|what or argv|result".
audited() {
	ak audit --json --sandbox "$1" --type "$2" | tail -1 | python3 -c '
import json, sys
line = json.loads(sys.stdin.read())
print(line["program"] + "|" + (line.get("what") or " ".join(line.get("argv", []))) + "|" + line["result"])'
}

supervisor() {
	ps -o ppid= -p "$(ak info --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')" | tr -d ' '
}

@test "the audit log has the end of every command and sandbox, with its reason, as the act of who asked" {
	ak create ends --memory 64M
	ak start ends
	me=$(cat /proc/$$/comm)
	ak exec ends true
	[ "$(audited ends exec)" = "$me|true|ok" ]
	run ak exec ends sh -c 'exit 3'
	[ "$(audited ends exec)" = "$me|sh -c exit 3|exit status 3" ]
	run ak exec ends sh -c 'kill -9 $$'
	[ "$(audited ends exec)" = "$me|sh -c kill -9 \$\$|killed by signal 9" ]
	run ak exec --timeout 300ms ends sleep 60
	[ "$(audited ends exec)" = "$me|sleep 60|ended by its deadline" ]
	id=$(ak exec -d ends sh -c 'exit 7')
	for _ in $(seq 50); do
		[[ "$(audited ends end 2>/dev/null)" == *"$id"* ]] && break
		sleep 0.1
	done
	[ "$(audited ends end)" = "$me|$id: sh -c exit 7|exit status 7" ]
	if [ "${AS:-root}" = root ]; then # without a cgroup this is not known
		run ak exec ends python3 -c 'x = b"x" * 10**9'
		[ "$(audited ends exec)" = "$me|python3 -c x = b\"x\" * 10**9|killed: out of memory" ]
	fi
	ak stop ends
	[ "$(audited ends end)" = "$me|sandbox|ok" ]
	ak start ends
	kill -9 "$(supervisor ends)"
	for _ in $(seq 50); do
		ak start ends 2>/dev/null && break
		sleep 0.1
	done
	[ "$(audited ends end)" = "$me|sandbox|supervisor died" ]
}

@test "logs --system tells when a sandbox was started, frozen and stopped, and why it ended" {
	started told
	ak pause told
	ak resume told
	ak stop told
	run -0 ak logs --system told
	[[ "${lines[0]}" == 20*Z*"started: build "* ]]
	[[ "$output" == *frozen*thawed*"stopping: SIGTERM"*"ended: it was asked to"* ]]
	run ak logs --system nope
	[ "$status" -eq 125 ]
	[[ "$output" == *"no sandbox"*nope* ]]
}

# bats test_tags=once
@test "on a full disk a sandbox starts, runs and stops, and the audit log goes on" {
	only_root
	unshare --mount --propagation private bash -c '
		set -e
		mount -t tmpfs -o size=8m tmpfs "$1"
		export AGENTKERNEL_HOME=$1/state AGENTKERNEL_IMAGE=host
		"$2" create full
		"$2" start full
		"$2" exec full sh -c "echo kept >/root/file"
		"$2" stop full
		dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null || true
		for round in 1 2 3; do
			"$2" start full
			[ "$("$2" exec full cat /root/file)" = kept ]
			"$2" stop full
			"$2" list --all | grep -q "full  stopped  "
		done
		"$2" audit --sandbox full --type stop | wc -l
		"$2" remove full' - "$SHARED/import" "$AK" >"$W/out" 2>&1 || {
		! grep -q "cannot map owners" "$W/out" || skip "this kernel cannot map owners on tmpfs (before 6.3)"
		cat "$W/out"
		false
	}
	[ "$(tail -1 "$W/out")" -eq 4 ]
}

@test "with 64 descriptors everything works" {
	as bash -c 'ulimit -n 64 && "$1" run true && "$1" create few && "$1" start few && [ "$("$1" exec few echo yes)" = yes ] &&
		"$1" cp few:/etc/hosts . && "$1" checkpoint create few && "$1" stop few && "$1" remove few' - "$AK"
}

# bats test_tags=once
@test "stop and remove take ten thousand names" {
	for i in $(seq 20); do
		ak create "many$i"
	done
	# shellcheck disable=SC2046 # words
	run ak remove -f $(seq -f 'many%g' 10000)
	[ "$status" -eq 0 ]
	[ -z "$(ak list --all --quiet | grep '^many')" ]
	# shellcheck disable=SC2046 # words
	run ak stop $(seq -f 'many%g' 10000)
	[ "$status" -ne 0 ]
	[ "$(grep -c 'many' <<<"$output")" -eq 10000 ]
}

# bats test_tags=once
@test "a read-only home is no obstacle for a run" {
	only_root
	unshare --mount --propagation private bash -c '
		mount -t tmpfs tmpfs "$1" && mkdir "$1/home" && mount -o remount,ro "$1" &&
		cd "$2" && HOME=$1/home AGENTKERNEL_HOME=$1/home/state AGENTKERNEL_IMAGE=host "$3" run --workspace echo ran' - "$SHARED/import" "$W" "$AK" >"$W/out"
	[ "$(cat "$W/out")" = ran ]
}

# bats test_tags=once
@test "the daemon removes sandboxes whose time is over" {
	ak create brief --ttl 1s
	as "$AK" daemon start 3>&-
	for _ in $(seq 150); do
		[ -e "$STATE/sandboxes/brief" ] || break
		sleep 0.1
	done
	as "$AK" daemon stop
	[ ! -e "$STATE/sandboxes/brief" ]
	run -0 ak logs --system
	[[ "$output" == *"started: build "*"ended: "* ]]
}

@test "restore of a running sandbox stops it, restores and starts it in one step" {
	started again
	ak exec again sh -c 'echo one >~/file'
	id=$(ak checkpoint create again)
	ak exec again sh -c 'echo two >~/file'
	run -0 ak checkpoint restore again "$id"
	[[ "$output" == *"sandbox 'again' was stopped, restored and started again"* ]]
	[ "$(ak exec again sh -c 'cat ~/file')" = one ]
	run ak checkpoint restore again 000000000000
	[ "$status" -eq 125 ]
	[ "$(ak exec again echo "still running")" = "still running" ] # a wrong id stops nothing
	ak stop again
	run -0 ak checkpoint restore again "$id"
	[ -z "$output" ]
}

@test "cp works on a stopped sandbox, which is stopped afterwards" {
	ak create quiet
	echo text >"$W/file"
	ak cp "$W/file" quiet:/root/file
	ak cp quiet:/root/file "$W/back"
	[ "$(cat "$W/back")" = text ]
	[ "$(ak info --json quiet | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')" = stopped ]
	run ak cp quiet:/root/nothing "$W/back"
	[ "$status" -ne 0 ]
	[ "$(ak info --json quiet | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')" = stopped ]
}

@test "a fork keeps labels, and expires when its origin does" {
	ak create brief --ttl 1h --label team=a
	ak fork brief brief-2
	ak info --json brief brief 2>/dev/null || true
	one=$(ak info --json brief | python3 -c 'import json, sys; print(json.load(sys.stdin)["expires"])')
	two=$(ak info --json brief-2 | python3 -c 'import json, sys; print(json.load(sys.stdin)["expires"])')
	[ $((two - one)) -le 2 ] && [ $((one - two)) -le 2 ]
	[[ "$(ak info --json brief-2)" == *'"labels":["team=a"]'* ]]
}

# bats test_tags=once
@test "network log of a sandbox that is not there is an error" {
	run ak network log nope
	[ "$status" -eq 125 ]
	[[ "$output" == *"no sandbox named 'nope'"* ]]
	ak create silent-one
	run -0 ak network log silent-one
}

# bats test_tags=once
@test "help shows the commands that matter first, and a group's commands" {
	run -0 ak
	[[ "$output" == *"Most used:"*"run "*"Named sandboxes:"* ]]
	[ "$(ak help)" = "$output" ]
	run -0 ak help checkpoint
	[[ "$output" == *"checkpoint create"*"checkpoint import"* ]]
	run -0 ak help run
	[[ "$output" == *"--memory"* ]]
}
