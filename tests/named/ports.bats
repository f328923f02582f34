#!/usr/bin/env bats
# Ports of sandboxes that are reachable from the host: -P, port, forward.

load helpers

# serve.py PORT [ADDRESS]: answers each connection with what it was sent, in capitals, after its end
SERVE='
import socket, sys, threading
def talk(c):
    data = b""
    while True:
        piece = c.recv(65536)
        if not piece:
            break
        data += piece
    c.sendall(data.upper())
    c.close()
address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
family = socket.AF_INET6 if ":" in address else socket.AF_INET
s = socket.create_server((address, int(sys.argv[1])), family=family, backlog=128)
print("ready", flush=True)
while True:
    threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
'

# ask PORT [ADDRESS]: prints what the server answers after the half-close
ask() {
	python3 -I - "$@" <<-'END'
		import socket, sys
		try:
		    s = socket.create_connection((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), 5)
		    s.settimeout(5)
		    s.sendall(b"hello")
		    try:
		        s.shutdown(socket.SHUT_WR)
		    except OSError:
		        pass  # reset meanwhile: recv() tells
		    print((s.recv(100) or b"(end)").decode())
		except ConnectionResetError:
		    print("reset")
	END
}

free_port() {
	python3 -I -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# end_run PORT: ends the run that publishes it, in the background
end_run() {
	kill -TERM "$(pgrep -of "^$AK run .*$1")"
	wait "$run_pid" || true
}

# served NAME OPTION...: a running sandbox with the server on port 3000
served() {
	started "$@"
	ID=$(ak exec -d "$1" python3 -c "$SERVE" 3000)
	until_true logs_have "$1" "$ID" ready
}

logs_have() {
	ak logs "$1" "$2" 2>/dev/null | grep -q "$3"
}

@test "run -P: a server inside is reached, half-close included, and is gone with the run" {
	port=$(free_port)
	ak run -P "$port:3000" python3 -c "$SERVE" 3000 >out 2>&1 3>&- &
	run_pid=$!
	until_true grep -q ready out
	[ "$(ask "$port")" = HELLO ]
	[ "$(ask "$port")" = HELLO ]
	end_run "$port"
	run ask "$port"
	[ "$status" -ne 0 ]
}

@test "run -P without a network: reached, and still without a network" {
	port=$(free_port)
	ak run --no-network -P "$port:3000" sh -c "ls /sys/class/net 2>/dev/null; exec python3 -c '$SERVE' 3000" >out 2>&1 3>&- &
	run_pid=$!
	until_true grep -q ready out
	[ "$(ask "$port")" = HELLO ]
	end_run "$port"
	run ak run --no-network -P "$port:3000" python3 -c 'import socket; socket.create_connection(("198.51.100.7", 80), 2)'
	[ "$status" -ne 0 ]
	[[ "$output" == *"unreachable"* ]] || { echo "$output"; false; }
}

@test "run -P 0: a free port is chosen and printed" {
	ak run -P 0:3000 python3 -c "$SERVE" 3000 >out 2>&1 3>&- &
	run_pid=$!
	until_true grep -q ready out
	port=$(sed -n 's/.*port 3000 inside is reachable at 127.0.0.1:\([0-9]*\)$/\1/p' out)
	[ "$(ask "$port")" = HELLO ]
	end_run 0:3000
}

@test "a port that is taken is refused before anything starts, and by whom it is taken" {
	python3 -I -c 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(60)' >taken 3>&- &
	server=$!
	until_true test -s taken
	[ "${AS:-root}" = root ] || chown "$CALLER_ID" taken
	run ak run -P "$(cat taken):3000" touch made
	kill "$server"
	[ "$status" -eq 125 ]
	[[ "$output" == *"port $(cat taken) of 127.0.0.1 is taken by "* ]]
	[ "${AS:-root}" != root ] || [[ "$output" == *"python3 (process $server)"* ]]
	[ ! -e made ]
}

@test "nobody listens inside: reset at once; IPv6's loopback is tried too" {
	port=$(free_port)
	started nobody -P "$port:3000"
	start_ms=$(date +%s%3N)
	[ "$(ask "$port")" = reset ]
	[ $(($(date +%s%3N) - start_ms)) -lt 3000 ]
	id=$(ak exec -d nobody python3 -c "$SERVE" 3000 ::1)
	until_true logs_have nobody "$id" ready
	[ "$(ask "$port")" = HELLO ]
}

@test "a server inside that resets resets the client" {
	port=$(free_port)
	started resets -P "$port:3000"
	id=$(ak exec -d resets python3 -c '
import socket, struct
s = socket.create_server(("127.0.0.1", 3000))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    c.recv(5)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()
')
	until_true logs_have resets "$id" ready
	[ "$(ask "$port")" = reset ]
}

@test "the server inside learns nothing of the client but a loopback address" {
	port=$(free_port)
	started who -P "$port:3000"
	id=$(ak exec -d who python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 3000))
print("ready", flush=True)
c, peer = s.accept()
print("peer", peer[0], flush=True)
')
	until_true logs_have who "$id" ready
	ask "$port" || true
	until_true logs_have who "$id" "peer 127.0.0.1"
}

@test "port add, list and remove, while it runs; kept over stop and start" {
	port=$(free_port)
	served live
	[ -z "$(ak port list live)" ]
	ak port add live "$port:3000"
	[ "$(ask "$port")" = HELLO ]
	ak port list live | grep -q "^127.0.0.1:$port *3000 "
	[ "$(ak port list live --json)" = "{\"ports\":[{\"at\":\"127.0.0.1:$port\",\"port\":3000,\"kept\":true}]}" ]
	ak stop live
	run ask "$port"
	[ "$status" -ne 0 ]
	ak port list live | grep -q "^127.0.0.1:$port *3000 "
	ak start live
	[ "$(ask "$port")" = reset ] # published again; the server is not started again
	ak port remove live "$port"
	run ask "$port"
	[ "$status" -ne 0 ]
	[ -z "$(ak port list live)" ]
	run ak port remove live "$port"
	[ "$status" -eq 125 ]
	[[ "$output" == *"does not publish"* ]]
}

@test "removing a port closes its connections, and no others" {
	a=$(free_port)
	served closes -P "$a:3000"
	b=$(free_port)
	ak port add closes "$b:3000"
	python3 -I - "$a" "$b" "$AK" >out 2>&1 3>&- <<-'END' &
		import socket, sys, time
		a, b = (socket.create_connection(("127.0.0.1", int(p)), 5) for p in sys.argv[1:3])
		for s in (a, b):
		    s.settimeout(10)
		    s.sendall(b"x")
		time.sleep(0.3)
		print("open", flush=True)
		try:
		    print("a", a.recv(1), flush=True)
		except ConnectionResetError:
		    print("a reset", flush=True)
		b.shutdown(socket.SHUT_WR)
		print("b", b.recv(1), flush=True)
	END
	client=$!
	until_true grep -q open out
	ak port remove closes "$a"
	wait $client
	grep -q "a reset" out
	grep -q "b b'X'" out
}

@test "a port that is taken leaves a running sandbox as it was" {
	port=$(free_port)
	served first -P "$port:3000"
	started second
	run ak port add second "$port:3000"
	[ "$status" -eq 125 ]
	[[ "$output" == *"port $port of 127.0.0.1 is taken by "* ]]
	[ -z "$(ak port list second)" ]
	ak stop second
	run ak port add second "$port:3000"
	[ "$status" -eq 125 ]
	[ -z "$(ak port list second)" ]
	[ "$(ask "$port")" = HELLO ]
}

@test "forward: reached as long as the command runs" {
	port=$(free_port)
	served fwd --no-network
	ak forward fwd "$port:3000" >out 2>&1 3>&- &
	until_true grep -q "leads to port 3000" out
	[ "$(ask "$port")" = HELLO ]
	forward=$(as pgrep -f "^$AK forward fwd")
	kill -INT $forward
	until_true eval '! ask "$port" >/dev/null 2>&1'
}

@test "forward of a sandbox that stops ends, and says so" {
	port=$(free_port)
	served fwdstop
	ak forward fwdstop "$port:3000" >out 2>&1 3>&- &
	forward=$!
	until_true grep -q "leads to port 3000" out
	ak stop fwdstop
	run wait $forward
	grep -q "has stopped" out
}

@test "a fork publishes nothing: its source has the port" {
	port=$(free_port)
	served source -P "$port:3000"
	ak fork source copy
	[ -z "$(ak port list copy)" ]
	[ "$(ask "$port")" = HELLO ]
}

@test "inside, a published port is not the host's: the sandbox sees only itself" {
	port=$(free_port)
	served own -P "$port:3000"
	run ak exec own python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 3)"
	[ "$status" -ne 0 ]
	[[ "$output" == *"refused"* ]]
}

