#!/usr/bin/env bats
# A server that ends, on request, killed or abandoned, ends everything it started for its callers'
# calls: commands that ignore signals, those in their own sandboxes and in named ones, pulls that
# hang. A named sandbox stays on purpose.

load helpers

# left FACE END KIND: what ends.py still finds, as the caller of this round
left() {
	run as python3 "$TOP/tests/named/ends.py" "$AK" "$@" 3>&-
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
	ak remove -f stays never 2>/dev/null || true
}

STAYS='agentkernel: supervisor of stays
sleep 100
the server ended within'

@test "an MCP server that is told to end, killed or left ends all calls" {
	for end in TERM KILL close; do
		left mcp "$end" calls
		says "$STAYS 10 s"
	done
}

# bats test_tags=once
@test "an HTTP server that is killed ends all calls, and one that is told to end does when it has waited" {
	left serve KILL calls
	says "$STAYS 10 s"
	rm -f socket
	left serve TERM calls
	says "$STAYS 40 s"
}

@test "nobody goes on pulling an image for a server that is gone" {
	for face in mcp serve; do
		left "$face" KILL pulls
		says "
the server ended within 10 s"
		rm -f socket
	done
}
