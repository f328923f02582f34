#!/usr/bin/env bats
# Rules that change while a gate runs. keeper.c is the supervisor, hold.py the sandbox's program.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	net_setup_file && cp "$BUILD/keeper" "$SHARED/" && cp "$WORLD_TOP/hold.py" "$WORLD/pub/" &&
		world_serve tcp web
}

teardown() {
	[ -z "${KEEPER:-}" ] || close_keeper
}

# open_keeper RULES...: a sandbox's network with these rules, without a gate yet
open_keeper() {
	local enter=in_world
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	LOG=$SHARED/home/state/network.log
	rm -f "$LOG"
	mkfifo -m 666 "$W/commands" "$W/say"
	touch "$W/answers" && chmod 666 "$W/answers"
	"$enter" "$SHARED/keeper" "$W/commands" "$W/answers" /usr/bin/python3 -IB "$WORLD/pub/hold.py" \
		<"$W/say" >"$W/heard" 2>"$W/errors" 3>&- &
	KEEPER=$!
	exec 4>"$W/say" 5<>"$W/commands"
	rules "$@"
}

close_keeper() {
	exec 4>&-
	wait "$KEEPER"
	exec 5>&-
	unset KEEPER
}

# await FILE COUNT: prints its line COUNT, waiting for it
await() {
	local i
	for ((i = 0; i < 400; i++)); do
		[ "$(wc -l <"$1")" -ge "$2" ] && { sed -n "$2p" "$1"; return 0; }
		sleep 0.025
	done
	echo "no answer"
	cat "$W/errors"
	return 1
}

# to the sandbox / to the supervisor; the answer is in $output
do_() {
	local count=$(($(wc -l <"$W/heard") + 1))
	echo "$*" >&4
	output=$(await "$W/heard" "$count")
}

tell() {
	local count=$(($(wc -l <"$W/answers") + 1))
	echo "$*" >&5
	output=$(await "$W/answers" "$count")
}

# rules DEFAULT [+PATTERN|-PATTERN]...
rules() {
	local fallback=$1
	shift
	tell rules "$fallback" "${BANDWIDTH:-0}" "$@"
	says ok
}

gate_pid() {
	tell status
	read -r _ _ _ pid _ <<<"$output"
	echo "$pid"
}

# logged WORD HOST PORT: the network log has that decision
logged() {
	cut -f3-5 "$LOG" | grep -qx "$1	$2	$3" || { echo "not logged: $*"; cat "$LOG"; return 1; }
}

@test "new rules close what they do not allow, and nothing else" {
	open_keeper deny +tcp.allowed.test +other.test
	do_ open a tcp.allowed.test 7
	do_ open b other.test 7
	do_ say a 'hello\n'
	says "ok hello"
	do_ say b 'hello\n'
	says "ok hello"
	gate=$(gate_pid)
	rules deny +tcp.allowed.test
	do_ wait b
	says ECONNRESET
	logged denied other.test 7
	do_ look a
	says open
	do_ say a 'still here\n'
	says "ok still here"
	[ "$(gate_pid)" = "$gate" ]
	do_ open c other.test 7
	says nxdomain
	! logged denied tcp.allowed.test 7
}

@test "what new rules allow can be reached, by the gate that runs" {
	open_keeper deny +tcp.allowed.test
	do_ open a tcp.allowed.test 7
	gate=$(gate_pid)
	do_ open b other.test 7
	says nxdomain
	rules deny +tcp.allowed.test +other.test:7
	do_ open b other.test 7
	do_ say b 'hello\n'
	says "ok hello"
	do_ open c other.test 2000
	[ "$output" != ok ] || do_ wait c
	says ECONNRESET
	[ "$(gate_pid)" = "$gate" ]
}

@test "a block by default, by wildcard, by port and by address closes" {
	open_keeper allow
	do_ open a a.allowed.test 7
	do_ open b b.allowed.test 2003
	do_ open c "$OTHER" 7
	do_ open d denied.test 7
	do_ open e other.test 7
	for label in a c d e; do do_ say $label 'x\n'; says "ok x"; done
	rules allow -b.allowed.test:2003
	do_ wait b
	says ECONNRESET
	rules allow -*.denied.test "-$OTHER/32"
	do_ wait c
	says ECONNRESET
	do_ wait e # its name is allowed, but not its current address
	says ECONNRESET
	logged denied other.test 7
	do_ say d 'x\n'
	says "ok x"
	do_ say a 'x\n'
	says "ok x"
	rules deny +denied.test
	do_ wait a
	says ECONNRESET
	do_ say d 'x\n'
	says "ok x"
}

