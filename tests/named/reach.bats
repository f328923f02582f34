#!/usr/bin/env bats
# Reaching in over a server: URLs of sandboxes, services, sleep and wake, commands over WebSockets.

load helpers

# A server that tells what it was asked, and does what the path says.
SITE='
import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while True:
                size = int(self.rfile.readline(), 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        if self.path == "/bad":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
            self.close_connection = True
            return
        if self.path == "/split":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: evil=1\r\n\r\n")
            self.close_connection = True
            return
        if self.path == "/close":
            self.wfile.write(b"HTTP/1.0 200 OK\r\nX: y\r\n\r\nuntil the end")
            self.close_connection = True
            return
        text = f"{self.command} {self.path}\n{self.headers}{len(body)} bytes\n".encode()
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", "/there")
        self.send_header("Set-Cookie", "a=b; Domain=localhost; Path=/")
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (b"one ", b"two ", b"three"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
    do_POST = do_PUT = do_HEAD = do_GET
    def log_message(self, *a):
        pass
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
'

free_port() {
	python3 -I -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

prepare_file() {
	export PORT SITE_FILE="$SHARED/site.py" KEYS="$SHARED/keys"
	printf '%s' "$SITE" >"$SITE_FILE"
	printf 'alice KEY-A\nbob KEY-B\n' >"$KEYS"
	cp "$BATS_TEST_DIRNAME/wsclient.py" "$SHARED/"
	chmod a+r "$SITE_FILE" "$KEYS" "$SHARED/wsclient.py"
	PORT=$(free_port)
	as_background as "$AK" serve --listen "127.0.0.1:$PORT" --image host --api-key-file "$KEYS"
	for _ in $(seq 100); do
		curl -fsS -o /dev/null "http://127.0.0.1:$PORT/health" 2>/dev/null && break
		sleep 0.05
	done
}

# in the background, ended with the file
as_background() {
	"$@" >"$SHARED/serve.log" 2>&1 3>&- 4>&- &
	until_true eval 'pgrep -f "^$AK.*serve|HTTP server on 127.0.0.1:$PORT" >>"$SHARED/pids"'
}

api() { # METHOD PATH [BODY]
	curl -sS -X "$1" -H 'Authorization: Bearer KEY-A' ${3:+-H 'Content-Type: application/json' -d "$3"} "http://127.0.0.1:$PORT$2"
}

# url HOST PATH [CURL OPTION...]: a request to a sandbox's name, whose status is the last line
url() {
	local host=$1 path=$2
	shift 2
	curl -sS -w '\n%{http_code}\n' -H "Host: $host" "$@" "http://127.0.0.1:$PORT$path"
}

# site NAME [MORE MEMBERS]: a sandbox of alice with the server on port 3000 as its service
site() {
	local script
	script=$(python3 -c 'import json, sys; print(json.dumps(open(sys.argv[1]).read()))' "$SITE_FILE")
	api POST /sandboxes "{\"name\":\"$1\",\"image\":\"host\"${2:+,$2}}" | grep -q '"success":true'
	api POST "/sandboxes/$1/services" "{\"service\":\"web\",\"port\":3000,\"command\":[\"python3\",\"-c\",$script,\"3000\"]}" | grep -q '"success":true'
}

A='Agentkernel-Key: KEY-A'

@test "a URL by host, by path and by header; what the server inside sees" {
	site seen
	run url "3000-seen.localhost:$PORT" '/x?y=1' -H "$A" -H 'X-Forwarded-For: 9.9.9.9' -H 'Cookie: agentkernel_access=t; c=d'
	[ "$status" -eq 0 ]
	[[ "$output" == *"GET /x?y=1"* && "$output" == *"Host: 3000-seen.localhost:$PORT"* && "$output" == *$'\n200' ]]
	[[ "$output" == *"X-Forwarded-For: 127.0.0.1"* && "$output" != *9.9.9.9* && "$output" == *"X-Forwarded-Proto: http"* ]]
	[[ "$output" == *"Cookie: c=d"* && "$output" != *agentkernel_access* && "$output" != *KEY-A* ]]
	run url "seen.localhost:$PORT" / -H "$A"
	[[ "$output" == *"GET /"*$'\n200' ]]
	run url "127.0.0.1:$PORT" '/sandboxes/seen/proxy/3000/deep?q' -H 'Authorization: Bearer KEY-A' -D "$BATS_TEST_TMPDIR/head"
	[[ "$output" == *"GET /deep?q"* && "$output" != *KEY-A* && "$output" == *"X-Forwarded-Prefix: /sandboxes/seen/proxy/3000"* ]]
	grep -qi '^content-security-policy: sandbox' "$BATS_TEST_TMPDIR/head"
	! grep -qi '^set-cookie' "$BATS_TEST_TMPDIR/head"
	run url "127.0.0.1:$PORT" /h -H "$A" -H 'Agentkernel-Sandbox: seen' -H 'Agentkernel-Port: 3000'
	[[ "$output" == *"GET /h"* && "$output" != *Agentkernel-* ]]
}

@test "redirects of a page by path stay below it; cookies stay on the sandbox's name" {
	site moved
	run url "127.0.0.1:$PORT" /sandboxes/moved/proxy/3000/away -H "$A" -o /dev/null -D -
	[[ "$output" == *"Location: /sandboxes/moved/proxy/3000/there"* ]]
	run url "3000-moved.localhost:$PORT" / -H "$A" -o /dev/null -D -
	[[ "$output" == *"Set-Cookie: a=b; Path=/"* && "$output" != *Domain* ]]
}

@test "bodies: lengths, chunks both ways, until the end of the connection, 30 MB up" {
	site bodies
	local host="3000-bodies.localhost:$PORT"
	run url "$host" /chunks -H "$A"
	[ "$output" = $'one two three\n200' ]
	run url "$host" /close -H "$A"
	[ "$output" = $'until the end\n200' ]
	run url "$host" /up -H "$A" -H 'Transfer-Encoding: chunked' -H 'Expect:' -d 'hello chunked body'
	[[ "$output" == *"18 bytes"* ]]
	head -c 30000000 /dev/zero >"$BATS_TEST_TMPDIR/big"
	run url "$host" /up -H "$A" -T "$BATS_TEST_TMPDIR/big"
	[[ "$output" == *"30000000 bytes"* ]]
	run url "$host" /head -H "$A" -I
	[[ "$output" == *"Content-Length: "*$'\n200' ]]
	# several on one connection
	run curl -sS -H "Host: $host" -H "$A" "http://127.0.0.1:$PORT/"{1,2,3} -w '%{num_connects}\n'
	[ "$(grep -cx 0 <<<"$output")" -eq 2 ]
}

@test "a hostile server's answer is refused, and the server goes on" {
	site hostile
	local host="3000-hostile.localhost:$PORT"
	for path in /bad /split; do
		run url "$host" "$path" -H "$A" -D -
		[[ "$output" == *502* && "$output" != *evil* ]]
	done
	run url "$host" / -H "$A"
	[[ "$output" == *$'\n200' ]]
}

@test "who may: a key of the owner, a link, a public port; others learn nothing" {
	site mine
	local host="3000-mine.localhost:$PORT" link token
	[[ "$(url "$host" /)" == *401 ]]
	[[ "$(url "3000-nobody.localhost:$PORT" /)" == *401 ]]
	[[ "$(url "$host" / -H 'Agentkernel-Key: KEY-B')" == *404 ]]
	[[ "$(url "$host" / -H 'Agentkernel-Key: wrong')" == *401 ]]
	link=$(api POST /sandboxes/mine/ports/3000/link '{"expires_s": 60}')
	token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' <<<"$link")
	[[ "$(url "$host" "/p?a=1&agentkernel_access=$token")" == *"GET /p?a=1"*200 ]]
	[[ "$(url "$host" / -H "Cookie: agentkernel_access=$token")" == *200 ]]
	[[ "$(url "$host" "/?agentkernel_access=${token}0")" == *401 ]]
	[[ "$(url "3001-mine.localhost:$PORT" "/?agentkernel_access=$token")" == *401 ]]
	run url "$host" "/p?agentkernel_access=$token" -H 'Sec-Fetch-Mode: navigate' -D -
	[[ "$output" == *"Location: /p"* && "$output" == *"HttpOnly; SameSite=Lax"* && "$output" == *302 ]]
	ak port public mine 3000
	[[ "$(url "$host" /)" == *200 ]]
	ak port private mine 3000
	until_true eval '[[ "$(url "$host" /)" == *401 ]]'
}

@test "a name of a sandbox never reaches the API, and a page of one cannot use it" {
	site page
	[[ "$(url "3000-page.localhost:$PORT" /health -H "$A")" == *"GET /health"*200 ]]
	[[ "$(url "page.localhost:$PORT" /sandboxes)" == *401 ]]
	[[ "$(url "127.0.0.1:$PORT" /sandboxes -H 'Authorization: Bearer KEY-A' -H "Origin: http://3000-page.localhost:$PORT")" == *403 ]]
	[[ "$(url "127.0.0.1:$PORT" /sandboxes -H 'Authorization: Bearer KEY-A' -H 'Origin: null')" == *403 ]]
}

@test "where no key is asked for, pages of other origins are refused, and those of the same sandbox are not" {
	site open
	local host="3000-open.localhost:$PORT" keyed=$PORT
	PORT=$(free_port)
	as_background as "$AK" serve --listen "127.0.0.1:$PORT" --image host
	until_true curl -fsS -o /dev/null "http://127.0.0.1:$PORT/health"
	host=${host/:$keyed/:$PORT}
	[[ "$(url "$host" /)" == *200 ]]
	[[ "$(url "$host" / -H 'Origin: http://evil.example')" == *403 ]]
	[[ "$(url "$host" / -H 'Sec-Fetch-Site: cross-site')" == *403 ]]
	[[ "$(url "$host" / -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate')" == *200 ]]
	[[ "$(url "$host" / -X POST -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate')" == *403 ]]
	[[ "$(url "$host" / -H "Origin: http://8000-open.localhost:$PORT")" == *200 ]]
	[[ "$(url "$host" / -H "Origin: http://8000-other.localhost:$PORT")" == *403 ]]
}

@test "nobody listens: 502 at once; a stopped sandbox is not started" {
	site empty
	start_ms=$(date +%s%3N)
	[[ "$(url "4444-empty.localhost:$PORT" / -H "$A")" == *502 ]]
	[ $(($(date +%s%3N) - start_ms)) -lt 3000 ]
	ak stop empty
	run url "3000-empty.localhost:$PORT" / -H "$A"
	echo "$output"
	[[ "$output" == *"is not running"*502 ]]
	[[ "$(ak list --all | grep '^empty ')" == *stopped* ]]
}

@test "services start in order of needs, again when they end, and are told" {
	ak create svc -i host -- sh -c 'echo main >>~/log; exec sleep 600'
	ak service add svc db --port 3307 -- python3 -c 'import socket, time; time.sleep(0.4); s = socket.create_server(("127.0.0.1", 3307)); open("/root/log" if __import__("os").getuid() == 0 else "/home/user/log", "a").write("db\n"); time.sleep(600)'
	ak service add svc app --needs db -- sh -c 'echo app >>~/log; exec sleep 600'
	ak service add svc short -- sh -c 'echo short; exit 1'
	run ak service add svc lost --needs nothing -- true
	[ "$status" -eq 125 ]
	run ak service remove svc db
	[[ "$output" == *"service 'app' needs it"* ]]
	ak start svc
	until_true eval 'ak exec svc sh -c "cat ~/log" | grep -q app'
	[ "$(ak exec svc sh -c 'cat ~/log' | tail -2)" = $'db\napp' ]
	until_true eval '[ "$(ak service list svc | awk "\$1 == \"short\" { print \$3 }")" -ge 2 ]'
	[[ "$(ak service logs svc short)" == *short* ]]
	[[ "$(ak service list svc)" == *"db "*ready* ]]
	before=$(ak service list --json svc | python3 -c 'import json, sys; print([s["id"] for s in json.load(sys.stdin)["services"] if s["service"] == "app"])')
	ak service restart svc app
	until_true eval '[ "$(ak service list --json svc | python3 -c "import json, sys; print([s[\"id\"] for s in json.load(sys.stdin)[\"services\"] if s[\"service\"] == \"app\"])")" != "$before" ]'
	ak service remove svc short
	ak restart svc
	until_true eval '[ "$(ak exec svc grep -c main /root/log 2>/dev/null || ak exec svc grep -c main /home/user/log)" -eq 2 ]'
	run ak service list svc
	[[ "$output" != *short* ]]
}

@test "the command of run -d comes back after stop and start" {
	name=$(ak run -d -i host --name back sh -c 'echo again; exec sleep 600')
	[ "$name" = back ]
	ak stop back
	ak start back
	until_true eval '[[ "$(ak service logs back main)" == again ]]'
}

@test "[[services]] of agentkernel.toml; a wrong one is told with its line" {
	cd "$SHARED/work"
	printf '[[services]]\nname = "web"\ncommand = "exec sleep 600"\nport = 3000\n' >agentkernel.toml
	ak create -c agentkernel.toml toml -i host
	[[ "$(ak service list toml)" == *"web "*3000* ]]
	printf '[[services]]\nname = "web"\ncomand = "x"\n' >agentkernel.toml
	run ak create -c agentkernel.toml toml2 -i host
	[[ "$output" == *"agentkernel.toml:3"* && "$output" == *command* ]]
	rm agentkernel.toml
}

@test "an idle sandbox is frozen; its URL, a port, an exec and a file wake it" {
	port=$(free_port)
	run ak run --idle-timeout 1s true
	[ "$status" -eq 125 ]
	[[ "$output" == *"for sandboxes that stay"* ]]
	ak create doze -i host -P "$port:3000" --idle-timeout 300ms -- python3 -c "$SITE" 3000
	ak start doze
	for wake in "curl -fsS -o /dev/null http://127.0.0.1:$port/" "ak exec doze true" "ak cp doze:/etc/hostname $W/h"; do
		until_true eval '[[ "$(ak list | grep "^doze ")" == *sleeping* ]]'
		$wake
	done
	# a command that runs keeps it awake
	ak exec doze sleep 1
	until_true eval '[[ "$(ak list | grep "^doze ")" == *sleeping* ]]'
	ak pause doze
	[[ "$(ak list | grep "^doze ")" == *paused* ]]
	ak resume doze
	ak stop doze
	[[ "$(ak list --all | grep '^doze ')" == *stopped* ]]
}

@test "one that is stopped when idle is started by a connection, which waits for its service" {
	port=$(free_port)
	ak create nap -i host -P "$port:3000" --idle-timeout 300ms --idle stop -- python3 -c "$SITE" 3000 0.5
	ak start nap
	curl -fsS -o /dev/null "http://127.0.0.1:$port/"
	until_true eval '[[ "$(ak list | grep "^nap ")" == *sleeping* ]]'
	starts=$(grep -c started: <(ak logs --system nap))
	# ten at once wake it once
	pids=()
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		curl -fsS -m 20 "http://127.0.0.1:$port/" >>"$BATS_TEST_TMPDIR/answers" 3>&- &
		pids+=($!)
	done
	wait "${pids[@]}"
	[ "$(grep -c '^GET /' "$BATS_TEST_TMPDIR/answers")" -eq 10 ]
	[ "$(grep -c started: <(ak logs --system nap))" -eq $((starts + 1)) ]
	until_true eval '[[ "$(ak list | grep "^nap ")" == *sleeping* ]]'
	[ "$(ak exec nap echo awake)" = awake ]
	until_true eval '[[ "$(ak list | grep "^nap ")" == *sleeping* ]]'
	# its port is held, and given up by a stop
	ak stop nap
	run curl -sS -m 5 "http://127.0.0.1:$port/"
	[ "$status" -eq 7 ]
}

@test "a URL wakes both kinds of sleep" {
	site idle1 '"idle_timeout": "300ms"'
	site idle2 '"idle_timeout": "300ms", "idle": "stop"'
	for name in idle1 idle2; do
		until_true eval '[[ "$(ak list | grep "^$name ")" == *sleeping* ]]'
		# strangers wake nothing
		[[ "$(url "3000-$name.localhost:$PORT" /)" == *401 ]]
		[[ "$(ak list | grep "^$name ")" == *sleeping* ]]
		[[ "$(url "3000-$name.localhost:$PORT" / -H "$A")" == *200 ]]
	done
}

ws() { # PATH STEP...
	local path=$1
	shift
	HEADERS=$'Authorization: Bearer KEY-A\r\n' timeout 60 python3 "$SHARED/wsclient.py" "ws://127.0.0.1:$PORT$path" "$@"
}

@test "a command over a WebSocket: streams, end of input, exit status, signals" {
	site sock
	run ws '/sandboxes/sock/exec/ws?cmd=sh&cmd=-c&cmd=echo+out;echo+err+>%262;exit+3'
	[[ "$output" == *'bin \x01out\n'* && "$output" == *'bin \x02err\n'* && "$output" == *'bin \x03\x03'* && "$output" == *"close 1000"* ]]
	run ws '/sandboxes/sock/exec/ws?cmd=tr&cmd=a-z&cmd=A-Z' 'bin:\x00hello' 'bin:\x04'
	[[ "$output" == *'bin \x01HELLO'* && "$output" == *'bin \x03\x00'* ]]
	run ws '/sandboxes/sock/exec/ws?cmd=sleep&cmd=60' sleep:0.5 'text:{"type":"signal","signal":"SIGTERM"}'
	[[ "$output" == *'"exit_code":143'* ]]
	run ws '/sandboxes/sock/exec/ws?cmd=head&cmd=-c&cmd=20000000&cmd=/dev/zero'
	[ "$(awk '$1 == "bin" && $3 == "bytes" { n += $2 - 1 } END { print n }' <<<"$output")" -ge 19000000 ]
	run ws '/sandboxes/sock/exec/ws?nonsense=1'
	[ "$output" = 'status 400' ]
	HEADERS='' run python3 "$SHARED/wsclient.py" "ws://127.0.0.1:$PORT/sandboxes/sock/exec/ws?cmd=true"
	[ "$output" = 'status 401' ]
}

@test "a terminal over a WebSocket stays without its client, and is joined with what was missed" {
	site term
	run ws '/sandboxes/term/exec/ws?cmd=sh&tty=true&rows=40&cols=100' 'bin:stty size; echo fir""st\r' wait:first 'text:{"type":"resize","rows":50,"cols":90}' drop
	[[ "$output" == *"40 100"* ]]
	id=$(sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' <<<"$output")
	# two at once: one watches, the other types
	ws "/sandboxes/term/exec/detached/$id/ws?tty=true" >"$BATS_TEST_TMPDIR/watch" 3>&- &
	watcher=$!
	run ws "/sandboxes/term/exec/detached/$id/ws?tty=true" wait:first 'bin:stty size; exit 5\r'
	[[ "$output" == *first* && "$output" == *"50 90"* && "$output" == *'"exit_code":5'* ]]
	wait "$watcher"
	grep -q '50 90' "$BATS_TEST_TMPDIR/watch"
	grep -q '"exit_code":5' "$BATS_TEST_TMPDIR/watch"
}

@test "a plain command ends when its client goes" {
	site gone
	run ws '/sandboxes/gone/exec/ws?cmd=sh&cmd=-c&cmd=echo+begun;exec+sleep+77' wait:begun drop
	until_true eval '! ak ps gone | grep -q "sleep 77"'
	run ws '/sandboxes/gone/exec/ws?tty=true&detachable=false&cmd=sh&cmd=-c&cmd=echo+begun;exec+sleep+78' wait:begun drop
	until_true eval '! ak exec gone pgrep -x sleep >/dev/null'
}

@test "a client that breaks the protocol is closed with the right code" {
	site broken
	local path='/sandboxes/broken/exec/ws?cmd=cat'
	run ws "$path" raw:820500000000 # no mask
	[[ "$output" == *"close 1002"* ]]
	run ws "$path" raw:c28000000000 # a reserved bit
	[[ "$output" == *"close 1002"* ]]
	run ws "$path" raw:818200000000fffe # no UTF-8
	[[ "$output" == *"close 1007"* ]]
	run ws "$path" big:2097152
	[[ "$output" == *"close 1009"* ]]
	run ws "$path" raw:89810000000041 'bin:\x04' # a ping
	[ "$status" -eq 0 ]
}

@test "a WebSocket of a server inside passes through, with its end" {
	api POST /sandboxes '{"name":"echo","image":"host"}' | grep -q '"success":true'
	script=$(python3 -c 'import json; print(json.dumps(r"""
import socket, hashlib, base64
s = socket.create_server(("127.0.0.1", 3000))
while True:
    c, _ = s.accept()
    data = b""
    piece = b"."
    while piece and b"\r\n\r\n" not in data:
        piece = c.recv(4096)
        data += piece
    if not piece:
        continue # the supervisor, looking whether the port answers
    key = [l.split(b": ", 1)[1] for l in data.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    frame = c.recv(4096)
    n = frame[1] & 127
    text = bytes(b ^ frame[2 + i % 4] for i, b in enumerate(frame[6:6 + n]))
    c.sendall(bytes([0x81, n]) + text.upper() + b"\x88\x02\x03\xe8")
    c.close()
"""))')
	api POST /sandboxes/echo/services "{\"service\":\"web\",\"port\":3000,\"command\":[\"python3\",\"-c\",$script]}" | grep -q '"success":true'
	HOST="3000-echo.localhost:$PORT" HEADERS=$'Agentkernel-Key: KEY-A\r\n' run timeout 20 python3 "$SHARED/wsclient.py" "ws://127.0.0.1:$PORT/socket" text:hello
	echo "$output"
	[[ "$output" == *"text HELLO"* && "$output" == *"close 1000"* ]]
}
