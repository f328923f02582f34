#!/usr/bin/env bats
# No mount, cgroup, process, file or descriptor is left behind, also after failures.
load helpers
bats_require_minimum_version 1.5.0

# What a run could leave behind, listed before and after. Others may use the machine too:
# tests/run-all gives this file its own mount namespace, and folders of other tests and cgroups of
# living callers are ignored.
world() {
	local group pid
	cat /proc/self/mountinfo
	find /sys/fs/cgroup -name 'agentkernel-*' 2>/dev/null | while read -r group; do
		pid=${group##*/agentkernel-}
		[ -e "/proc/${pid%%-*}" ] || echo "$group"
	done
	processes_of "$AK"
	find /tmp /run /dev/shm -maxdepth 1 -regextype egrep -name '*agentkernel*' \
		-not -regex '/tmp/agentkernel-(test|world|faults|valgrind|reports)[.-].*' 2>/dev/null
}

begin() {
	ak run true
	world | sort >"$W/before"
}

# nothing_new [TRIES]: a cgroup may belong to another run that was just killed, so it has half a
# minute to disappear
nothing_new() {
	local tries=${1:-1} left
	while :; do
		left=$(world | sort | comm -13 "$W/before" -)
		[ -n "$left" ] || return 0
		tries=$((tries - 1))
		[ "$tries" -le 0 ] && grep -q -v '^/sys/fs/cgroup/' <<<"$left" && break
		[ "$tries" -le -300 ] && break
		sleep 0.1
	done
	echo "left: $left"
	return 1
}

@test "300 runs one after the other leave nothing" {
	begin
	as bash -c "for i in \$(seq 300); do $AK run true || exit 1; done"
	nothing_new
}

@test "100 runs at once leave nothing" {
	begin
	as bash -c "for i in \$(seq 100); do $AK run sh -c 'echo x' >>$W/out & done; wait"
	[ "$(wc -l <"$W/out")" -eq 100 ]
	nothing_new
}

@test "callers killed at any moment leave nothing" {
	begin
	run as python3 - "$AK" "60.$$" <<-'PY'
	import os, random, signal, subprocess, sys, time
	random.seed(1)
	mount = ["--mount", os.getcwd() + ":/w"]
	for i in range(160):
	    options = mount if i % 2 else []
	    p = subprocess.Popen([sys.argv[1], "run"] + options + ["sleep", sys.argv[2]], stdin=subprocess.DEVNULL,
	        start_new_session=True)
	    time.sleep(random.random() * 0.02)
	    if i % 4 < 2:
	        p.send_signal(signal.SIGKILL)
	    else:
	        os.killpg(p.pid, signal.SIGKILL) # as timeout -s KILL does
	    p.wait()
	print("done")
	PY
	says "done"
	nothing_new 40
	run ! pgrep -f "^sleep 60.$$"
}

@test "signals to the whole group, as from Ctrl-C, leave nothing at any moment" {
	begin
	run as python3 - "$AK" <<-'PY'
	import os, random, signal, subprocess, sys, time
	random.seed(2)
	for i in range(150):
	    # whoever runs the tests in the background ignores the signal, and so would all below
	    p = subprocess.Popen([sys.argv[1], "run", "sleep", "60"], stdin=subprocess.DEVNULL,
	        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
	    time.sleep(random.random() * 0.006)
	    os.killpg(p.pid, signal.SIGINT)
	    p.wait()
	print("done")
	PY
	says "done"
	nothing_new
}

@test "failures leave nothing" {
	begin
	run ak run --mount /no/such true
	run ak run --workdir /no/such true
	run -127 ak run nosuch
	run ak run --mount "$W:/usr/new" true
	run ak run --timeout 50ms sleep 10
	nothing_new
}

@test "a full disk is an error in words, or no matter at all" {
	only_root
	mkdir "$W/full"
	mount -t tmpfs -o size=64k,nr_inodes=8 none "$W/full"
	head -c 1M /dev/zero >"$W/full/fill" 2>/dev/null || true
	run bash -c "cd $W/full && TMPDIR=$W/full $AK run echo fine"
	umount "$W/full"
	says fine
}
