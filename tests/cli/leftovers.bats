#!/usr/bin/env bats
# Nothing stays: no mount, cgroup, process, file or descriptor; also when things end badly.
load helpers
bats_require_minimum_version 1.5.0

# What a run could leave: counted before and after.
world() {
	wc -l </proc/self/mountinfo
	find /sys/fs/cgroup -name 'agentkernel-*' 2>/dev/null | wc -l
	pgrep -c -f "^$AK " || true
	find /tmp /run /dev/shm -newer "$SHARED/mark" -not -path "$SHARED*" -name '*agentkernel*' 2>/dev/null | sort
}

@test "300 runs one after the other leave nothing" {
	ak run true
	touch "$SHARED/mark"
	before=$(world)
	as bash -c "for i in \$(seq 300); do $AK run true || exit 1; done"
	says_world=$(world)
	[ "$says_world" = "$before" ] || { diff <(echo "$before") <(echo "$says_world"); false; }
}

@test "100 runs at once leave nothing" {
	ak run true
	touch "$SHARED/mark"
	before=$(world)
	as bash -c "for i in \$(seq 100); do $AK run sh -c 'echo x' >>$W/out & done; wait"
	[ "$(wc -l <"$W/out")" -eq 100 ]
	after=$(world)
	[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after"); false; }
}

@test "callers killed at any moment leave nothing" {
	ak run true
	touch "$SHARED/mark"
	before=$(world)
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
	for _ in $(seq 40); do
		after=$(world)
		[ "$after" = "$before" ] && break
		sleep 0.1
	done
	[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after"); false; }
	run ! pgrep -f "^sleep 60.$$"
}

@test "signals to the whole group, as from Ctrl-C, leave nothing at any moment" {
	ak run true
	touch "$SHARED/mark"
	before=$(world)
	run as python3 - "$AK" <<-'PY'
	import os, random, signal, subprocess, sys, time
	random.seed(2)
	for i in range(150):
	    p = subprocess.Popen([sys.argv[1], "run", "sleep", "60"], stdin=subprocess.DEVNULL,
	        start_new_session=True)
	    time.sleep(random.random() * 0.006)
	    os.killpg(p.pid, signal.SIGINT)
	    p.wait()
	print("done")
	PY
	says "done"
	after=$(world)
	[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after"); false; }
}

@test "failures leave nothing" {
	ak run true
	touch "$SHARED/mark"
	before=$(world)
	run ak run --mount /no/such true
	run ak run --workdir /no/such true
	run -127 ak run nosuch
	run ak run --mount "$W:/usr/new" true
	run ak run --timeout 50ms sleep 10
	after=$(world)
	[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after"); false; }
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
