#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Pooled sandboxes: used if they match exactly, once each, and no run depends on them.

load helpers

daemon_setup() {
	export STATE=$W/state
}

# With this test's own state directory.
own() {
	as env ${OWN_HOME:+HOME="$OWN_HOME"} AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host "$AK" "$@"
}

start_daemon() {
	daemon_setup
	own daemon start "$@"
	await_warm 3
}

# await_warm N: that many are ready in the first pool
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
	# requested again, there is a pool
	sleep 0.5
	[ "$(own run -p restrictive id -u)" = 1000 ]
	run own run --file-size 4k sh -c 'head -c 10000 /dev/zero >/tmp/f'
	[ "$status" -ne 0 ]
}

# pool FIELD: of the pool that awaits places
pool() {
	status "next(p for p in pools if p['workspace'])['$1']"
}

# await_pool N: that many of it are ready
await_pool() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(pool warm)" != "$1" ] || return 0
		sleep 0.05
	done
	own daemon status
	return 1
}

@test "a workspace, mounts, masks and protections are added when a sandbox is taken" {
	start_daemon
	own daemon prewarm --workspace --count 2
	await_pool 2
	as mkdir one two shown && as sh -c 'echo 1 >one/file; echo 2 >two/file; echo key >two/.env; echo s >shown/file'
	cd one
	[ "$(own run --workspace sh -c 'pwd; cat file; echo new >made')" = "$PWD"$'\n1' ]
	[ "$(cat made)" = new ]
	await_pool 2
	cd ../two
	as git init -q .
	run own run --workspace --mask '.env*' --protect file -v "$W/shown:/shown" sh -c 'pwd; cat .env; echo x 2>/dev/null >file || echo protected; echo x 2>/dev/null >.git/hooks/new || echo hooks; echo more >>/shown/file'
	[ "$output" = "$PWD"$'\nprotected\nhooks' ] || { echo "$output"; return 1; }
	[ "$(cat ../shown/file .env)" = $'s\nmore\nkey' ]
	[ "$(pool hits)" = 2 ]
	await_pool 2
	run own run --workspace sh -c 'mkdir .vscode && sleep 0.3; git config core.pager "touch pwned"; mkdir sub && git init -q sub && git -C sub config core.pager "touch pwned"'
	[[ $output == *"'.vscode' was moved to "* && $output == *"sub/.git': core.pager"* ]] || { echo "$output"; return 1; }
	[ ! -e .vscode ]
	! grep -q pager .git/config sub/.git/config
	[ "$(pool hits)" = 3 ]
}

@test "for every agent's mode a sandbox waits, prewarmed from anywhere" {
	start_daemon
	mkdir project
	for from in / "$W" "$W/project"; do
		cd "$from"
		OWN_HOME=$W own daemon prewarm --mode claude --count 1
	done
	own daemon prewarm -m codex --count 1
	own daemon prewarm -m gemini --count 1
	[ "$(status 'len(pools)')" = 4 ] # one for each mode: the directory makes no difference
	cd "$W/project"
	for mode in claude codex gemini; do
		until [ "$(status "next(p for p in pools if p['mode'] == '$mode')['warm']")" = 1 ]; do sleep 0.05; done
		[ "$(own run -m $mode pwd)" = "$PWD" ]
		[ "$(status "next(p for p in pools if p['mode'] == '$mode')['hits']")" = 1 ]
	done
	own daemon status >table
	[[ $(head -n 2 table | tail -n 1) =~ ^AGENT\ +IMAGE\ +PROFILE\ +WARM\ +IN\ USE\ +HITS\ +MISSES\ +WHY\ NOT\ FULL$ ]]
	grep -Eq '^claude \+ workspace +host +moderate +[01] of 1 +[01] +1 +0 ' table
}

@test "the configuration's pools for agents are filled" {
	daemon_setup
	mkdir -p "$W/home/.config/agentkernel" project
	printf '[daemon]\nmin_warm = 1\n[daemon.agents.claude]\nmin_warm = 2\n' >"$W/home/.config/agentkernel/config.toml"
	cd "$W/home" # a directory that cannot be a workspace
	OWN_HOME=$W/home own daemon start
	await_pool 2
	cd "$W/project"
	[ "$(OWN_HOME=$W/home own run -m claude pwd)" = "$PWD" ]
	[ "$(pool hits)" = 1 ]
}

