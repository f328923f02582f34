#!/usr/bin/env bats
# Many, slow and invalid connections: they end by themselves, and others are not affected.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

RULES="--network-policy deny --allow-host tcp.allowed.test"

setup_file() {
	net_setup_file && world_serve tcp web
}

# beside COUNT PORT TEXT: one sandbox keeps connections open while another one works
beside() {
	inside --nofile 4096 $RULES -- /usr/bin/python3 -I /world/talk.py hold "$1" tcp.allowed.test "$2" "$3" >"$W/first" 3>&- &
	local pid=$!
	for _ in $(seq 200); do [ -s "$W/first" ] && break; sleep 0.05; done
	run try $RULES -- tcp tcp.allowed.test 2000
	says "ok 220 welcome"
	wait "$pid"
	cat "$W/first"
	grep -q '^ok [0-9]* ok 220 welcome' "$W/first"
}

@test "1,000 idle connections" {
	beside 1000 2003 x
	grep -q '^ok 1000 ' "$W/first"
}

@test "more connections than a sandbox may have" {
	beside 4000 2003 x
}

@test "requests that never end" {
	beside 300 80 'GET / HTTP/1.1\r\nHost: tcp.'
	beside 300 443 '\x16\x03\x01\x40\x00\x01'
}

@test "heads that never end are bounded in memory, and the gate lives" {
	run inside --nofile 4096 $RULES -- python3 -I -c "
import socket
held = []
head = b'GET / HTTP/1.1\r\nHost: tcp.allowed.test\r\n' + b'X: ' + b'f' * 60000
for i in range(600):
    s = socket.create_connection(('tcp.allowed.test', 2003)); held.append(s)
    try: s.sendall(head)
    except OSError: pass
refused = 0
for s in held:
    s.settimeout(0.01)
    try: refused += s.recv(99) != b'never'
    except TimeoutError: pass
    except OSError: refused += 1
for s in held[:20]: s.close()
print(refused > 200, socket.create_connection(('tcp.allowed.test', 2000)).recv(99).decode().strip())"
	says "True 220 welcome"
}

@test "a lane that waits for bandwidth is paused once, whatever the server says" {
	run inside $RULES --bandwidth 50KB/s --timeout 20s -- python3 -I -c "
import socket, threading, time
def one(i):
    s = socket.create_connection(('tcp.allowed.test', 7)); s.settimeout(2)
    try:
        s.sendall(b'/' * 200000)
        while s.recv(65536): pass
    except OSError: pass
    if i % 2: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    s.close()
ts = [threading.Thread(target=one, args=(i,)) for i in range(24)]
[t.start() for t in ts]; [t.join() for t in ts]
print('done')"
	says "done"
}

@test "garbage on any port" {
	noise=$(for i in $(seq 32); do printf '\\x%02x' $((i * 37 % 256)); done)
	run inside $RULES -- sh -c "for p in 7 22 80 443 2000 2001 2003; do python3 -I /world/talk.py send tcp.allowed.test \$p '$noise' '\x16$noise' 'GET $noise'; done
		python3 -I /world/talk.py tcp tcp.allowed.test 2000"
	[ "${lines[-1]}" = "ok 220 welcome" ]
}

@test "a bandwidth limit holds" {
	start=$(date +%s%N)
	run try $RULES --bandwidth 10MB/s -- get tcp.allowed.test 2004
	says "ok 20000000"
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$took" -ge 1400 ]
	[ "$took" -le 5000 ]
	start=$(date +%s%N)
	run try $RULES -- get tcp.allowed.test 2004 # control
	says "ok 20000000"
	[ $((($(date +%s%N) - start) / 1000000)) -lt 1000 ]
}
