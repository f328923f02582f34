#!/usr/bin/env bats
# The gate as a process: when it starts, its privileges, what happens when it dies or has to end.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

RULES="--network-policy deny --allow-host tcp.allowed.test --allow-host other.test"

setup_file() {
	net_setup_file && world_serve tcp web
}

# A sandbox in the background whose shell executes commands: start_shell, say COMMAND, heard
start_shell() {
	mkfifo "$W/say"
	inside "$@" -- sh -c 'while read -r line; do eval "$line"; echo "end of $line"; done' \
		<"$W/say" >>"$W/heard" 2>&1 3>&- &
	SHELL_PID=$!
	exec 4>"$W/say"
	say true
	SUPERVISOR=$(pgrep -f "^$AK run" | head -1)
}

say() {
	: >"$W/heard"
	echo "$*" >&4
	for _ in $(seq 200); do grep -q "^end of" "$W/heard" && break; sleep 0.05; done
	output=$(grep -v "^end of" "$W/heard") || true
}

stop_shell() {
	exec 4>&-
	wait "$SHELL_PID"
}

gate_pid() {
	pgrep -P "$SUPERVISOR" '^ak-gate'
}

TALK="/usr/bin/python3 -I /world/talk.py"

@test "the gate starts with the first packet, not before" {
	start_shell $RULES
	run gate_pid
	[ "$status" -ne 0 ]
	say $TALK tcp tcp.allowed.test 2000
	says "ok 220 welcome"
	run gate_pid
	[ "$status" -eq 0 ]
	stop_shell
}

@test "the gate has no privileges, no room and cannot be looked into" {
	start_shell $RULES
	say $TALK tcp tcp.allowed.test 2000
	gate=$(gate_pid)
	status=/proc/$gate/status
	grep -q '^NoNewPrivs:.1' "$status"
	grep -q '^Seccomp:.2' "$status"
	grep -q '^CapEff:.0000000000000000' "$status"
	grep -q '^CapPrm:.0000000000000000' "$status"
	[ "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "$status" | tr ' ' '\n' | sort -u | wc -l)" -eq 1 ]
	[ "$(awk '/^Uid:/ { print $2 }' "$status")" -ne 0 ]
	[ "$(stat -c %u "/proc/$gate/maps")" -eq 0 ] # for a dumpable process it would be the gate's own
	[ "$(tr '\0' '\n' <"/proc/$gate/environ" | wc -c)" -eq 0 ]
	# nor can a compromised gate change the rules of the next one
	run ! python3 -c "open('/proc/$gate/fd/4', 'r+b', buffering=0).write(b'x')"
	[[ "$output" == *PermissionError* ]]
	for fd in 0 1 2; do [ "$(readlink "/proc/$gate/fd/$fd")" = /dev/null ]; done
	stop_shell
	[ ! -e "/proc/$gate" ]
}

@test "a gate that dies is replaced, and names keep their addresses" {
	start_shell $RULES
	say $TALK resolve tcp.allowed.test
	address=$output
	say $TALK tcp tcp.allowed.test 2000
	says "ok 220 welcome"
	for round in 1 2 3; do
		first=$(gate_pid)
		kill -9 "$first"
		say $TALK tcp "${address#ok }" 2000 # the address assigned before
		says "ok 220 welcome"
		[ "$(gate_pid)" != "$first" ]
	done
	say $TALK resolve other.test
	[ "$output" != "$address" ]
	say $TALK resolve tcp.allowed.test
	says "$address"
	say $TALK resolve denied.test # with the same rules
	says nxdomain
	stop_shell
	[[ "$(cat "$W/heard")" == *"the network broke down 3 times"* ]]
}

@test "an idle gate leaves, and comes back when it is needed" {
	start_shell $RULES
	say $TALK resolve tcp.allowed.test
	address=$output
	gate=$(gate_pid)
	for _ in $(seq 150); do [ -e "/proc/$gate" ] || break; sleep 0.1; done
	[ ! -e "/proc/$gate" ]
	say $TALK tcp "${address#ok }" 2000
	says "ok 220 welcome"
	[ "$(gate_pid)" != "$gate" ]
	stop_shell
	[[ "$(cat "$W/heard")" != *"broke down"* ]]
}

