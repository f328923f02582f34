#!/usr/bin/env bats
# Limits stop what they should, with a message.
load helpers
bats_require_minimum_version 1.5.0

@test "memory: one process is stopped at the limit" {
	run probe --memory 64M -- eat 200
	if [ "${AS:-root}" = root ]; then
		fails_with 137 "ran out of memory: its limit is 64 MiB"
	else
		[[ "$output" == ENOMEM || "$output" == *"ran out of memory"* ]]
	fi
	run probe --memory 64M -- eat 30
	says ok
}

@test "memory: many processes together are stopped at the limit" {
	start=$(date +%s)
	run probe --memory 200M -- eat-pieces 20 50
	[[ "$output" == *"memory"*"limit is 200 MiB"* ]]
	[ $(($(date +%s) - start)) -lt 15 ]
}

@test "memory: --json tells" {
	run probe --json --memory 100M -- eat-pieces 10 50
	python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["oom"] is True, r' "$output"
}

@test "memory: shared memory counts, and forks that share pages do not count twice" {
	run probe --memory 64M -- eat-shared 300
	[[ "$output" == *"memory"* ]]
	run probe --memory 200M -- fork-sharing 60 6
	says ok
}

@test "memory: files in /tmp and /dev/shm end at half of it" {
	run probe --memory 64M -- fill /tmp/x
	[[ "$output" == "ENOSPC after 3"[0-9]" MiB" ]]
	run probe --memory 64M -- fill /dev/shm/x
	[[ "$output" == "ENOSPC after 3"[0-9]" MiB" ]]
}

@test "pids: a fork bomb ends at the limit and leaves nothing" {
	run probe --pids 50 -- fork-bomb
	[ "${lines[0]}" = "EAGAIN after 49" ]
	run probe -p restrictive -- fork-bomb
	[ "${lines[0]}" = "EAGAIN after 511" ]
}

@test "disk: bytes and inodes are limited" {
	run probe --disk 10M -- fill /tmp/x
	[[ "$output" == "ENOSPC after 9 MiB" || "$output" == "ENOSPC after 10 MiB" ]]
	run probe --disk 10M -- inodes /tmp
	[[ "$output" == "ENOSPC after "* ]]
	run probe --tmpfs /scratch:2M -- fill /scratch/x
	[[ "$output" == "ENOSPC after "[12]" MiB" ]]
	run probe --read-only --disk 10M -- fill /tmp/x
	[[ "$output" == "ENOSPC after "* ]]
}

@test "nofile and file-size hold" {
	run ak run --nofile 20 python3 -c '
import os
try:
    while True: last = os.open("/dev/null", 0)
except OSError as e: print(e.errno, last)'
	says "24 19"
	run ak run --file-size 1M sh -c 'head -c 2M /dev/zero >/tmp/x; stat -c %s /tmp/x'
	[[ "$output" == *1048576* ]]
}

# How many inotify watches can be created, up to MOST, and the error then.
watches() {
	"$@" python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
most, got = int(sys.argv[1]), 0
names = [b"/tmp/w%d" % i for i in range(1500)]
for name in names:
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
while got < most:
    fd = libc.inotify_init1(0)
    if fd < 0:
        sys.exit("no instance: %s" % os.strerror(ctypes.get_errno()))
    for name in names:
        if libc.inotify_add_watch(fd, name, 2) < 0 or got == most:
            break
        got += 1
    else:
        continue
    break
for name in names:
    os.unlink(name)
print(got, "all" if got == most else os.strerror(ctypes.get_errno()))' "$most"
}

@test "inotify: a sandbox has a share of the account's watches, and no more" {
	only_host
	account=$(cat /proc/sys/fs/inotify/max_user_watches)
	share=$((account / 4))
	[ "$share" -le 65536 ] || share=65536
	[ "$share" -lt 90000 ] && [ "$account" -gt "$((share + 1000))" ] || skip "this machine has too few watches"
	most=$((share + 1000))
	run watches as
	says "$most all" || skip "others use up the account's watches"
	run watches ak run
	says "$share No space left on device"
	# what one sandbox uses is not missing for another
	most=1000
	run watches ak run
	says "1000 all"
}

