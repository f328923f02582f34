#!/usr/bin/env bats
# What hostile code tries on the network. Each case checks the refusal inside, that servers, name
# servers and the wire have seen nothing, and a control: the same act without a sandbox, or with a
# rule that allows it, works and is seen.
# shellcheck disable=SC2086,SC2154,SC2317
load helpers
bats_require_minimum_version 1.5.0

DENY="--network-policy deny"
OPEN="--network-policy allow"
WEB="--network-policy deny --allow-host www.allowed.test"

setup_file() {
	net_setup_file && world_serve tcp web loopback
}

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	chmod 755 "$W"
	cd "$W" || return 1
	mark dns rogue wire canary tcp web loopback
}

@test "NW01 a connection to an address that no rule allows, v4 and v6" {
	run try $WEB -- each 2000 "$WWW" "$WWW6" "$OTHER" "$DENIED" "$DENIED6" "::ffff:$WWW"
	all_refused
	unseen tcp
	unseen wire
	run talk_outside each 2000 "$WWW" "$WWW6" "$OTHER" "$DENIED" "$DENIED6" "::ffff:$WWW" # control
	all_ok
	seen wire "tcp $WWW6 2000"
	run try $DENY --allow-host "$WWW" --allow-cidr 2a00:1450:4001::34/128 -- each 2000 "$WWW" "$WWW6"
	all_ok
}

@test "NW01 an address learnt for an allowed name is not a way to another port or name" {
	run inside $DENY --allow-host www.allowed.test:2000 -- sh -c 'a=$(getent ahostsv4 www.allowed.test | sed "s/ .*//;q")
		for port in 2000 2001 25; do python3 -I /world/talk.py each $port $a; done'
	has "ok 220 welcome"
	[ "$(grep -c ' ok' <<<"$output")" -eq 1 ]
	unseen wire "$WWW 2001"
	unseen canary
	run try $WEB -- each 2000 198.18.0.1 198.18.0.2 198.18.77.7 198.19.255.255 # never assigned
	all_refused
	unseen wire 198.1
	unseen canary
	run talk_outside each 25 www.allowed.test # control
	all_ok
}

@test "NW02 no UDP, QUIC, ICMP, raw, SCTP or DCCP, even when all is allowed" {
	for action in "udp $WWW 7" "udp $WWW 443" "udp $WWW6 7" "udp $ROGUE 5353"; do
		run try $OPEN -- $action
		refused
	done
	for action in "icmp $WWW" "icmp $WWW6" "socket 2 3 1 $WWW" "socket 2 1 132 $WWW" "socket 2 6 33 $WWW" "socket 2 5 132 $WWW"; do
		run try $OPEN -- $action
		no_socket
	done
	unseen tcp
	unseen wire
	for action in "udp $WWW 7" "udp $WWW 443" "udp $WWW6 7" "icmp $WWW" "icmp $WWW6" "socket 2 3 1 $WWW"; do # control
		run talk_outside $action
		has ok
	done
	seen wire "udp $WWW 443"
	seen wire "icmp $WWW"
	seen tcp "udp $WWW 443"
}

@test "NW02 multicast fails at once: mDNS, SSDP and a name server that is a group; nobody can join one" {
	for action in "udp 224.0.0.251 5353" "udp 239.255.255.250 1900" "udp 224.0.0.251 53"; do
		run try $OPEN -- $action
		says ENETUNREACH
	done
	run try $OPEN -- udp ff02::fb 5353
	[[ "$output" == ENETUNREACH || "$output" == EINVAL ]] # a link-local group requires an interface
	for group in 224.0.0.251 239.255.255.250 ff02::fb ff05::c; do
		run try $OPEN -- join "$group"
		says ENODEV
	done
	unseen wire
	for group in 224.0.0.251 ff02::fb; do # control
		run talk_outside join "$group"
		says ok
	done
	run talk_outside udp 224.0.0.251 5353
	says timeout
	seen wire "udp 224.0.0.251 5353"
}

