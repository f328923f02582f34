# Shared by the bats files about named sandboxes. They run as three callers: AS=root; AS=user, an id
# without an account and without additional ids; AS=subuser, an account created here with a range of
# ids in /etc/subuid. All tests of a file share a state directory, STATE, with image "bb", so a
# sandbox is named after its test. Everything that a file created is removed at its end.
bats_require_minimum_version 1.5.0
. "$BATS_TEST_DIRNAME/../surroundings.bash"
. "$BATS_TEST_DIRNAME/../image/rootfs.bash"

setup_shared() {
	export TOP SHARED STATE AK PROBE CALLER_ID=0 ACCOUNT=
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SHARED=$(mktemp -d /tmp/agentkernel-test.XXXXXX) || return 1
	chmod 755 "$SHARED"
	mkdir "$SHARED/home" "$SHARED/work" "$SHARED/import"
	cp "$BUILD"/agentkernel "$BUILD"/agentkernel-gate "$BUILD"/agentkernel-image "$BUILD"/agentkernel-mcp "$BUILD"/agentkernel-serve "$BUILD/probe" "$SHARED/" || return 1
	AK=$SHARED/agentkernel
	PROBE=$SHARED/probe
	STATE=$SHARED/home/state
	case ${AS:-root} in
	user) CALLER_ID=12345 ;;
	subuser) make_account || return 1 ;;
	self) CALLER_ID=$(id -u) ;;
	esac
	give "$SHARED/home" "$SHARED/import"
}

# Creates an account only for these tests, with 65536 additional ids.
make_account() {
	local name=ak-named-$$
	useradd --home-dir "$SHARED/home" --no-create-home --shell /bin/sh "$name" || return 1
	ACCOUNT=$name
	CALLER_ID=$(id -u "$name")
	grep -q "^$name:" /etc/subuid || usermod --add-subuids 700000000-700065535 "$name" || return 1
	grep -q "^$name:" /etc/subgid || usermod --add-subgids 700000000-700065535 "$name"
}

give() {
	[ "$(id -u)" -ne 0 ] || chown "$CALLER_ID:$CALLER_ID" "$@"
}

import_bb() {
	as bash -c ". '$TOP/tests/image/rootfs.bash' && make_rootfs '$SHARED/import/bb' &&
		mkdir '$SHARED/import/bb/opaque' && echo lower >'$SHARED/import/bb/opaque/lower' &&
		echo doomed >'$SHARED/import/bb/doomed'" &&
		ak image import --quiet bb "$SHARED/import/bb" >/dev/null
}

remove_shared() {
	local pid name
	[ -n "${SHARED:-}" ] || return 0
	for pid in $(cat "$SHARED/pids" 2>/dev/null); do
		kill "$pid" 2>/dev/null || true
	done
	for name in $(ak list --all --quiet 2>/dev/null); do
		ak remove -f "$name" || true
	done
	for pid in $(processes_of "$AK" | cut -d' ' -f1); do # a process that hangs has failed its test already
		kill -9 "$pid" 2>/dev/null || true
	done
	rm -rf "$SHARED"
	[ -z "$ACCOUNT" ] || userdel "$ACCOUNT" 2>/dev/null || userdel --force "$ACCOUNT"
}

setup_file() {
	setup_shared && import_bb || return 1
	! declare -F prepare_file >/dev/null || prepare_file
}

teardown_file() {
	remove_shared
}

setup() {
	setup_work
}

setup_work() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	chmod 755 "$W"
	give "$W"
	cd "$W" || return 1
}

# Runs a command as the caller of this round.
as() {
	local words=(env AGENTKERNEL_IMAGE=host HOME="$SHARED/home" AGENTKERNEL_HOME="$STATE" "$@")
	case ${AS:-root} in
	user) setpriv --reuid "$CALLER_ID" --regid "$CALLER_ID" --clear-groups --no-new-privs "${words[@]}" ;;
	subuser) setpriv --reuid "$CALLER_ID" --regid "$CALLER_ID" --clear-groups "${words[@]}" ;;
	*) "${words[@]}" ;;
	esac
}

# Closes bats' own descriptor, which would make bats wait for a process that hangs.
ak() {
	as "$AK" "$@" 3>&-
}

# Starts the client itself as a job of this shell, so that it can be killed: CLIENT is its pid.
client() {
	case ${AS:-root} in
	user | subuser)
		setpriv --reuid "$CALLER_ID" --regid "$CALLER_ID" --clear-groups \
			env HOME="$SHARED/home" AGENTKERNEL_HOME="$STATE" "$AK" "$@" 3>&- &
		;;
	*) env HOME="$SHARED/home" AGENTKERNEL_HOME="$STATE" "$AK" "$@" 3>&- & ;;
	esac
	CLIENT=$!
}

# started NAME [create's options]: a new running sandbox
started() {
	ak create "$@" && ak start "$1"
}

# inside NAME ACTION [ARG...]: the probe in a sandbox created with --mount "$PROBE:/probe:ro"
inside() {
	local name=$1
	shift
	ak exec -T "$name" /probe "$@"
}

only_root() {
	[ "${AS:-root}" = root ] || skip "needs a root caller"
}

only_user() {
	[ "${AS:-root}" != root ] || skip "needs an ordinary caller"
}

# needs_kernel RELEASE FEATURE: skips on an older kernel
needs_kernel() {
	[ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1)" = "$1" ] || skip "needs $2 (Linux $1)"
}

# Can the caller give files to other users?
has_many_ids() {
	[ "${AS:-root}" = root ] || [ "${AS:-root}" = subuser ]
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

# until_true COMMAND...: waits up to ten seconds
until_true() {
	for _ in $(seq 200); do
		"$@" && return 0
		sleep 0.05
	done
	echo "never true: $*"
	return 1
}

# state NAME: with the reason; empty if there is no such sandbox
state() {
	ak info "$1" 2>/dev/null | sed -n 's/^state  *//p'
}

is_state() {
	[ "$(state "$1")" = "$2" ]
}

# field NAME KEY: of the sandbox's run file
field() {
	tr '\0' '\n' <"$STATE/sandboxes/$1/run" | sed -n "s/^$2=//p"
}

supervisor() {
	field "$1" supervisor
}

# What sandboxes of this file could leave outside: processes, mounts, sockets, incomplete files.
# Running ones are removed before.
leftovers() {
	processes_of "$AK"
	grep -F "$SHARED" /proc/self/mountinfo || true
	(cd "$STATE" && find sandboxes/.making sandboxes/.trash layers -mindepth 1 -not -name lock 2>/dev/null
		find . -maxdepth 4 \( -name '*.new' -o -name '.new-*' -o -name '.old-*' -o -name control.sock \)) || true
}

# The cgroups of a running sandbox; gone(): none of these paths exists.
groups_of() {
	field "$1" cgroup
}

gone() {
	local path
	for path; do
		[ ! -e "$path" ] || { echo "still there: $path"; return 1; }
	done
}