@test "cpu-time: of all processes together" {
	start=$(date +%s%N)
	run probe --cpu-time 500ms -- burn 2
	fails_with 152 "used up its processor time of 500ms"
	[ $((($(date +%s%N) - start) / 1000000)) -lt 5000 ]
}

@test "cpu-time: also of children that nobody waits for" {
	only_root # without a cgroup such time is not visible: SECURITY.md
	run probe --cpu-time 1s -- burn-unseen 6
	fails_with 152 "used up its processor time of 1s"
}

@test "cpus: a share is enforced or refused" {
	if [ "${AS:-root}" = root ]; then
		run ak run --json --cpus 0.2 --timeout 1s sh -c 'while :; do :; done'
		python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["cpu_ms"] < 600, r' "$output"
	else
		run ak run --cpus 0.2 true
		fails_with 125 "a fraction of a cpu needs a cgroup"
		run probe --cpus 1 -- cpus
		says "ok 1"
		run probe --cpus 1 -- affinity
		says EPERM
		run probe -- affinity
		says ok
	fi
}

@test "io: a rate is enforced or refused" {
	if [ "${AS:-root}" = root ]; then
		[ -e /sys/dev/block/$(stat -c '%Hd:%Ld' "$W") ] || skip "the test directory is not on a disk"
		head -c 20M /dev/urandom >"$W/data"
		sync "$W/data"
		echo 1 >"$W/x"
		run ak run --json --io-read 4MB/s --mount "$W:/w:ro" dd if=/w/data of=/dev/null bs=1M iflag=direct
		python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["exit_code"]==0, r; assert r["duration_ms"] > 3000, r["duration_ms"]' "$output"
	else
		run ak run --io-read 1MB/s true
		fails_with 125 "--io-read: a rate for disks needs a cgroup"
	fi
}

@test "the root is read-only where the policy says so" {
	run ak run --read-only sh -c 'touch /x; touch /etc/x; touch /var/x; touch /tmp/ok && touch ~/ok && echo rest'
	[[ "$output" == *"rest" ]]
	[ "$(grep -c 'Read-only' <<<"$output")" -eq 3 ]
	run ak run sh -c 'touch /x /etc/x /var/x && mkdir /new && echo all'
	says all
}

@test "restrictive is not root and has one cpu, 512 pids and 512 MiB" {
	run ak run -p restrictive id -u
	says 1000
	run ak policy show -p restrictive
	[[ "$output" == *"memory"*"512 MiB"*"--profile"* ]]
	[[ "$output" == *"pids"*"512"* ]]
}

@test "policy show names who set each value" {
	run ak policy show -p restrictive --memory 1G --user root
	[[ "$output" =~ memory[[:space:]]+1\ GiB[[:space:]]+--memory ]]
	[[ "$output" =~ user[[:space:]]+0:0[[:space:]]+--user ]]
	[[ "$output" =~ pids[[:space:]]+512[[:space:]]+--profile ]]
	[[ "$output" =~ nofile[[:space:]]+65536[[:space:]]+default ]]
	run ak policy show --json
	python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["memory"]["value"]=="2 GiB"' "$output"
}

# shows PATH TEXT [run's options]: the content of a file inside
shows() {
	local path=$1 wanted=$2
	shift 2
	run ak run "$@" cat "$path"
	says "$wanted"
}

@test "what is shown: the sandbox's memory, processors and processes, as on cgroup v2" {
	shows /sys/fs/cgroup/memory.max 268435456 --memory 256M
	shows /sys/fs/cgroup/cpu.max "100000 100000" --cpus 1
	shows /sys/fs/cgroup/pids.max 51 --pids 50
	run ak run --memory 256M sh -c 'free -m' # reads /proc/meminfo
	[[ "$output" == *"Mem: "*" 256 "* ]]
	# without a limit the machine's values are shown
	total=$(sed -n 's/^MemTotal: *//p' /proc/meminfo)
	run ak run -p permissive sed -n 's/^MemTotal: *//p' /proc/meminfo
	says "$total"
}