@test "NW03 a denied name never leaves, whoever is asked and however" {
	run try $WEB -- resolve denied.test
	says nxdomain
	for server in 93.184.216.53 "$ROGUE" 8.8.8.8; do
		for kind in A AAAA TXT HTTPS PTR; do
			run try $WEB -- dns "$server" udp "$kind" 6d7920736563726574.denied.test
			says "ok nxdomain 0"
		done
		run try $WEB -- dns "$server" tcp A denied.test
		says "ok nxdomain 0"
	done
	run try $WEB -- resolve below.www.allowed.test
	says nxdomain
	unseen dns
	unseen rogue
	unseen wire
	run talk_outside dns "$ROGUE" udp A denied.test # control
	says "ok noerror 1"
	seen rogue "udp A denied.test"
	run talk_outside resolve denied.test
	seen dns "udp A denied.test"
}

@test "NW03 an allowed name is asked of the host's own name server only" {
	run try $WEB -- dns "$ROGUE" udp A www.allowed.test
	says "ok noerror 1"
	run try $WEB -- dns "$ROGUE" tcp A www.allowed.test
	says "ok noerror 1"
	unseen rogue
	unseen wire "$ROGUE"
	seen dns "www.allowed.test"
}

@test "NW03 types other than addresses, TXT, MX and SRV carry no answers from outside" {
	for kind in PTR AAAA HTTPS ANY; do
		run try $DENY --allow-host text.test -- dns 93.184.216.53 udp "$kind" text.test
		says "ok noerror 0"
	done
	for kind in PTR HTTPS ANY; do unseen dns "$kind text.test"; done
}

@test "NW03 malformed queries hurt nobody" {
	run inside $WEB -- sh -c 'python3 -I /world/talk.py garbage 93.184.216.53; python3 -I /world/talk.py resolve www.allowed.test'
	[ "${lines[0]}" = ok ]
	[[ "${lines[1]}" == "ok 198.1"* ]]
	unseen dns malformed
	unseen rogue
	run talk_outside garbage 93.184.216.53 # control
	sleep 0.2
	seen dns malformed
}

@test "NW04 labels below an allowed wildcard are limited in number" {
	started=$SECONDS
	run try $DENY --allow-host '*.allowed.test' -- flood 3000 0123456789abcdef0123456789abcdef.allowed.test
	has ok
	arrived=$(since dns | grep -c 0123456789abcdef || true)
	[ "$arrived" -ge 1 ]
	# a burst of 500 and 50 per second, for two address families; a slow machine sends fewer
	# queries
	[ "$arrived" -le $((2 * (500 + 50 * (SECONDS - started + 1)))) ]
	run talk_outside flood 3000 0123456789abcdef0123456789abcdef.allowed.test # control
	says "ok 3000"
}

@test "NW05 other name services: DNS over TLS, over HTTPS, over TCP" {
	run try $WEB -- tls "$ROGUE" 853 dns.test
	refused
	run try $WEB -- tls "$ROGUE" 443 dns.test
	refused
	run try $WEB -- each 853 "$ROGUE" "$DENIED"
	all_refused
	run try $WEB -- dns "$ROGUE" tcp A denied.test
	says "ok nxdomain 0"
	unseen canary
	unseen rogue
	unseen wire
	run talk_outside each 853 "$ROGUE" "$DENIED" # control
	all_ok
	seen canary "tcp $ROGUE 853"
}

@test "NW06 cloud metadata, even when all is allowed" {
	run try $OPEN -- each 80 169.254.169.254 fd00:ec2::254 ::ffff:169.254.169.254 metadata.google.internal \
		METADATA.google.internal. linklocal.test
	all_refused
	run try $DENY --allow-host 'metadata.google.internal,linklocal.test,*' -- each 80 metadata.google.internal linklocal.test
	all_refused
	run try $OPEN --allow-cidr 169.254.0.0/16 -- each 80 169.254.169.254
	all_refused
	unseen canary
	unseen wire "169.254.169.254"
	unseen wire "fd00:ec2"
	unseen dns metadata
	run talk_outside each 80 169.254.169.254 fd00:ec2::254 metadata.google.internal # control
	all_ok
	seen canary "tcp 169.254.169.254 80"
	run try $DENY --allow-host 169.254.169.254 -- each 80 169.254.169.254 # exactly that address
	all_ok
}