@test "the next request on a kept connection meets the new rules" {
	open_keeper deny '+*.allowed.test'
	do_ open a www.allowed.test 80
	do_ get a www.allowed.test
	says "ok 200 host=www.allowed.test sni= at=$WWW HTTP/1.1"
	do_ get a shop.allowed.test
	says "ok 200 host=shop.allowed.test sni= at=$WWW HTTP/1.1"
	do_ get a www.allowed.test
	rules deny '+*.allowed.test' -shop.allowed.test
	do_ look a
	says open
	do_ get a www.allowed.test
	says "ok 200 host=www.allowed.test sni= at=$WWW HTTP/1.1"
	mark web
	do_ get a shop.allowed.test
	says ECONNRESET
	unseen web
	logged denied shop.allowed.test 80
}

@test "a host that a client has asked for, and that is blocked now, ends its connection" {
	open_keeper deny '+*.allowed.test'
	do_ open a www.allowed.test 80
	do_ get a shop.allowed.test
	says "ok 200 host=shop.allowed.test sni= at=$WWW HTTP/1.1"
	do_ open b www.allowed.test 443
	do_ tls b shop.allowed.test
	says "ok TLSv1.3"
	do_ open c www.allowed.test 443
	do_ tls c www.allowed.test
	says "ok TLSv1.3"
	do_ look b # TLS session tickets
	do_ look c
	rules deny '+*.allowed.test' -shop.allowed.test
	do_ wait a
	says ECONNRESET
	do_ wait b
	says closed # as OpenSSL reports it
	logged denied shop.allowed.test 80
	logged denied shop.allowed.test 443
	do_ get c www.allowed.test
	has "ok 200 host=www.allowed.test sni=www.allowed.test"
}

@test "a connection that has said nothing yet is judged, too" {
	open_keeper deny +tcp.allowed.test +other.test
	do_ open a other.test 2003
	do_ open b tcp.allowed.test 2003
	rules deny +tcp.allowed.test
	do_ wait a
	says ECONNRESET
	do_ look b
	says open
}

@test "half a request waits for the rules that hold when it is whole" {
	open_keeper deny '+*.allowed.test'
	do_ open a www.allowed.test 80
	do_ send a 'GET /name HTTP/1.1\r\nHost:\x20shop.allo'
	sleep 0.2
	rules deny '+*.allowed.test' -shop.allowed.test
	mark web
	do_ say a 'wed.test\r\n\r\n'
	says "ok HTTP/1.1 403 Forbidden"
	unseen web
}

