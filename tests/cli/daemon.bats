#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Sandboxes that wait ready: used where they fit exactly, once each, and never missed.

load helpers

daemon_setup() {
	export STATE=$W/state
}

# With a state directory of this test's own.
own() {
	as env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host "$AK" "$@"
}

start_daemon() {
	daemon_setup
	own daemon start "$@"
	await_warm 3
}

# await_warm N: so many wait in the first pool
await_warm() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(status 'pools[0]["warm"]')" != "$1" ] || return 0
		sleep 0.05
	done
	own daemon status
	return 1
}

status() {
	own daemon status --json | python3 -c "import json, sys; s = json.load(sys.stdin); pools = s['pools']; print($1)"
}

# How many of these processes still run.
warm_below() {
	local pid count=0
	while read -r pid; do
		! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$pid/status" 2>/dev/null || count=$((count + 1))
	done
	echo "$count"
}

teardown() {
	[ -z "${STATE:-}" ] || own daemon stop 2>/dev/null || true
}

@test "run takes a sandbox that waits, and another one waits soon after" {
	start_daemon
	[ "$(own run echo from inside)" = "from inside" ]
	[ "$(status 'pools[0]["hits"]')" = 1 ]
	await_warm 3
}

@test "streams, variables, the working directory, signals and statuses are as without it" {
	start_daemon
	[ "$(echo given | own run cat)" = given ]
	[ "$(own run -e A=b sh -c 'echo $A $HOME; pwd')" = "$(own run --no-config -v "$W:/w:ro" -e A=b sh -c 'echo $A $HOME; pwd')" ]
	run own run sh -c 'echo out; echo err >&2; exit 7'
	[ "$status" -eq 7 ]
	run own run --timeout 300ms sleep 60
	[ "$status" -eq 124 ]
	run -127 own run no-such-program
	run own run sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ]
	[ "$(status 'pools[0]["misses"]')" = 0 ] || [ "$(status 's["given"] > 4')" = True ]
}

@test "--json tells what a run of its own would" {
	start_daemon
	own run --json sh -c 'echo hi; exit 3' >with || [ $? -eq 3 ]
	own run --json -v "$W:/w:ro" sh -c 'echo hi; exit 3' >without || [ $? -eq 3 ]
	python3 - <<-'END'
	import json
	a, b = json.load(open("with")), json.load(open("without"))
	assert a.keys() == b.keys(), (a, b)
	for key in "exit_code", "signal", "stdout", "stderr", "timed_out", "oom", "denied", "image":
	    assert a[key] == b[key], key
	assert (a["peak_memory"] > 0) == (b["peak_memory"] > 0)
	END
	[ "$(status 's["given"]')" = 1 ]
}

@test "a sandbox serves one command: nothing of it is in the next" {
	start_daemon
	for _ in 1 2 3 4 5 6; do
		[ "$(own run sh -c 'cat /tmp/mark 2>/dev/null; echo x >/tmp/mark; echo x >~/mark; ls /tmp ~ | wc -l')" = 5 ]
	done
	[ "$(status 's["given"] >= 3')" = True ]
}

@test "what was asked for always holds: other limits, rules and users are other sandboxes" {
	start_daemon
	[ "$(own run --pids 50 sh -c 'cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || ulimit -u')" != "$(own run sh -c 'cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || ulimit -u')" ] || true
	[ "$(own run -p restrictive id -u)" = 1000 ]
	[ "$(own run id -u)" = 0 ]
	run own run --read-only touch /x
	[ "$status" -ne 0 ]
	own run touch /x
	run own run --no-network getent hosts example.org
	[ "$status" -ne 0 ]
	run own run --file-size 4k sh -c 'head -c 10000 /dev/zero >/tmp/f'
	[ "$status" -ne 0 ]
	# asked for again, they are there
	sleep 0.5
	[ "$(own run -p restrictive id -u)" = 1000 ]
	run own run --file-size 4k sh -c 'head -c 10000 /dev/zero >/tmp/f'
	[ "$status" -ne 0 ]
}

@test "what shows a directory of the host never waits" {
	start_daemon
	mkdir here && cd here
	[ "$(own run --workspace pwd)" = "$PWD" ]
	own run -v "$W:/w:ro" true
	[ "$(status 's["given"]')" = 0 ]
	run own daemon prewarm --workspace
	[ "$status" -eq 125 ]
	[[ $output == *"cannot wait ready"* ]]
}

