# Shared by the network tests, in addition to tests/cli's. One world for each file.
#
# THROUGH=control runs clients without a sandbox, on the world's host: it verifies the world. The
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

# inside [OPTION...] -- COMMAND...: in a sandbox with a network, as this round's caller
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

# through [OPTION...] -- COMMAND...: inside, with only OPTION's hosts allowed; as control outside
through() {
	if is_control; then
		while [ "$1" != -- ]; do shift; done
		shift
		outside "$@"
	else
		inside --network-policy deny "$@"
	fi
}

# talk [OPTION...] -- ACTION...: runs talk.py like through()
talk() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	through "${options[@]}" -- /usr/bin/python3 -I "$PUB/talk.py" "$@"
}

# try [OPTION...] -- ACTION...: inside, with only the rules in OPTION
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

# has TEXT: the last output contains it
has() {
	[[ "$output" == *"$1"* ]] || { echo "no '$1' in: $output"; return 1; }
}

# succeeds: the last `run` succeeded
succeeds() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
}

# refused: the last talk got an error at once, not a timeout
refused() {
	case "$output" in
	ECONNREFUSED | ECONNRESET | EPIPE | ENETUNREACH | EHOSTUNREACH | EACCES | EPERM | closed | nxdomain | "tls TLSV1_ALERT_ACCESS_DENIED") ;;
	*) echo "not refused: $output"; return 1 ;;
	esac
}

# all_refused: each line of the last `talk each` was refused
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

# no_socket: the last talk could not create its socket, or was refused
no_socket() {
	case "$output" in
	EPROTONOSUPPORT | EAFNOSUPPORT | ESOCKTNOSUPPORT) ;;
	*) refused ;;
	esac
}

# mark LOG...: remembers the length of the logs; `unseen` and `seen` check later lines
mark() {
	local log
	for log; do world_log "$log" | wc -l >"$W/mark.$log"; done
}

since() {
	world_log "$1" | tail -n "+$(($(cat "$W/mark.$1") + 1))"
}

# seen LOG PATTERN: there is a line with PATTERN since the mark
seen() {
	since "$1" | grep -q -- "$2" || { echo "$1 has no '$2' but:"; since "$1"; return 1; }
}

# unseen LOG [PATTERN]: there is no line with PATTERN since the mark; without PATTERN: no line at
# all
unseen() {
	local lines
	lines=$(since "$1" | grep -- "${2:-.}") || return 0
	echo "$1 has seen:"
	echo "$lines"
	return 1
}