@test "while there is no gate there is no network" {
	start_shell $RULES
	say $TALK tcp tcp.allowed.test 2000
	kill -STOP "$SUPERVISOR"
	kill -9 "$(gate_pid)"
	mark wire
	say "timeout 1 $TALK tcp tcp.allowed.test 2000; echo nothing"
	says nothing
	unseen wire
	kill -CONT "$SUPERVISOR"
	say $TALK tcp tcp.allowed.test 2000
	says "ok 220 welcome"
	stop_shell
}

@test "the gate dies with its supervisor" {
	start_shell $RULES
	say $TALK tcp tcp.allowed.test 2000
	gate=$(gate_pid)
	kill -9 "$SUPERVISOR"
	for _ in $(seq 60); do [ -e "/proc/$gate" ] || break; sleep 0.1; done
	[ ! -e "/proc/$gate" ]
	exec 4>&-
	wait "$SHELL_PID" || true
}

@test "what a command has sent before it ended still arrives" {
	for size in 10 300000 3000000; do
		mark tcp
		inside $RULES -- /usr/bin/python3 -I -c "
import socket
s = socket.create_connection(('tcp.allowed.test', 2005))
s.sendall(b'/' * $size)"
		for _ in $(seq 40); do since tcp | grep -q "2005 got $size" && break; sleep 0.05; done
		seen tcp "2005 got $size"
	done
}

@test "two sandboxes at once have a gate each, with their own rules" {
	inside --network-policy deny --allow-host tcp.allowed.test -- sh -c "$TALK tcp tcp.allowed.test 2000; $TALK resolve other.test; sleep 1" >"$W/a" 3>&- &
	a=$!
	inside --network-policy deny --allow-host other.test -- sh -c "$TALK resolve tcp.allowed.test; $TALK resolve other.test; sleep 1" >"$W/b" 3>&- &
	b=$!
	wait "$a" "$b"
	[ "$(sed -n 2p "$W/a")" = nxdomain ]
	[ "$(sed -n 1p "$W/a")" = "ok 220 welcome" ]
	[ "$(sed -n 1p "$W/b")" = nxdomain ]
	[[ "$(sed -n 2p "$W/b")" == "ok 198.18."* ]]
}