@test "the walls of a sandbox that waited are those of every other" {
	start_daemon
	# through a pipe, also stderr: where a stream is a file, an older kernel's sandbox may have a filter more
	own run sh -c 'grep -E "^(Cap|NoNewPrivs|Seccomp)" /proc/self/status; cat /proc/self/uid_map /proc/self/cgroup | wc -l; ls -la /proc/self/fd | wc -l; hostname; grep -c . /proc/self/mountinfo' 2>&1 | cat >warm
	own run -v "$PROBE:/probe:ro" sh -c 'grep -E "^(Cap|NoNewPrivs|Seccomp)" /proc/self/status; cat /proc/self/uid_map /proc/self/cgroup | wc -l; ls -la /proc/self/fd | wc -l; hostname; grep -cv /probe /proc/self/mountinfo' 2>&1 | cat >cold
	[ "$(status 's["given"]')" = 1 ]
	diff warm cold
}

@test "many runs at once: those that find none build their own" {
	start_daemon
	pids=()
	for i in $(seq 12); do
		own run echo "$i" >"out.$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in $(seq 12); do
		[ "$(cat "out.$i")" = "$i" ]
	done
}

@test "killed with -9, the daemon leaves nothing that waits, and run goes on without a word" {
	start_daemon
	pid=$(status 's["pid"]')
	pgrep -P "$pid" >children
	[ "$(wc -l <children)" -eq 3 ]
	kill -9 "$pid"
	for ((i = 0; i < 100; i++)); do
		[ "$(warm_below <children)" -gt 0 ] || break
		sleep 0.05
	done
	[ "$(warm_below <children)" -eq 0 ]
	run own run echo still
	[ "$output" = still ]
	run own daemon status
	[ "$status" -eq 125 ]
	[[ $output == *"no daemon runs"* ]]
	own daemon start
	await_warm 3
}

@test "one that died while it waited is not used: run builds its own, without a word" {
	start_daemon
	local pid init
	for pid in $(pgrep -P "$(status 's["pid"]')"); do
		kill -STOP "$pid" # so that it cannot tell the daemon
		for init in $(pgrep -P "$pid"); do
			kill -9 "$init"
		done
		echo "$pid" >>stopped
	done
	[ "$(wc -l <stopped)" -eq 3 ]
	run own run sh -c 'echo still; exit 3'
	xargs kill -CONT <stopped
	[ "$status" -eq 3 ]
	[ "$output" = still ]
}

# Every process of this state directory's daemon: what waits, what is being built, what is used.
own_processes() {
	local environment
	for environment in /proc/[0-9]*/environ; do
		! tr '\0' '\n' <"$environment" 2>/dev/null | grep -qx "AGENTKERNEL_HOME=$STATE" ||
			basename "$(dirname "$environment")"
	done
}

@test "killed with -9 in the middle of load, it leaves no orphan, and every run its own result" {
	start_daemon
	pids=()
	for i in 1 2 3 4; do
		(for n in $(seq 25); do [ "$(own run echo "$i.$n" 2>&1)" = "$i.$n" ] || echo "$i.$n" >>failed; done) &
		pids+=($!)
	done
	for round in 1 2 3; do
		sleep 0.2
		kill -9 "$(status 's["pid"]')"
		own daemon start
	done
	wait "${pids[@]}"
	[ ! -e failed ] || { cat failed; return 1; }
	await_warm 3
	[ "$(own_processes | wc -l)" -ge 7 ] # the daemon, three that wait, each with its init
	kill -9 "$(status 's["pid"]')"
	for ((i = 0; i < 100; i++)); do
		[ -n "$(own_processes)" ] || break
		sleep 0.05
	done
	[ -z "$(own_processes)" ]
}

@test "a command outlives the daemon that gave it its sandbox" {
	start_daemon
	own run sh -c 'sleep 1; echo done' >out &
	running=$!
	sleep 0.3
	own daemon stop
	wait "$running"
	[ "$(cat out)" = "done" ]
}

@test "a client that is killed takes its sandbox with it" {
	start_daemon
	mark=7$RANDOM$RANDOM
	as env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host "$AK" run sleep "$mark" &
	for ((i = 0; i < 100; i++)); do
		pgrep -f "^sleep $mark" >/dev/null && break
		sleep 0.05
	done
	kill -9 "$(pgrep -f "^$AK run sleep $mark")"
	for ((i = 0; i < 100; i++)); do
		pgrep -f "^sleep $mark" >/dev/null || break
		sleep 0.05
	done
	! pgrep -f "^sleep $mark"
}

