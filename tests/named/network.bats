#!/usr/bin/env bats
# Network rules that change while a sandbox runs.

load helpers

HOLD='
import socket, sys
s = socket.create_connection(("host.agentkernel.internal", int(sys.argv[1])), 5)
s.sendall(b"hi")
print(s.recv(2).decode(), flush=True)
try:
    print("ended" if s.recv(1) == b"" else "more", flush=True)
except OSError:
    print("ended", flush=True)
'

prepare_file() {
	# two servers that answer and then wait
	python3 - "$SHARED/ports" 3>&- <<-'END' &
		import socket, sys, threading, time
		def serve(server):
		    while True:
		        c, _ = server.accept()
		        threading.Thread(target=lambda: (c.sendall(b"yo") if c.recv(2) else None, time.sleep(600)), daemon=True).start()
		servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
		for s in servers:
		    threading.Thread(target=serve, args=(s,), daemon=True).start()
		open(sys.argv[1], "w").write(" ".join(str(s.getsockname()[1]) for s in servers) + "\n")
		time.sleep(900)
	END
	echo $! >>"$SHARED/pids"
	until_true test -s "$SHARED/ports"
}

ports() {
	read -r A B <"$SHARED/ports"
}

# hold NAME PORT: prints the id of a command that keeps a connection open
hold() {
	ak exec -d "$1" python3 -c "$HOLD" "$2"
}

logs_have() {
	ak logs "$1" "$2" 2>/dev/null | grep -q "$3"
}

@test "block closes the connections it names, at once, and no others" {
	ports
	started live --network-policy deny --allow-host "host.agentkernel.internal:$A,host.agentkernel.internal:$B"
	local first second
	first=$(hold live "$A")
	second=$(hold live "$B")
	until_true logs_have live "$first" yo
	until_true logs_have live "$second" yo
	ak network block live "host.agentkernel.internal:$A"
	until_true logs_have live "$first" ended
	run ! logs_have live "$second" ended
	run ak exec live python3 -c "$HOLD" "$A"
	[ "$status" -ne 0 ]
}

@test "allow opens at once, reset goes back to what it was created with" {
	ports
	started opening --network-policy deny --allow-host "host.agentkernel.internal:$A"
	run ak exec opening timeout 5 python3 -c "$HOLD" "$B"
	[ "$status" -ne 0 ]
	ak network allow opening "host.agentkernel.internal:$B"
	local id
	id=$(hold opening "$B")
	until_true logs_have opening "$id" yo
	ak network reset opening
	until_true logs_have opening "$id" ended
	run -1 ak network check opening "host.agentkernel.internal:$B"
	run -0 ak network check opening "host.agentkernel.internal:$A"
}

@test "rules that were changed hold after a restart, and for a stopped sandbox" {
	ports
	started later --network-policy deny
	ak network allow later "host.agentkernel.internal:$A"
	ak restart later
	local id
	id=$(hold later "$A")
	until_true logs_have later "$id" yo
	ak stop later
	ak network block later "host.agentkernel.internal:$A"
	ak start later
	run ak exec later timeout 5 python3 -c "$HOLD" "$A"
	[ "$status" -ne 0 ]
}

@test "a sandbox without a network stays without, and patterns are checked" {
	ak create none --no-network
	run ak network allow none example.org
	fails_with 125 "created without a network"
	ak create some
	run ak network allow some 'bad_!'
	fails_with 125 "bad_!"
	ak network show some | grep -q default
}

@test "denials and changes are in the audit log, traffic in stats" {
	ports
	started noted --network-policy deny --allow-host "host.agentkernel.internal:$A"
	run ak exec noted timeout 5 python3 -c 'import socket; socket.getaddrinfo("denied.example.org", 80)'
	until_true eval 'ak audit --sandbox noted --type denied --json | grep -q denied.example.org'
	ak network allow noted example.org
	ak audit --sandbox noted --type network --json | grep -q '"what":"allow example.org","result":"ok"'
	local id
	id=$(hold noted "$A")
	until_true logs_have noted "$id" yo
	until_true eval 'ak stats noted --no-stream --json | grep -q "\"network_sent\":[1-9]"'
}
