# Shared by the bats files. The whole suite runs twice: AS=root and AS=user (an id without an
# account and without any privilege). Binaries are copied to a place that both can reach.
. "$BATS_TEST_DIRNAME/../surroundings.bash"

setup_file() {
	load_shared
}

load_shared() {
	export TOP SHARED AK PROBE AGENTKERNEL_IMAGE=${IMAGE:-host}
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SHARED=$(mktemp -d /tmp/agentkernel-test.XXXXXX)
	chmod 755 "$SHARED"
	cp "$BUILD"/agentkernel "$BUILD"/agentkernel-gate "$BUILD"/agentkernel-image "$BUILD"/agentkernel-mcp "$BUILD"/agentkernel-serve "$BUILD/probe" "$SHARED/"
	mkdir -m 777 "$SHARED/work" "$SHARED/home"
	AK=$SHARED/agentkernel
	PROBE=$SHARED/probe
	[ -z "${IMAGE:-}" ] || import_image
}

# IMAGE=name: everything runs in an image of that name, which contains a busybox.
import_image() {
	as bash -c ". '$TOP/tests/image/rootfs.bash' && make_rootfs '$SHARED/work/rootfs'" &&
		ak image import --quiet "$IMAGE" "$SHARED/work/rootfs" >/dev/null
}

teardown_file() {
	rm -rf "$SHARED"
}

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W"
	cd "$W" || return 1
}

# Runs a command as the caller of this round. AS=self: as the user that runs the tests.
as() {
	if [ "${AS:-root}" != user ]; then
		env HOME="$SHARED/home" AGENTKERNEL_HOME="$SHARED/home/state" AGENTKERNEL_IMAGE="${IMAGE:-host}" "$@"
	else
		setpriv --reuid 12345 --regid 12345 --clear-groups --no-new-privs env HOME="$SHARED/home" AGENTKERNEL_HOME="$SHARED/home/state" AGENTKERNEL_IMAGE="${IMAGE:-host}" "$@"
	fi
}

ak() {
	as "$AK" "$@"
}

# The probe inside a sandbox: probe [run's options] -- ACTION [ARG...]
probe() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	ak run --mount "$PROBE:/probe:ro" "${options[@]}" /probe "$@"
}

only_host() {
	[ -z "${IMAGE:-}" ] || skip "about this machine's own programs"
}

only_root() {
	[ "${AS:-root}" = root ] || skip "needs a root caller"
}

only_user() {
	[ "${AS:-root}" != root ] || skip "needs an ordinary caller"
}

# fails_with STATUS TEXT: the last `run` failed for this reason, in one line
fails_with() {
	[ "$status" -eq "$1" ] || { echo "status $status, not $1: $output"; return 1; }
	[[ "$output" == *"$2"* ]] || { echo "no '$2' in: $output"; return 1; }
	[ "$(wc -l <<<"$output")" -eq 1 ] || { echo "more than a line: $output"; return 1; }
}

says() {
	[ "$output" = "$1" ] || { echo "expected: $1"; echo "got: $output"; return 1; }
}