@test "a second daemon is refused, and prewarm says how many" {
	start_daemon
	run own daemon start
	[ "$status" -eq 125 ]
	[[ $output == *"is already running"* ]]
	own daemon prewarm --memory 300M --count 2
	for ((i = 0; i < 100; i++)); do
		[ "$(status 'len(pools) > 1 and pools[1]["warm"]')" != 2 ] || break
		sleep 0.05
	done
	[ "$(status 'pools[1]["warm"]')" = 2 ]
	own run --memory 300M true
	[ "$(status 'pools[1]["hits"]')" = 1 ]
	own daemon prewarm --memory 300M --count 0
}

@test "garbage on its socket disturbs nobody" {
	start_daemon
	as python3 - "$STATE/daemon.sock" <<-'END'
	import os, socket, sys
	for data in b"", b"x", b"akfk", os.urandom(100), b"akfk\x01\0\0\0\x2c\x01\0\0\x04\0\0\0abcd", os.urandom(60000):
	    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
	    s.connect(sys.argv[1])
	    try:
	        s.send(data)
	        s.settimeout(1)
	        s.recv(100000)
	    except OSError:
	        pass
	END
	[ "$(own run echo well)" = well ]
	[ "$(status 's["given"]')" = 1 ]
}

@test "another user's requests are not listened to" {
	only_root
	start_daemon
	chmod -R a+rwX "$W"
	run setpriv --reuid 4242 --regid 4242 --clear-groups env AGENTKERNEL_HOME="$STATE" "$AK" daemon status
	[ "$status" -ne 0 ]
	[ "$(status 's["pid"] > 0')" = True ]
}

# What a command inherits from whoever calls: priority, processors, scheduler, how it is killed for memory.
INHERITED='awk "{ print \$19 }" /proc/self/stat; grep Cpus_allowed_list /proc/self/status; grep -h . /proc/self/oom_score_adj; grep -h policy /proc/self/sched 2>/dev/null || true; ulimit -n'

@test "the caller's priority, processors, scheduler and limits hold as they do without the daemon" {
	daemon_setup
	local way words
	own daemon start
	await_warm 3
	while read -r way; do
		read -r -a words <<<"$way"
		as "${words[@]}" env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host "$AK" run sh -c "$INHERITED" >"$W/with"
		as "${words[@]}" env AGENTKERNEL_HOME="$W/nobody" AGENTKERNEL_IMAGE=host "$AK" run sh -c "$INHERITED" >"$W/without"
		diff "$W/with" "$W/without" || { echo "with: $way"; return 1; }
	done <<-'WAYS'
	env
	nice -n 7
	taskset -c 0
	chrt --batch 0
	choom -n 500 --
	prlimit --nofile=200:300
	WAYS
	[ "$(status 's["given"] >= 1')" = True ] # the first one waited
	[ "$(status 's["given"] <= 1')" = True ] # and none of the others
}

@test "a cgroup of the caller's that limits something counts what runs in a sandbox" {
	only_root
	daemon_setup
	[ -w /sys/fs/cgroup/pids/cgroup.procs ] || skip "needs the pids controller of cgroup v1"
	group=/sys/fs/cgroup/pids/agentkernel-test-$$-$BATS_TEST_NUMBER
	own daemon start
	await_warm 3
	mkdir "$group"
	echo 25 >"$group/pids.max"
	forks='n=0; while [ $n -lt 60 ]; do sleep 3 & n=$((n + 1)); done 2>/dev/null; echo $n'
	# shellcheck disable=SC2016 # for the other shell
	run bash -c 'echo $$ >"$0/cgroup.procs"; shift 0; "$@" 2>&1 | tail -n 1; true' "$group" env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host HOME="$SHARED/home" "$AK" run sh -c "$forks"
	[[ $output != 60 ]] || { echo "60 processes in a group of 25"; rmdir "$group"; return 1; }
	run env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host HOME="$SHARED/home" "$AK" run sh -c "$forks" # the control, outside of it
	[ "$output" = 60 ]
	for _ in $(seq 100); do
		rmdir "$group" 2>/dev/null && break
		sleep 0.05
	done
	[ ! -e "$group" ]
}