@test "a connection on its way is judged, too: while it is looked up and while it is dialed" {
	open_keeper deny +slow.test +pit.test +tcp.allowed.test
	do_ resolve slow.test
	address=${output#ok }
	kill -9 "$(gate_pid)" # and its state with it
	for _ in $(seq 40); do [ "$(gate_pid)" -eq 0 ] && break; sleep 0.05; done
	do_ open a "$address" 2003
	says ok
	do_ open b pit.test 2003
	says ok
	do_ open c pit.test 2004
	rules deny +pit.test +tcp.allowed.test -pit.test:2004
	do_ wait a
	says ECONNRESET
	logged denied slow.test 2003
	do_ wait c
	says ECONNRESET
	do_ look b
	says open
	rules deny +pit.test +tcp.allowed.test "-$HOLE"
	do_ wait b
	says ECONNRESET
	logged denied pit.test 2003
	do_ open d tcp.allowed.test 7
	do_ say d 'x\n'
	says "ok x"
}

@test "an address that new rules block is given up while the others are dialed" {
	open_keeper deny +hole.test
	do_ resolve hole.test
	do_ open a hole.test 7
	rules deny +hole.test "-$HOLE"
	do_ say a 'x\n'
	says "ok x"
	! logged denied hole.test 7
}

@test "a lookup on its way is judged, too" {
	open_keeper deny +slow.test +tcp.allowed.test
	do_ resolve tcp.allowed.test
	do_ later resolve slow.test
	sleep 0.2
	rules deny +tcp.allowed.test
	logged denied slow.test 0
	do_ result
	says nxdomain
}

@test "a tunnel ends when what it leads to is blocked" {
	open_keeper deny +tcp.allowed.test +other.test +denied.test
	do_ open a tcp.allowed.test 7
	do_ say a 'CONNECT other.test:443 HTTP/1.1\r\nHost:\x20other.test:443\r\n\r\n'
	has "ok CONNECT other.test:443"
	do_ open b tcp.allowed.test 7
	do_ say b 'CONNECT denied.test:443 HTTP/1.1\r\nHost:\x20denied.test:443\r\n\r\n'
	do_ look a
	do_ look b
	rules deny +tcp.allowed.test +denied.test
	do_ wait a
	says ECONNRESET
	logged denied other.test 443
	do_ look b
	says open
}

@test "bandwidth changes for connections that are open" {
	open_keeper deny +tcp.allowed.test
	do_ open a tcp.allowed.test 2003
	BANDWIDTH=20000 rules deny +tcp.allowed.test
	do_ open b tcp.allowed.test 2004
	sleep 1
	tell status
	read -r _ received _ <<<"$output"
	[ "$received" -lt 100000 ] || { echo "$received bytes"; return 1; }
	BANDWIDTH=0 rules deny +tcp.allowed.test
	sleep 1.5
	tell status
	read -r _ later _ <<<"$output"
	[ "$later" -gt "$((received + 200000))" ] || { echo "$later bytes after $received"; return 1; }
}

@test "what was sent and received is known, over all gates" {
	open_keeper deny +tcp.allowed.test
	do_ open a tcp.allowed.test 7
	do_ say a '123456789\n'
	sleep 1.2
	tell status
	[[ "$output" == "10 10 0 "* ]] || { echo "$output"; return 1; }
	kill -9 "$(gate_pid)"
	do_ open b tcp.allowed.test 2000
	do_ say b '12345\n'
	do_ say b '' # "you said 12345"
	close_keeper # the last traffic report comes at the end
	[ "$(tail -1 "$W/answers")" = "16 38 1 0 -" ] || { cat "$W/answers"; return 1; }
}

@test "a gate that is gone comes back with the new rules" {
	open_keeper deny +tcp.allowed.test
	do_ open a tcp.allowed.test 7
	kill -9 "$(gate_pid)"
	rules deny +other.test
	do_ open b other.test 7
	do_ say b 'x\n'
	says "ok x"
	do_ open c tcp.allowed.test 7
	says nxdomain
}

@test "a gate that is stuck is replaced by one with the new rules" {
	open_keeper deny +tcp.allowed.test
	do_ open a tcp.allowed.test 7
	gate=$(gate_pid)
	kill -STOP "$gate"
	rules deny +other.test
	[ ! -e "/proc/$gate" ]
	do_ wait a
	says closed # by the kernel
	do_ open b other.test 7
	do_ say b 'x\n'
	says "ok x"
	tell status
	has "the gate does not take new rules"
}

@test "garbage from the supervisor ends the gate, and the next has the rules that count" {
	local round=0
	open_keeper deny +tcp.allowed.test
	while read -r kind words; do
		do_ open a tcp.allowed.test 7
		do_ say a 'x\n'
		says "ok x"
		gate=$(gate_pid)
		tell raw "$kind" "$words"
		says ok
		do_ wait a
		says ECONNRESET
		for _ in $(seq 100); do # its connections end a moment before it does
			grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$gate/status" 2>/dev/null || break
			sleep 0.02
		done
		! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$gate/status" 2>/dev/null
		round=$((round + 1))
		for _ in $(seq 40); do tell status; [[ "$output" == *" $round "[0-9]* ]] && break; sleep 0.05; done
		[ "$(cut -d' ' -f3 <<<"$output")" -eq "$round" ]
	done <<-END
	none hello
	none rules 0
	rules rules
	rules rules 0 0
	open rules 0
	END
	has "the supervisor sent an invalid message"
	do_ open b other.test 7
	says nxdomain
}