@test "NW07 private, shared, reserved and translated addresses, even when all is allowed" {
	for port in 80 22; do
		run try $OPEN -- each "$port" $WORLD_PRIVATE 203.0.113.1 ::ffff:10.9.8.7 0.0.0.0 224.0.0.1 255.255.255.255 \
			192.0.2.1 2001:db8:113::1 fe80::1%lo ff02::1%lo
		all_refused
	done
	unseen canary
	unseen wire
	run talk_outside each 80 $WORLD_PRIVATE ::ffff:10.9.8.7 # control
	all_ok
	seen canary "tcp 100.64.7.7 80"
	run try $OPEN --allow-cidr 10.9.8.0/24,fd77::/64 -- each 80 10.9.8.7 fd77::7 # allowed by a rule
	all_ok
}

@test "NW07 the host's loopback and its own addresses, even when all is allowed" {
	own="127.0.0.1 ::1 172.17.0.1 203.0.113.2 2001:db8:113::2 $HOST_OWN $HOST_OWN6"
	run try $OPEN -- each 8099 $own localhost host.agentkernel.internal host.docker.internal ::ffff:127.0.0.1 127.1.2.3
	all_refused
	unseen loopback
	unseen wire
	run talk_outside each 8099 $own # control
	all_ok
	seen loopback "tcp $HOST_OWN 8099"
}

@test "NW07 secondary addresses of the host and addresses of its local routes, by number and by name" {
	names="second.test second6.test routed.test routed6.test"
	run try $OPEN -- each 8099 $HOST_SECOND $HOST_ROUTED $names
	all_refused
	run try $DENY --allow-host "$(tr ' ' ',' <<<"$names")" -- each 8099 $names
	all_refused
	unseen loopback
	unseen wire tcp
	run talk_outside each 8099 $HOST_SECOND $HOST_ROUTED $names # control
	all_ok
	seen loopback "tcp ${HOST_SECOND% *} 8099"
	rule=$(tr ' ' ',' <<<"$HOST_SECOND $HOST_ROUTED")
	run try $DENY --allow-cidr "$rule" --allow-host "$(tr ' ' ',' <<<"$names")" -- each 8099 $HOST_SECOND $HOST_ROUTED $names # allowed by a rule
	all_ok
}

@test "NW07 'network check' knows the host's own addresses as the gate does" {
	enter=in_world
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	for address in "$HOST_OWN" "[$HOST_OWN6]" "${HOST_SECOND% *}" "[${HOST_SECOND#* }]" "${HOST_ROUTED% *}" "[${HOST_ROUTED#* }]"; do
		run "$enter" "$AK" network check --network $OPEN "$address:8099"
		[ "$status" -ne 0 ]
		has "an address of this machine"
		has "--allow-cidr"
		run "$enter" "$AK" network check --network $OPEN --allow-cidr "$(tr -d '[]' <<<"$address")" "$address:8099" # control
		succeeds
	done
	run "$enter" "$AK" network check --network $OPEN "$WWW:80" # control
	succeeds
}

@test "NW07 one port of the host's loopback, by its own name and rule" {
	for rule in host.agentkernel.internal:8099 localhost:8099 host.docker.internal:8099; do
		run try $DENY --allow-host "$rule" -- tcp host.agentkernel.internal 8099
		says "ok HTTP/1.0 200 OK"
	done
	seen loopback "8099"
	run try $DENY --allow-host host.agentkernel.internal:8099 -- tcp host.agentkernel.internal 8098
	refused
	run try $DENY --allow-host host.agentkernel.internal:8099 -- tcp "$HOST_OWN" 8099
	refused
}

@test "NW09 an allowed name with a private, translated or own address" {
	names="private.test private6.test mapped.test nat64.test 6to4.test teredo.test cgnat.test loopback.test zero.test \
		hostown.test bridge.test cname-private.test"
	for rules in "$OPEN" "$DENY --allow-host $(tr -s ' \t' ',' <<<"$names")"; do
		run try $rules -- each 80 $names
		all_refused
		run try $rules -- each 8099 hostown.test loopback.test bridge.test
		all_refused
	done
	unseen canary
	unseen loopback
	unseen wire tcp
	run talk_outside each 80 private.test private6.test mapped.test nat64.test cgnat.test cname-private.test # control
	all_ok
	run talk_outside each 8099 hostown.test loopback.test bridge.test
	all_ok
	run try $DENY --allow-host private.test --allow-cidr 10.9.8.7/32 -- each 80 private.test # allowed by a rule
	all_ok
}