@test "a sandbox that waited has the mounts, walls and variables of one that did not" {
	start_daemon
	as git init -q project
	cd project
	as mkdir -p .vscode sub/.claude real/deep
	as ln -s real/deep .idea # what leads to a protected place is protected, too
	for options in "-m claude" "-m codex" "--workspace --read-only --protect-new strict" "-v $W:/w --tmpfs /t:1M --workspace"; do
		# shellcheck disable=SC2086 # words
		own daemon prewarm $options --count 1
		until [ "$(status "sum(p['warm'] for p in pools)")" = "$(status "sum(p['min_warm'] for p in pools)")" ]; do sleep 0.05; done
		# shellcheck disable=SC2086
		own run $options sh -c 'cut -d" " -f 4-6 /proc/self/mountinfo | sort; grep -E "^(Cap|NoNewPrivs|Seccomp|Groups)" /proc/self/status; cat /proc/self/uid_map | wc -l; ls -la /proc/self/fd | wc -l; pwd; env | sort' 2>&1 | cat >"$W/warm"
		given=$(status 's["given"]')
		own daemon stop
		# shellcheck disable=SC2086
		own run $options sh -c 'cut -d" " -f 4-6 /proc/self/mountinfo | sort; grep -E "^(Cap|NoNewPrivs|Seccomp|Groups)" /proc/self/status; cat /proc/self/uid_map | wc -l; ls -la /proc/self/fd | wc -l; pwd; env | sort' 2>&1 | cat >"$W/cold"
		own daemon start
		await_warm 3
		[ "$given" = 1 ] || { echo "$options: $given given"; return 1; }
		sed -i "s|/agentkernel[^ ]*||" "$W/warm" "$W/cold" # directories of the state with random names
		sed -i -E 's/^(Seccomp_filters:[[:space:]]+)2$/\11/' "$W/warm" # in two steps, which refuse the same (test_seccomp)
		diff "$W/warm" "$W/cold" || { echo "$options"; return 1; }
	done
}

@test "what cannot be shown in a sandbox that waited is shown in one that did not, and refused as there" {
	start_daemon
	own daemon prewarm --workspace --count 2
	await_pool 2
	mkdir gone && cd gone && rmdir "$PWD"
	run own run --workspace true
	[ "$status" -eq 125 ]
	cd "$W"
	run own run --workspace -v /nonexistent:/x true
	[[ $status -eq 125 && $output == *nonexistent* ]]
	run own run -v "$STATE:/x" true
	[[ $status -eq 125 && $output == *"no sandbox may see"* ]]
	if [ "${AS:-root}" = root ]; then # a file system mounted after the sandbox was built
		mkdir later
		mount -t tmpfs none later
		echo there >later/file
		run own run --workspace=later cat file
		umount later
		# before 6.3 no sandbox of root can show a tmpfs, pooled or not
		[[ $output == there || $output == *"cannot map owners"* ]] || { echo "$output"; return 1; }
	fi
}

@test "a home directory and a private clone cannot wait, and prewarm says which it is" {
	start_daemon
	run own daemon prewarm --home
	[[ $status -eq 125 && $output == *"cannot wait ready: it shows your home directory" ]]
	as git init -q repository && cd repository
	run own daemon prewarm --workspace --clone
	[[ $status -eq 125 && $output == *"cannot wait ready: it works on a private clone" ]]
	run own run -v "$W:/w:ro" true
	[ "$status" -eq 0 ]
	[ "$(status 's["given"]')" = 0 ]
}

@test "processor time counts from the moment a sandbox is taken" {
	start_daemon
	own daemon prewarm --cpu-time 1s --count 1
	until [ "$(status 'pools[1]["warm"]')" = 1 ]; do sleep 0.05; done
	run own run --cpu-time 1s sh -c 'while :; do :; done'
	[[ $status -eq 152 && $output == *"used up its processor time of 1s"* ]] || { echo "$status $output"; return 1; }
	[ "$(status 'pools[1]["hits"]')" = 1 ]
}

