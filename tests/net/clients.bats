#!/usr/bin/env bats
# Real programs, unchanged and without proxy variables, with real servers and exact rules.
# THROUGH=control runs the same programs without a sandbox.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	net_setup_file && world_serve tcp web git
}

WEB="--allow-host www.allowed.test"

@test "curl: HTTP/1.1 by name" {
	run through $WEB -- curl -sS http://www.allowed.test/name
	says "host=www.allowed.test sni= at=$WWW HTTP/1.1"
}

@test "curl: several requests on one connection" {
	run through $WEB -- curl -sS http://www.allowed.test/name http://www.allowed.test/1 http://www.allowed.test/2
	succeeds
	[ "${#lines[@]}" -eq 3 ]
}

@test "curl: TLS, checked against its CA" {
	run through $WEB -- curl -sS --http1.1 --cacert "$PUB/ca.pem" https://www.allowed.test/name
	says "host=www.allowed.test sni=www.allowed.test at=$WWW HTTP/1.1"
}

@test "curl: HTTP/2 over TLS" {
	run through $WEB -- curl -sS --http2 --cacert "$PUB/ca.pem" https://www.allowed.test/name
	says "host=www.allowed.test sni=www.allowed.test at=$WWW HTTP/2.0"
}

@test "curl: TLS on another port" {
	run through --allow-host www.allowed.test:8443 -- curl -sS --cacert "$PUB/ca.pem" https://www.allowed.test:8443/name
	has "sni=www.allowed.test at=$WWW"
}

@test "curl: a redirect on the same host is followed" {
	run through $WEB -- curl -sSL http://www.allowed.test/to-self
	has "host=www.allowed.test"
}

@test "curl: POST of 10 MB" {
	run through $WEB -- sh -c 'head -c 10000000 /dev/zero | curl -sS --data-binary @- http://www.allowed.test/upload'
	says "10000000 $(head -c 10000000 /dev/zero | sha256sum | cut -d' ' -f1)"
}

@test "curl: POST of 10 MB over HTTP/2" {
	run through $WEB -- sh -c "head -c 10000000 /dev/zero | curl -sS --cacert $PUB/ca.pem --data-binary @- https://www.allowed.test/upload"
	says "10000000 $(head -c 10000000 /dev/zero | sha256sum | cut -d' ' -f1)"
}

@test "curl: 20 MB come back whole" {
	run through $WEB -- sh -c 'curl -sS http://www.allowed.test/large | sha256sum | cut -d" " -f1'
	says "$(sha256sum <"$WORLD/run/files/large" | cut -d' ' -f1)"
}

@test "curl: ten downloads at once" {
	run through $WEB -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS http://www.allowed.test/large | wc -c & done; wait'
	[ "$(grep -cx 20000000 <<<"$output")" -eq 10 ]
}

@test "a wildcard allows names below it" {
	run through --allow-host '*.allowed.test' -- curl -sS http://a.b.allowed.test/name
	has "host=a.b.allowed.test"
}

@test "names: an alias, both address families, IPv6 alone" {
	run through --allow-host cname.test,both.test,v6only.test -- curl -sS \
		http://cname.test/name http://both.test/name http://v6only.test/name
	succeeds
	[ "${lines[0]}" = "host=cname.test sni= at=$WWW HTTP/1.1" ]
	has "host=v6only.test sni= at=$WWW6 HTTP/1.1"
	has "host=both.test"
}

@test "names: from the host's /etc/hosts" {
	run through --allow-host inhosts.test -- curl -sS http://inhosts.test/name
	has "host=inhosts.test sni= at=$WWW"
}

@test "names: a slow name server" {
	run through --allow-host slow.test -- curl -sS http://slow.test/name
	has "host=slow.test"
}

@test "names: an address that does not answer is passed over" {
	run through --allow-host dead-first.test,dead-v6.test -- curl -sS http://dead-first.test/name \
		http://dead-v6.test/name
	has "host=dead-first.test"
	has "host=dead-v6.test"
	is_control && return # curl alone would wait for half of its timeout
	run through --allow-host hole.test -- curl -sS --max-time 10 http://hole.test/name
	has "host=hole.test"
}

@test "names: one that does not exist is said not to" {
	run talk --allow-host '*.nowhere.test' -- resolve x.nowhere.test
	says nxdomain
}

@test "git: clone over HTTP" {
	run through --allow-host git.allowed.test -- sh -c 'cd $(mktemp -d) && git clone -q http://git.allowed.test/git/project.git && cat project/hello'
	says hello
}

@test "git: clone over HTTPS" {
	run through --allow-host git.allowed.test -- sh -c "cd \$(mktemp -d) && GIT_SSL_CAINFO=$PUB/ca.pem git clone -q https://git.allowed.test/git/project.git && cat project/hello"
	says hello
}

@test "git: clone over git's own protocol" {
	run through --allow-host git.allowed.test -- sh -c 'cd $(mktemp -d) && git clone -q git://git.allowed.test/project.git && cat project/hello'
	says hello
}

@test "ssh: a command, by key" {
	world_serve ssh
	run through --allow-host ssh.allowed.test:22 -- sh -c "k=\$(mktemp) && cat $PUB/key >\$k && exec ssh -F none -i \$k \
		-o BatchMode=yes -o UserKnownHostsFile=$PUB/known_hosts tester@ssh.allowed.test 'echo hello from \$(id -u)'"
	says "hello from 12345"
}