@test "NW09 a name with a private and a public address uses the public one alone" {
	for _ in 1 2 3 4; do
		run try $DENY --allow-host mixed.test -- tcp mixed.test 2000
		says "ok 220 welcome"
	done
	unseen canary
	unseen wire "10.9.8.7"
	run talk_outside each 2000 mixed.test # control
	all_ok
	seen canary "tcp 10.9.8.7 2000"
}

@test "NW09 a name that changes between check and use" {
	run inside $DENY --allow-host rebind.test -- python3 -I /world/talk.py each 2000 $(yes rebind.test | head -12)
	[ "${#lines[@]}" -eq 12 ]
	output=$(sed 's/ok 220 welcome/closed/' <<<"$output") # either the public address, or none
	all_refused
	for _ in 1 2 3 4; do
		run try $DENY --allow-host rebind.test -- tcp rebind.test 2000
		[ "$output" = "ok 220 welcome" ] || refused
	done
	unseen canary
	unseen wire "10.9.8.7"
	run talk_outside each 2000 rebind.test rebind.test rebind.test # control
	seen canary "tcp 10.9.8.7 2000"
}

@test "NW10 a redirect from an allowed to a denied host" {
	run inside $WEB -- curl -sSL http://www.allowed.test/to-denied
	[ "$status" -eq 6 ] # could not resolve host
	seen web "www.allowed.test GET /to-denied"
	unseen dns denied.test
	unseen wire "$DENIED"
	unseen wire "$DENIED6"
	run outside curl -sSL http://www.allowed.test/to-denied # control
	has "host=denied.test at="
}

# Requests through an allowed name for another name on the same server.
FOREIGN=(
	'GET /1 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'GET /2 HTTP/1.1\r\nhOsT:fronted.test\r\n\r\n'
	'GET /3 HTTP/1.1\r\nHost:   fronted.test:80  \r\n\r\n'
	'\r\n\r\nGET /4 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'XYZZY /5 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'GET /6 HTTP/1.1\nHost: fronted.test\n\n'
	'G\pET /7 HTTP/1.1\r\nHo\pst: fron\pted.test\r\n\p\r\n'
	'GET /8 HTTP/1.1\r\nX: y\r\nHost: FRONTED.test\r\n\r\n'
	'OPTIONS /9 HTTP/1.1\r\nHost: fronted.test.\r\n\r\n'
	'GET /10 HTTP/1.0\r\nHost: fronted.test\r\n\r\n'
	# a second request on the same connection, after a good one
	'GET /a HTTP/1.1\r\nHost: www.allowed.test\r\n\r\nGET /11 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'GET /b HTTP/1.1\r\nHost: www.allowed.test\r\n\r\n\pGET /12 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nContent-Length: 5\r\n\r\nhelloGET /13 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\nGET /14 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: v\r\n\r\nGET /15 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'GET /c HTTP/1.1\r\nHost: www.allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\pGET /16 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'HEAD /d HTTP/1.1\r\nHost: www.allowed.test\r\n\r\nGET /17 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
	'GET /e HTTP/1.1\r\nHost: www.allowed.test\r\nContent-Length: 3\r\n\r\nabcGET /18 HTTP/1.1\r\nHost: fronted.test\r\n\r\n'
)