@test "localhost inside is the sandbox's own, also with a gate" {
	run inside $RULES -- sh -c 'python3 -I -c "
import socket, threading
s = socket.create_server((\"127.0.0.1\", 8080)); t = threading.Thread(target=lambda: s.accept()[0].send(b\"own\")); t.start()
print(socket.create_connection((\"localhost\", 8080)).recv(9).decode())
u = socket.socket(type=socket.SOCK_DGRAM); u.bind((\"127.0.0.1\", 53)); v = socket.socket(type=socket.SOCK_DGRAM)
v.sendto(b\"dgram\", (\"127.0.0.1\", 53)); print(u.recv(9).decode())"'
	says "own
dgram"
}

# cpu PID: its processor time in hundredths of a second
cpu() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

@test "a flood of queries or refused connections takes little of the gate's processor time" {
	start_shell $RULES
	say $TALK tcp tcp.allowed.test 2000
	gate=$(gate_pid)
	for flood in udp tcp "connect $DENIED 2000"; do
		before=$(cpu "$gate")
		say $TALK drown 6 $flood
		used=$(($(cpu "$gate") - before))
		[[ "$output" == "ok "* ]]
		[ "${output#ok }" -gt 1000 ]
		echo "$flood: ${output#ok } in 6 s, $used hundredths of the gate"
		[ "$used" -lt 90 ] || [ -n "${REPORTS:-}" ] # sanitizers cost more than the gate
		[ "$(gate_pid)" = "$gate" ]
	done
	say $TALK tcp tcp.allowed.test 2000 # and it works again
	says "ok 220 welcome"
	stop_shell
}

@test "a burst of lookups is answered at once" {
	run inside --network-policy deny --allow-host '*.allowed.test' -- python3 -I -c "
import concurrent.futures, socket
def look(i): return socket.getaddrinfo(f'package{i}.allowed.test' if i % 3 else f'no{i}.denied.test', 443)
def works(i):
    try: return bool(look(i))
    except socket.gaierror as e: return e.errno
with concurrent.futures.ThreadPoolExecutor(100) as pool: print(sorted(map(str, set(pool.map(works, range(300))))))"
	says "['-2', 'True']"
}

@test "a flood of denied names hides no connection in the log, and leaves room for others" {
	home="$SHARED/home/log-$RANDOM"
	install -d -m 777 "$home"
	IN="env AGENTKERNEL_HOME=$home/state"
	enter=in_world
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	"$enter" $IN "$AK" run --network --network-policy deny -- getent ahostsv4 first.test || true
	"$enter" $IN "$AK" run --network -v "$WORLD/pub:/world:ro" $RULES -- sh -c "$TALK flood 6000 $(printf 'x%.0s' {1..60}).denied.test
		$TALK tcp tcp.allowed.test 2000; $TALK tcp $DENIED 2000"
	[ "$(stat -c %s "$home/state/network.log")" -lt 2000000 ]
	run "$enter" $IN "$AK" network log
	has first.test
	grep -q 'allowed *tcp.allowed.test *2000 *1 ' <<<"$output"
	grep -q "denied *$DENIED *2000 *1 " <<<"$output"
	grep -q 'denied *(others)' <<<"$output"
	grep -q 'denied *(log full)' <<<"$output"
}

@test "few descriptors are enough for a gate, and too few are told" {
	enter=in_world
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	limited() {
		"$enter" sh -c 'ulimit -n "$1"; shift; exec "$@"' - "$1" "$AK" run --network -v "$WORLD/pub:/world:ro" $RULES -- \
			sh -c "$TALK tcp tcp.allowed.test 2000; exit 3"
	}
	run limited 64
	[ "$status" -eq 3 ]
	says "ok 220 welcome"
	for few in 40 38 36 34 32 30 28 26 24; do # root's sandbox has a few more of them
		run limited "$few"
		[ "$status" -eq 3 ] || continue
		[[ "$output" == *"ok 220 welcome"* ]] || break
	done
	has "the network broke down"
	[[ "$output" =~ "No file descriptors available"|"Too many open files" ]] # of musl, of glibc
}

@test "a gate that cannot be executed is told at the end, and nothing is left" {
	mkdir "$SHARED/apart"
	chmod 755 "$SHARED/apart"
	cp "$AK" "$AK-gate" "$SHARED/apart/"
	start_apart() {
		AK=$SHARED/apart/agentkernel inside $RULES -- sh -c "sleep 0.7; timeout 2 getent ahosts tcp.allowed.test; exit 3" >"$W/out" 2>&1 3>&- &
		pid=$!
		sleep 0.3
	}
	start_apart
	rm "$SHARED/apart/agentkernel-gate"
	wait "$pid" || true
	run cat "$W/out"
	has "start '$SHARED/apart/agentkernel-gate': No such file or directory"
	cp "$AK-gate" "$SHARED/apart/"
	start_apart
	chmod 644 "$SHARED/apart/agentkernel-gate"
	wait "$pid" || true
	run cat "$W/out"
	has "start '$SHARED/apart/agentkernel-gate': Permission denied"
	printf '#!/bin/sh\nexit 3\n' >"$SHARED/apart/agentkernel-gate"
	chmod 755 "$SHARED/apart/agentkernel-gate"
	start_apart
	wait "$pid" || true
	run cat "$W/out"
	has "the gate ended with status 3"
	AK=$SHARED/apart/agentkernel
	cp "$AK" "$W/own"
	rm "$SHARED/apart/agentkernel-gate"
	run inside $RULES -- true
	[ "$status" -eq 125 ]
	has "agentkernel-gate' is not there"
	[ -z "$(processes_of "$SHARED/apart/*")" ]
}

@test "a malformed hello is answered by an alert, in one piece and in two" {
	run inside $RULES -- python3 -I -c "
import socket, time
hello = b'\x16\x03\x01\x00\x09\x01\x00\x00\x05\x03\x03\xff\xff\xff'
for parts in [hello], [hello[:3], hello[3:]]:
    s = socket.create_connection(('tcp.allowed.test', 443))
    for part in parts: s.sendall(part); time.sleep(0.3)
    print(s.recv(99))
exit(3)"
	[ "$status" -eq 3 ]
	[ "${lines[0]}" = 'b'"'"'\x15\x03\x03\x00\x02\x022'"'" ]
	[ "${lines[1]}" = "${lines[0]}" ]
	has "the network policy denied tcp.allowed.test"
	has "malformed"
}
