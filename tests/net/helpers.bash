# Shared by the network tests, beside those of tests/cli. One world for each file.
#
# THROUGH=control runs clients without a sandbox, from the world's host: it proves the world. The
# default, THROUGH=sandbox, runs the same inside, with AS=root or AS=user as the caller.
load ../cli/helpers
# shellcheck disable=SC2154
# shellcheck source=tests/net/world.bash
source "$BATS_TEST_DIRNAME/world.bash"

net_setup_file() {
	[ "$(id -u)" -eq 0 ] || { echo "these tests need root, to make network namespaces"; return 1; }
	[ -e /proc/sys/net/ipv6 ] || skip "needs a kernel with IPv6"
	export SHARED AK PROBE PUB
	SHARED=$(mktemp -d /tmp/agentkernel-test.XXXXXX)
	chmod 755 "$SHARED"
	mkdir -m 777 "$SHARED/work" "$SHARED/home"
	AK=$SHARED/agentkernel
	PROBE=$SHARED/probe
	if is_control; then PUB=$SHARED/pub; else PUB=/world; fi
	world_up || return 1
	[ ! -e "$BUILD/agentkernel" ] || cp "$BUILD"/agentkernel "$BUILD"/agentkernel-gate "$BUILD"/agentkernel-image "$BUILD"/agentkernel-mcp "$BUILD"/agentkernel-serve "$BUILD/probe" "$SHARED/" || return 1
	cp "$BUILD/resolver" "$WORLD/pub/"
	ln -s "$WORLD/pub" "$SHARED/pub"
}

teardown_file() {
	world_down
	rm -rf "$SHARED"
}

is_control() {
	[ "${THROUGH:-sandbox}" = control ]
}

# outside COMMAND...: on the world's host, without a sandbox
outside() {
	in_world TMPDIR="$W" "$@"
}

# inside [OPTION...] -- COMMAND...: in a sandbox with a network, the caller being this round's
inside() {
	local options=() enter=in_world
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	"$enter" "$AK" run --network -v "$WORLD/pub:/world:ro" "${options[@]}" -- "$@"
}

# through [OPTION...] -- COMMAND...: inside, nothing but OPTION's hosts being allowed; as control outside
through() {
	if is_control; then
		while [ "$1" != -- ]; do shift; done
		shift
		outside "$@"
	else
		inside --network-policy deny "$@"
	fi
}

# The client of many tricks: through what comes before -- (see talk.py)
talk() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	through "${options[@]}" -- /usr/bin/python3 -I "$PUB/talk.py" "$@"
}

# try [OPTION...] -- ACTION...: inside, with the rules in OPTION and no others
try() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	inside "${options[@]}" -- /usr/bin/python3 -I /world/talk.py "$@"
}

# talk_outside ACTION...: the same without a sandbox, as the control of an attack
talk_outside() {
	outside /usr/bin/python3 -I "$WORLD/pub/talk.py" "$@"
}

# has WORDS: they are in the last output
has() {
	[[ "$output" == *"$1"* ]] || { echo "no '$1' in: $output"; return 1; }
}

# succeeds: the last `run` did
succeeds() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
}

# refused: the last talk was told no, at once and not by silence
refused() {
	case "$output" in
	ECONNREFUSED | ECONNRESET | EPIPE | ENETUNREACH | EHOSTUNREACH | EACCES | EPERM | closed | nxdomain | "tls TLSV1_ALERT_ACCESS_DENIED") ;;
	*) echo "not refused: $output"; return 1 ;;
	esac
}

# all_refused: each line of the last `talk each` was
all_refused() {
	local lines=$output line
	[ -n "$lines" ] || { echo "no output"; return 1; }
	while read -r line; do
		output=${line#* }
		refused || { echo "in: $line"; output=$lines; return 1; }
	done <<<"$lines"
	output=$lines
}

# all_ok: each line of the last `talk each` was answered
all_ok() {
	! grep -v '^[^ ]* ok' <<<"$output"
}

# no_socket: the last talk could not even make its socket, or was refused
no_socket() {
	case "$output" in
	EPROTONOSUPPORT | EAFNOSUPPORT | ESOCKTNOSUPPORT) ;;
	*) refused ;;
	esac
}

# mark LOG...: remembers how much the logs hold; `unseen` and `seen` look at what came later
mark() {
	local log
	for log; do world_log "$log" | wc -l >"$W/mark.$log"; done
}

since() {
	world_log "$1" | tail -n "+$(($(cat "$W/mark.$1") + 1))"
}

# seen LOG PATTERN: a line with PATTERN came since the mark
seen() {
	since "$1" | grep -q -- "$2" || { echo "$1 has no '$2' but:"; since "$1"; return 1; }
}

# unseen LOG [PATTERN]: no line with PATTERN came since the mark; without: no line at all
unseen() {
	local lines
	lines=$(since "$1" | grep -- "${2:-.}") || return 0
	echo "$1 has seen:"
	echo "$lines"
	return 1
}