@test "what is shown: a limit beyond this machine's memory is this machine's memory" {
	total=$(sed -n 's/^MemTotal: *//p' /proc/meminfo)
	run ak run --memory 1024G sed -n 's/^MemTotal: *//p' /proc/meminfo
	says "$total"
}

@test "what is shown: as many processors as it may use" {
	[ "$(nproc)" -gt 1 ] || skip "this machine has one processor"
	run ak run --cpus 1 nproc
	says 1
	run ak run nproc
	says "$(nproc)"
	run ak run --cpus 1 grep -c ^processor /proc/cpuinfo
	says 1
	run ak run --cpus 1 sh -c 'getconf _NPROCESSORS_ONLN; cat /sys/devices/system/cpu/possible'
	says "1
$(cat /sys/devices/system/cpu/possible)"
	# the number is that of the processor it runs on
	run ak run --cpus 1 sh -c 'taskset -cp $$ | sed "s/.*: //"; cat /sys/devices/system/cpu/online; sed -n "s/^processor.*: //p" /proc/cpuinfo'
	[ "${lines[0]}" = "${lines[1]}" ] && [ "${lines[1]}" = "${lines[2]}" ]
}

@test "what is shown: lscpu works" {
	only_host
	run ak run lscpu
	[ "$status" -eq 0 ]
	[[ "$output" == *"On-line CPU(s) list:"* ]]
}

@test "what is shown: java sizes itself by it" {
	only_host
	command -v java >/dev/null || skip "no java here"
	run ak run --memory 1G --cpus 1 java -XshowSettings:system -version
	[[ "$output" == *"Effective CPU Count: 1"* ]]
	[[ "$output" == *"Memory Limit: 1.00G"* ]]
	run ak run --memory 1G java -XX:+PrintFlagsFinal -version
	[[ "$output" =~ " MaxHeapSize "*"= 268435456 " ]]
}

@test "what is shown: node knows its limit" {
	only_host
	command -v node >/dev/null || skip "no node here"
	run ak run --memory 1G node -p 'process.constrainedMemory ? process.constrainedMemory() : 1 << 30'
	says 1073741824
	run ak run --memory 1G node -p 'require("os").totalmem()'
	says 1073741824
	run ak run --cpus 1 node -p 'require("os").availableParallelism()'
	says 1
}