@test "status tells what waits, what is in use and why a pool is not full" {
	start_daemon
	own run true
	own run sleep 3 &
	local sleeper=$!
	until [ "$(status 's["given"], s["in_use"]')" = "2 1" ]; do sleep 0.02; done
	await_warm 3
	[ "$(status 's["given"], pools[0]["in_use"], pools[0]["warm"], pools[0]["min_warm"], pools[0]["hits"], pools[0]["misses"], pools[0]["why_not_full"]')" = "2 1 3 3 2 0 None" ]
	own daemon status >table
	head -n 1 table | grep -Eq '^pid [0-9]+, build [0-9a-f]+(-[st]+)*, up [0-9]+s, 1 in use, 2 given$' || { cat table; return 1; }
	sed -n 3p table | grep -Eq '^native +host +moderate +3 of 3 +1 +2 +0 +-$' || { cat table; return 1; }
	kill $sleeper
	wait $sleeper || true
	until [ "$(status 's["in_use"], pools[0]["in_use"]')" = "0 0" ]; do sleep 0.02; done
	# one that cannot be built says so
	[ "${AS:-root}" = user ] || return 0
	own daemon prewarm --cpus 0.2 --count 1
	until [[ "$(status 'pools[1]["trouble"]')" == *"a fraction of a cpu needs a cgroup"* ]]; do sleep 0.02; done
	own daemon status | grep -Eq '^native +host +moderate +0 of 1 +0 +0 +0 +.*a fraction of a cpu needs a cgroup'
}

@test "a limit that is reached in a sandbox that waited is told" {
	start_daemon
	own daemon prewarm --disk 8M --count 1
	own daemon prewarm --pids 20 --count 1
	until [ "$(status 'sum(p["warm"] for p in pools)')" = 5 ]; do sleep 0.05; done
	run own run --disk 8M sh -c 'dd if=/dev/zero of=/tmp/x bs=1M count=20 2>/dev/null'
	[[ $status -eq 1 && $output == *"the disk inside is full: its limit is 8 MiB (raise it with --disk)"* ]] || { echo "$status $output"; return 1; }
	[ "$(status 'pools[1]["hits"]')" = 1 ]
	[ "${AS:-root}" = root ] || return 0 # a count of refusals needs a cgroup
	run own run --pids 20 sh -c 'for i in $(seq 40); do sleep 0.2 & done; wait'
	[[ $output == *"the limit is 20 processes and threads (raise it with --pids)"* ]] || { echo "$output"; return 1; }
	[ "$(status 'pools[2]["hits"]')" = 1 ]
}

@test "the walls of a sandbox that waited are those of every other" {
	start_daemon
	# through a pipe, also stderr: if a stream is a file, an older kernel's sandbox may have one
	# more filter
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

# All processes of this state directory's daemon: ready, being built, in use.
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
	[ "$(own_processes | wc -l)" -ge 7 ] # the daemon, and three ready sandboxes with their inits
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

# What a command inherits from its caller: priority, processors, scheduler, OOM score, limits.
INHERITED='awk "{ print \$19 }" /proc/self/stat; grep Cpus_allowed_list /proc/self/status; grep -h . /proc/self/oom_score_adj; grep -h policy /proc/self/sched 2>/dev/null || true; ulimit -n'

@test "the caller's priority, processors, scheduler and limits hold as they do without the daemon" {
	daemon_setup
	local way words
	# a program behind a filter of system calls, which allows all of them
	cat >"$W/filtered.py" <<-'PY'
	import ctypes, os, struct, sys
	code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
	program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))
	prctl = ctypes.CDLL(None).prctl
	assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0
	os.execvp(sys.argv[1], sys.argv[1:])
	PY
	own daemon start
	await_warm 3
	while read -r way; do
		read -r -a words <<<"$way"
		as "${words[@]}" env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host "$AK" run sh -c "$INHERITED" >"$W/with"
		as "${words[@]}" env AGENTKERNEL_HOME="$W/nobody" AGENTKERNEL_IMAGE=host "$AK" run sh -c "$INHERITED" >"$W/without"
		diff "$W/with" "$W/without" || { echo "with: $way"; return 1; }
	done < <(
		[ "${AS:-root}" != root ] || printf '%s\n' 'setpriv --groups 5' 'setpriv --inh-caps +chown' 'setpriv --no-new-privs' \
			'unshare --net' 'unshare --mount' 'unshare --cgroup'
		echo "python3 $W/filtered.py"
		cat <<-'WAYS'
	env
	nice -n 7
	ionice -c 3
	taskset -c 0
	chrt --batch 0
	choom -n 500 --
	prlimit --nofile=200:300
		WAYS
	)
	own daemon status | grep -q '^[0-9]* runs had other limits, groups, priorities or cgroups than the daemon'
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
	run env AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host HOME="$SHARED/home" "$AK" run sh -c "$forks" # control, outside of the group
	[ "$output" = 60 ]
	for _ in $(seq 100); do
		rmdir "$group" 2>/dev/null && break
		sleep 0.05
	done
	[ ! -e "$group" ]
}
