#!/usr/bin/env bats
# What programs do to their own processes, queues and sockets works as outside.
load helpers
bats_require_minimum_version 1.5.0

@test "a process may write its own comm, raise its oom_score_adj, and not lower it" {
	only_host
	run ak run sh -c 'echo other >/proc/self/comm; echo 300 >/proc/self/oom_score_adj && cat /proc/self/oom_score_adj; echo -300 >/proc/self/oom_score_adj'
	[[ "$output" == 300*"ermission denied"* ]] || [[ "$output" == 300*"I/O error"* ]]
}

@test "knobs of the kernel stay read-only, those of the sandbox's own namespaces too" {
	run ak run sh -c 'echo 70 >/proc/sys/net/ipv4/ip_default_ttl'
	[[ "$output" == *"ead-only file system"* ]]
	[ ! -e /proc/pressure/memory ] || {
		run ak run sh -c 'echo "some 500000 2000000" >/proc/pressure/memory'
		[[ "$output" == *"ead-only file system"* ]]
	}
}

@test "where tracing is forbidden nothing in /proc can be written" {
	run ak run -p restrictive sh -c 'echo other >/proc/self/comm'
	[[ "$output" == *"ead-only file system"* ]]
}

@test "a debugger writes its debuggee's memory through /proc" {
	only_host
	cat >"$W/mem.py" <<'EOF'
import ctypes, os
child = os.fork()
value = ctypes.c_int(1)
libc = ctypes.CDLL(None, use_errno=True)
if child == 0:
    libc.ptrace(0, 0, None, None)
    os.kill(os.getpid(), 19)
    os._exit(value.value)
os.waitpid(child, 0)
with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
    memory.seek(ctypes.addressof(value))
    memory.write((42).to_bytes(4, "little"))
libc.ptrace(17, child, None, None)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
EOF
	chmod 644 "$W/mem.py"
	run ak run --mount "$W/mem.py:/mem.py:ro" python3 /mem.py
	says 42
}

@test "POSIX message queues carry messages" {
	run probe -- queue
	says ok
	run probe -p restrictive -- queue
	says ok
}

@test "limits of one's own children can be read and lowered, those of pid 1 not" {
	only_host
	run ak run python3 -c '
import os, resource, time
child = os.fork()
if child == 0:
    time.sleep(2)
    os._exit(0)
soft, hard = resource.prlimit(child, resource.RLIMIT_NOFILE)
resource.prlimit(child, resource.RLIMIT_NOFILE, (64, hard))
print(resource.prlimit(child, resource.RLIMIT_NOFILE)[0])
try:
    resource.prlimit(1, resource.RLIMIT_NOFILE, (64, 64))
except PermissionError:
    print("pid 1: no")
os.kill(child, 9)'
	says $'64\npid 1: no'
}

@test "ss shows the sandbox's own sockets, and none of the host's" {
	only_host
	command -v ss >/dev/null || skip "there is no ss here"
	python3 -c 'import socket, time; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(20)' >"$W/port" 3>&- &
	outside=$!
	until [ -s "$W/port" ]; do sleep 0.05; done
	run ak run python3 -c '
import os, socket
s = socket.socket(); s.bind(("127.0.0.1", 8123)); s.listen()
os.system("ss -tlnH")'
	kill "$outside"
	[[ "$output" == *"127.0.0.1:8123"* ]]
	[[ "$output" != *":$(cat "$W/port") "* ]]
}