@test "what is shown: Go starts as many threads as it may use" {
	only_host
	command -v go >/dev/null || skip "no go here"
	cat >main.go <<-'E'
		package main
		import ("fmt"; "runtime")
		func main() { fmt.Println(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }
	E
	GOCACHE=$W/cache GOPATH=$W/path go build -o cpus main.go
	run ak run --cpus 1 --mount "$W/cpus:/cpus:ro" /cpus
	says "1 1"
}

@test "what is shown: nothing of it can be changed, nor anything else of /sys be seen" {
	run ak run --memory 256M sh -c 'echo max >/sys/fs/cgroup/memory.max'
	[ "$status" -ne 0 ] && [[ "$output" == *"Read-only file system"* ]]
	run ak run --memory 256M sh -c 'echo >/proc/meminfo'
	[ "$status" -ne 0 ] && [[ "$output" == *"Read-only file system"* ]]
	run ak run sh -c 'ls -A /sys /sys/devices /sys/fs'
	says "/sys:
devices
fs

/sys/devices:
system

/sys/fs:
cgroup"
}

@test "what is shown: files that were made once serve the next, and tell of nobody" {
	runtime=$W/runtime
	as mkdir -m 700 "$runtime"
	if [ "${AS:-root}" = root ]; then
		kept=/run/agentkernel/limits
	else
		kept=$runtime/agentkernel/limits
	fi
	for _ in 1 2; do
		run as env XDG_RUNTIME_DIR="$runtime" "$AK" run --memory 123M cat /sys/fs/cgroup/memory.max
		says 128974848
	done
	find "$kept" -maxdepth 1 -name '*-7b00000-*' | grep -q .
	! find "$kept" -maxdepth 1 -name '.new*' | grep . || false
	for pids in 100 200; do # what else the files say is part of the name, too
		[ "$(as env XDG_RUNTIME_DIR="$runtime" "$AK" run --pids $pids cat /sys/fs/cgroup/pids.max)" = $((pids + 1)) ] # with init
	done
	if [ "$(nproc)" -gt 1 ]; then
		[ "$(as env XDG_RUNTIME_DIR="$runtime" "$AK" run cat /sys/devices/system/cpu/online)" != 1 ]
		[ "$(as taskset -c 1 env XDG_RUNTIME_DIR="$runtime" "$AK" run cat /sys/devices/system/cpu/online)" = 1 ]
	fi
	# a place where nothing can be kept is no reason to fail
	if [ "${AS:-root}" = user ]; then
		rm -rf "$kept" && touch "$kept"
		run as env XDG_RUNTIME_DIR="$runtime" "$AK" run --memory 123M cat /sys/fs/cgroup/memory.max
		says 128974848
	fi
	run ak run cat /proc/self/mountinfo
	[[ "$output" != *"$SHARED"* ]]
}

@test "what is shown: what is kept is used again, thrown away when it is too much, and nobody else's" {
	[ "${AS:-root}" = user ] || skip "root's is the whole machine's: others work there meanwhile"
	local kept=$W/runtime/agentkernel/limits shown=/sys/fs/cgroup/memory.max before
	kept_run() {
		as env XDG_RUNTIME_DIR="$W/runtime" "$AK" run "$@"
	}
	as mkdir -m 700 "$W/runtime"
	kept_run --memory 123M true
	before=$(stat -c '%y %i' "$kept" "$kept"/*)
	[ "$(kept_run --memory 123M cat $shown)" = 128974848 ]
	[ "$(stat -c '%y %i' "$kept" "$kept"/*)" = "$before" ] # nothing was made beside it either
	for i in $(seq 70); do as mkdir "$kept/old-$i"; done
	kept_run --memory 124M true
	[ "$(find "$kept" -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ]
	# what others could have written is not shown
	as sh -c 'chmod -R u+w "$0" && echo planted >"$(find "$0" -name memory.max)"' "$kept"
	[ "$(kept_run --memory 124M cat $shown)" = planted ] # the control
	chmod 777 "$W/runtime/agentkernel"
	[ "$(kept_run --memory 124M cat $shown)" = 130023424 ]
	chmod 700 "$W/runtime/agentkernel"
	chown root:12345 "$W/runtime/agentkernel" && chmod 750 "$W/runtime/agentkernel"
	[ "$(kept_run --memory 124M cat $shown)" = 130023424 ]
}

@test "reaching the limit of processes is told, with the option" {
	only_root # counting refusals needs a cgroup
	run --separate-stderr ak run --pids 20 sh -c 'for i in $(seq 40); do sleep 0.2 & done; wait'
	[[ "$stderr" == *"a process inside could not be started: the limit is 20 processes and threads (raise it with --pids)"* ]]
	run --separate-stderr ak run --pids 60 sh -c 'for i in $(seq 40); do sleep 0.1 & done; wait; false'
	[ -z "$stderr" ]
}

@test "reaching the limit of the disk is told, with the option, where the command failed" {
	run ak run --disk 8M sh -c 'dd if=/dev/zero of=/tmp/x bs=1M count=20 2>/dev/null'
	fails_with 1 "the disk inside is full: its limit is 8 MiB (raise it with --disk)"
	run ak run --disk 8M sh -c 'dd if=/dev/zero of=/tmp/x bs=1M count=20 2>/dev/null; true'
	says ""
	run ak run --disk 8M false
	says ""
}