@test "pip: install from an index" {
	run through --allow-host pypi.allowed.test -- sh -c 'd=$(mktemp -d) && /usr/bin/python3 -m pip install -q --disable-pip-version-check \
		--no-cache-dir --index-url http://pypi.allowed.test/simple --trusted-host pypi.allowed.test --target $d tinypkg 2>&1 | grep -v WARN;
		PYTHONPATH=$d /usr/bin/python3 -c "import tinypkg; print(tinypkg.WORD)"'
	says "from the wheel"
}

@test "npm: install from a registry" {
	run through --allow-host npm.allowed.test -- sh -c 'cd $(mktemp -d) && npm install --silent --no-audit --no-fund \
		--update-notifier=false --registry http://npm.allowed.test/npm/ tinynpm && node -p "require(\"tinynpm\")"'
	has "from the tarball"
}

@test "redis-cli: set and get" {
	world_serve redis
	run through --allow-host redis.allowed.test:6379 -- sh -c 'redis-cli -h redis.allowed.test set k v && redis-cli -h redis.allowed.test get k'
	says "OK
v"
}

@test "psql: a query" {
	world_serve postgres
	run through --allow-host pg.allowed.test:5432 -- psql -h pg.allowed.test -U tester -d postgres -Atc 'select 6*7'
	says 42
}

@test "python: urllib" {
	run through $WEB -- /usr/bin/python3 -Ic 'import urllib.request as u; print(u.urlopen("http://www.allowed.test/name").read().decode(), end="")'
	says "host=www.allowed.test sni= at=$WWW HTTP/1.1"
}

@test "node: fetch, with TLS" {
	run through -e "NODE_EXTRA_CA_CERTS=$PUB/ca.pem" $WEB -- env "NODE_EXTRA_CA_CERTS=$PUB/ca.pem" node -e \
		'fetch("https://www.allowed.test/name").then(r => r.text()).then(t => process.stdout.write(t))'
	has "sni=www.allowed.test at=$WWW"
}

@test "a static program with a resolver of its own" {
	run through --allow-host www.allowed.test,both.test,v6only.test -- "$PUB/resolver" www.allowed.test 80 /name
	says "host=www.allowed.test sni= at=$WWW HTTP/1.0"
	run through --allow-host v6only.test -- "$PUB/resolver" v6only.test 80 /name
	has "host=v6only.test"
}

@test "a static program that asks again over TCP" {
	run through --allow-host truncated.test -- "$PUB/resolver" truncated.test 80 /name
	has "host=truncated.test"
	seen_over_tcp=$(world_log dns | grep -c '^tcp A truncated.test')
	[ "$seen_over_tcp" -ge 1 ]
}

@test "IP literals, v4 and v6" {
	run through --allow-host "$WWW" -- curl -sS "http://$WWW/name"
	has "at=$WWW "
	run through --allow-cidr 2a00:1450:4001::/64 -- curl -sS "http://[$WWW6]/name"
	has "at=$WWW6 "
	run through --allow-cidr 93.184.216.0/24 -- curl -sS --cacert "$PUB/ca.pem" "https://$WWW/name"
	has "at=$WWW "
}

@test "half-close: the answer comes after the end" {
	run talk --allow-host tcp.allowed.test -- half tcp.allowed.test 2001 3000000
	says "ok 3000000 bytes"
}

@test "a head of nearly 64 KiB, and a body with it, arrive whole" {
	for size in 60000 64500 65000; do
		run through --allow-host www.allowed.test -- python3 -I -c "
import socket, sys
body = b'b' * 120000
head = b'POST /upload HTTP/1.1\r\nHost: www.allowed.test\r\nConnection: close\r\nContent-Length: 120000\r\n'
filler = b''.join(b'X-%d: %s\r\n' % (i, b'f' * 1000) for i in range($size // 1010))
s = socket.create_connection(('www.allowed.test', 2001)); s.sendall(head + filler + b'\r\n' + body); s.shutdown(socket.SHUT_WR)
print(len(head + filler) + 2 + len(body), s.makefile('rb').read().decode().strip())"
		[ "${output%% *} bytes" = "${output#* }" ] || { echo "$output"; return 1; }
	done
}

@test "server-first: a banner comes before anything is sent" {
	run talk --allow-host tcp.allowed.test -- tcp tcp.allowed.test 2000
	says "ok 220 welcome"
}

@test "a reset is passed on" {
	run talk --allow-host tcp.allowed.test -- tcp tcp.allowed.test 2002 x
	says ECONNRESET
}

@test "a port where nobody listens" {
	run talk --allow-host tcp.allowed.test -- tcp tcp.allowed.test 4711 x
	[[ "$output" == ECONNREFUSED || "$output" == ECONNRESET || "$output" == closed ]]
}

@test "20 MB from a server that closes" {
	run talk --allow-host tcp.allowed.test -- get tcp.allowed.test 2004
	says "ok 20000000"
}

@test "a TLS hello in one-byte segments" {
	run talk --allow-host www.allowed.test -- hello www.allowed.test 443 www.allowed.test 1
	says "ok TLSv1.3"
}

@test "servers inside, for clients inside" {
	for address in 127.0.0.1 ::1 0.0.0.0; do
		run talk -- bind "$address" 8080
		says "ok hello"
	done
}