@test "NW11 NW12 plain HTTP for another host, in the first or a later request" {
	run try $WEB -- send www.allowed.test 80 "${FOREIGN[@]}"
	[ "${#lines[@]}" -eq "${#FOREIGN[@]}" ]
	unseen web "^[Ff][Rr][Oo][Nn]"
	seen web "www.allowed.test GET /b" # the good first request before a bad second one
	run talk_outside send www.allowed.test 80 "${FOREIGN[@]}" # control: each of them would have been served
	for i in $(seq ${#FOREIGN[@]}); do
		seen web "^[Ff][Rr][Oo][Nn][^ ]* [A-Z]* /$i "
	done
}

@test "NW11 NW12 requests that two readers would read differently get no further" {
	run try $WEB -- send www.allowed.test 80 \
		'GET http://fronted.test/ HTTP/1.1\r\nHost: www.allowed.test\r\n\r\n' \
		'GET /1 HTTP/1.1\r\nHost: www.allowed.test\r\nHost: fronted.test\r\n\r\n' \
		'GET /2 HTTP/1.1\r\nHost: www.allowed.test\r\n fronted.test\r\n\r\n' \
		'GET /3 HTTP/1.1\r\nHost: www.allowed.test\r\nHost : fronted.test\r\n\r\n' \
		'GET /3 HTTP/1.1\r\nHost:\tfronted.test\r\n\r\n' \
		'GET /4 HTTP/1.1\r\nHost: www.allowed.test@fronted.test\r\n\r\n' \
		'GET /5 HTTP/1.1\r\nHost: www.allowed.test fronted.test\r\n\r\n' \
		'GET /6 HTTP/1.1\r\nHost: www.allowed.test\x00fronted.test\r\n\r\n' \
		'CONNECT fronted.test:443 HTTP/1.1\r\nHost: fronted.test:443\r\n\r\n' \
		'CONNECT fronted.test:443 HTTP/1.1\r\nHost: www.allowed.test\r\n\r\n' \
		'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG' \
		'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!' \
		'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n' \
		'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n' \
		'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nContent-Length: +5\r\n\r\nhello' \
		"GET /7 HTTP/1.1\r\nHost: www.allowed.test\r\nX: $(printf 'x%.0s' {1..100000})\r\n\r\n"
	[ "${#lines[@]}" -eq 16 ]
	[[ "$output" != *" 200 "* ]]
	unseen web
	run try $WEB -- send www.allowed.test 80 'GET / HTTP/1.1\r\nHost: www.allowed.test\r\n\r\n' # control
	has " 200 "
	seen web "www.allowed.test GET /"
}

@test "NW11 nothing of a request is passed on before its host is known" {
	beginnings=('GET / HTTP/1.1\r\nHost: tcp.allow' 'G' 'POST / HTTP/1.1\r\nHost: tcp.allowed.test\r\nX: y\r\n' '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' '\x16')
	run try $DENY --allow-host tcp.allowed.test -- send tcp.allowed.test 7 "${beginnings[@]}"
	says "closed
closed
closed
closed
closed"
	run talk_outside send tcp.allowed.test 7 "${beginnings[@]}" # control: everything is echoed
	[ "$(grep -c '^ok' <<<"$output")" -eq 5 ]
	run try $DENY --allow-host tcp.allowed.test -- send tcp.allowed.test 7 'hello\n' # other protocols are not held back
	says "ok hello|"
}

@test "NW11 a TLS server name that is not allowed, or absent" {
	for name in fronted.test FRONTED.test denied.test -; do
		run try $WEB -- tls www.allowed.test 443 "$name"
		refused
	done
	for size in 1 7 100; do
		run try $WEB -- hello www.allowed.test 443 fronted.test "$size"
		refused
	done
	unseen web
	for name in fronted.test -; do # control
		run talk_outside tls www.allowed.test 443 "$name"
		has ok
	done
	run try $WEB -- tls www.allowed.test 443 www.allowed.test
	says "ok host=x sni=www.allowed.test at=$WWW HTTP/1.0"
}

@test "NW11 a TLS session that is resumed under another name, or under none" {
	for version in TLSv1_2 TLSv1_3; do
		run try $WEB -- resume www.allowed.test 443 $version www.allowed.test www.allowed.test fronted.test - denied.test
		echo "$version: $output"
		[[ "${lines[0]}" == "www.allowed.test ok host=x sni=www.allowed.test"* ]]
		[[ "${lines[1]}" == "www.allowed.test ok host=x sni=www.allowed.test"* ]]
		for i in 2 3 4; do
			output=${lines[i]#* }
			refused
		done
		run talk_outside resume www.allowed.test 443 $version www.allowed.test www.allowed.test fronted.test - # control
		all_ok
	done
	unseen web fronted.test
}

@test "NW11 HTTP/2 without TLS names its hosts where nobody looks: only where any name would pass" {
	preface='PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00'
	run try $WEB -- send www.allowed.test 80 "$preface"
	says closed
	run try $WEB --allow-host '*' -- send www.allowed.test 80 "$preface" # control: it arrives
	has ok
	for upgrade in h2c 'websocket, h2c' TLS/1.2; do
		run try $WEB -- send www.allowed.test 80 "GET / HTTP/1.1\\r\\nHost: www.allowed.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: $upgrade\\r\\nHTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n"
		has "400 Bad Request"
	done
}

@test "NW14 case, final dot, ports and user@ do not change the decision" {
	run inside $WEB -- curl -sS http://WWW.Allowed.TEST/ http://www.allowed.test./ http://www.allowed.test:80/ http://user@www.allowed.test/
	succeeds
	[ "$(grep -ci 'at=93.184.216.34' <<<"$output")" -eq 4 ]
	run inside $DENY --allow-host 'WWW.Allowed.Test.' -- curl -sS http://www.allowed.test/
	succeeds
	mark dns web
	for url in http://www.allowed.test/ http://WWW.ALLOWED.TEST/ http://www.allowed.test./ http://x@www.allowed.test:80/; do
		run inside $OPEN --block-host www.allowed.test -- curl -sS "$url"
		[ "$status" -eq 6 ]
	done
	unseen web
	unseen dns www.allowed.test
	run inside $WEB -- curl -sS http://www.allowed.test@denied.test/
	[ "$status" -eq 6 ]
	unseen dns denied.test
	run outside curl -sS http://www.allowed.test@denied.test/ # control
	has "host=denied.test"
}

@test "NW16 an empty allowlist allows nothing" {
	run try $DENY -- each 2000 www.allowed.test "$WWW" 10.9.8.7
	all_refused
	run try $DENY --allow-host '' -- each 2000 www.allowed.test "$WWW"
	[ "$status" -eq 125 ] || all_refused
	unseen dns
	unseen wire
	run try $DENY --allow-host www.allowed.test -- each 2000 www.allowed.test # control
	all_ok
}

@test "NW16 a rule that cannot be read stops the start" {
	for rule in 'bad host' '*.*.test' 'a*.test' 'www.allowed.test:99999' 'www.allowed.test:x' '[::1' 'http://www.allowed.test' \
		'1.2.3' '0x7f.1' '-' 'a..b' 'user@host' '%41.test'; do
		run inside $OPEN --block-host "$rule" -- true
		fails_with 125 "$rule"
	done
	for rule in 10.0.0.0/33 2001:db8::/129 10.0.0.0/-1 10.0.0/8 x/8; do
		run inside $OPEN --block-cidr "$rule" -- true
		fails_with 125 "$rule"
	done
	run inside --network-policy maybe -- true
	fails_with 125 maybe
	run inside $OPEN --block-host "good.test:443,*.good.test,[2a00::1]:80" --block-cidr 10.0.0.0/8,2001:db8::/32 -- true # control
	succeeds
}

@test "NW19 other ports of a host that is allowed for one" {
	for port in 22 25 80 2000 6379; do
		run try $DENY --allow-host www.allowed.test:443 -- tcp www.allowed.test "$port"
		refused
	done
	unseen wire tcp
	unseen canary
	run try $DENY --allow-host www.allowed.test:443 -- tls www.allowed.test 443 # control
	has ok
	run talk_outside each 25 www.allowed.test
	all_ok
	seen canary "tcp $WWW 25"
}

@test "NW21 the host's abstract and path sockets, with a network too" {
	run inside $OPEN -v "$PROBE:/probe:ro" -- /probe unix "@$WORLD"
	says ECONNREFUSED
	run inside $OPEN -v "$PROBE:/probe:ro" -- /probe unix "$WORLD/sock"
	says ENOENT
	unseen loopback
	run in_world "$PROBE" unix "@$WORLD" # control
	says ok
	run in_world_as_user "$PROBE" unix "$WORLD/sock"
	says ok
	seen loopback "$WORLD/sock"
}