@test "3,000 connections to a server that never reads: bounded memory, and the next port works" {
	port=$(free_port) && other=$(free_port)
	started flood -P "$port:3000" -P "$other:3001"
	id=$(ak exec -d flood python3 -c '
import socket, time
s = socket.create_server(("127.0.0.1", 3000), backlog=4096)
print("ready", flush=True)
time.sleep(600)
')
	until_true logs_have flood "$id" ready
	id=$(ak exec -d flood python3 -c "$SERVE" 3001)
	until_true logs_have flood "$id" ready
	python3 -I - "$port" >out 3>&- <<-'END' &
		import resource, socket, sys, time
		resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
		held = []
		for i in range(3000):
		    s = socket.socket()
		    s.setblocking(False)
		    s.connect_ex(("127.0.0.1", int(sys.argv[1])))
		    held.append(s)
		    if i % 100 == 99:
		        time.sleep(0.01)
		time.sleep(1)
		for s in held[:1500]:
		    try:
		        s.send(b"x" * 100000)
		    except OSError:
		        pass
		print("sent", flush=True)
		time.sleep(30)
	END
	client=$!
	until_true grep -q sent out
	gate=$(pgrep -f "gate of flood" | head -1)
	[ -n "$gate" ]
	rss=$(awk '/VmRSS/ { print $2 }' "/proc/$gate/status")
	[ "$rss" -lt 200000 ]
	kill "$client"
	until_true eval '[ "$(ask "$other")" = HELLO ]'
}

@test "the network log has connections to published ports" {
	port=$(free_port)
	served logged -P "$port:3000"
	[ "$(ask "$port")" = HELLO ]
	until_true eval 'ak network log logged | grep -q "inbound *127.0.0.1 *3000"'
	ak audit --sandbox logged 2>/dev/null | grep -q . || ak audit | grep -q logged
	ak port add logged 0:3001
	ak audit | grep logged | grep -q publish
}

@test "what cannot be published is refused in words" {
	for bad in 70000 0 abc 3000:0 :3000 3000: 1.2.3:80 9.9.9.9.9:80 8000-7000 8000-8009:3000-3001 53:53/udp '[::1]' 'x:80:80'; do
		run ak run -P "$bad" true
		[ "$status" -eq 125 ] || { echo "$bad: $status $output"; false; }
		[ -n "$output" ]
	done
	run ak run -P 192.0.2.77:8080:80 true
	[ "$status" -eq 125 ]
	[[ "$output" == *"192.0.2.77 is not an address of this machine"* ]]
}

@test "a range of ports, and an address that others reach is told" {
	started range -P 0.0.0.0:0:3000 2>err
	ak port list range | grep -q "^0.0.0.0:[0-9]* *3000"
	grep -q "can be reached from other machines" err
	base=$((20000 + RANDOM % 10000)) # below what the kernel hands out
	ak port add range "$base-$((base + 2)):4000-4002"
	[ "$(ak port list range | grep -c "^127.0.0.1:")" -eq 3 ]
}
