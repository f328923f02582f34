# Shared by the bats files about images. They run as three callers: AS=root; AS=user, an id without
# an account and without additional ids; AS=subuser, an account created here with a range of ids in
# /etc/subuid. Each test has its own store, in its directory $W, unless STATE names another.
. "$BATS_TEST_DIRNAME/../surroundings.bash"
. "${BASH_SOURCE[0]%/*}/rootfs.bash"

setup_shared() {
	export TOP SHARED AK CALLER_ID=0 ACCOUNT=
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SHARED=$(mktemp -d /tmp/agentkernel-test.XXXXXX) || return 1
	chmod 755 "$SHARED"
	mkdir "$SHARED/home" "$SHARED/work"
	cp "$BUILD"/agentkernel "$BUILD"/agentkernel-gate "$BUILD"/agentkernel-image "$BUILD"/agentkernel-mcp "$BUILD"/agentkernel-serve "$SHARED/" || return 1
	AK=$SHARED/agentkernel
	case ${AS:-root} in
	user) CALLER_ID=12345 ;;
	subuser) make_account || return 1 ;;
	self) CALLER_ID=$(id -u) ;;
	esac
	give "$SHARED/home"
}

# Creates an account only for these tests, with 65536 additional ids.
make_account() {
	local name=ak-test-$$
	useradd --home-dir "$SHARED/home" --no-create-home --shell /bin/sh "$name" || return 1
	ACCOUNT=$name
	CALLER_ID=$(id -u "$name")
	grep -q "^$name:" /etc/subuid || usermod --add-subuids 700000000-700065535 "$name" || return 1
	grep -q "^$name:" /etc/subgid || usermod --add-subgids 700000000-700065535 "$name"
}

# Makes the caller of this round the owner.
give() {
	[ "$(id -u)" -ne 0 ] || chown "$CALLER_ID:$CALLER_ID" "$@"
}

remove_shared() {
	local pid
	[ -n "${SHARED:-}" ] || return 0
	for pid in $(cat "$SHARED/pids" 2>/dev/null); do
		kill "$pid" 2>/dev/null || true
	done
	rm -rf "$SHARED"
	[ -z "$ACCOUNT" ] || userdel "$ACCOUNT" 2>/dev/null || userdel --force "$ACCOUNT"
}

setup_file() {
	setup_shared
}

teardown_file() {
	remove_shared
}

setup() {
	make_place
}

make_place() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	chmod 755 "$W"
	give "$W"
	cd "$W" || return 1
}

# Runs a command as the caller of this round.
as() {
	local words=(env -u DOCKER_CONFIG HOME="$SHARED/home" AGENTKERNEL_HOME="${STATE:-$W/state}" "$@")
	case ${AS:-root} in
	user) setpriv --reuid "$CALLER_ID" --regid "$CALLER_ID" --clear-groups --no-new-privs "${words[@]}" ;;
	subuser) setpriv --reuid "$CALLER_ID" --regid "$CALLER_ID" --clear-groups "${words[@]}" ;;
	*) "${words[@]}" ;;
	esac
}

ak() {
	as "$AK" "$@"
}

only_root() {
	[ "${AS:-root}" = root ] || skip "needs a root caller"
}

# needs_kernel RELEASE FEATURE: skips on an older kernel
needs_kernel() {
	[ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1)" = "$1" ] || skip "needs $2 (Linux $1)"
}

# Can the caller give files to other users?
has_many_ids() {
	[ "${AS:-root}" = root ] || [ "${AS:-root}" = subuser ]
}

# ---- servers ----

# wait_for_line FILE PATTERN
wait_for_line() {
	for _ in $(seq 200); do
		grep -q -- "$2" "$1" 2>/dev/null && return 0
		sleep 0.05
	done
	echo "never saw '$2' in:"
	cat "$1"
	return 1
}

# Starts a real registry on loopback; REGISTRY is its address. Its log includes its requests.
start_registry() {
	export REGISTRY
	mkdir "$SHARED/registry"
	cat >"$SHARED/registry.yml" <<-YML
	version: 0.1
	log: {level: info, accesslog: {disabled: false}}
	storage: {filesystem: {rootdirectory: $SHARED/registry}}
	http: {addr: "127.0.0.1:0"}
	YML
	docker-registry serve "$SHARED/registry.yml" >"$SHARED/registry.log" 2>&1 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line "$SHARED/registry.log" 'msg="listening on ' || return 1
	REGISTRY=$(sed -n 's/.*msg="listening on \([0-9.:]*\)".*/\1/p' "$SHARED/registry.log" | head -n 1)
}

# Starts faulty.py in front of the registry: FAULTY, and OTHER, its redirect target. fault() sets
# its faults.
start_faulty() {
	export FAULTY OTHER
	: >"$SHARED/faults"
	python3 "$TOP/tests/image/faulty.py" --upstream "$REGISTRY" --log "$SHARED/faulty.log" \
		--control "$SHARED/faults" >"$SHARED/faulty.ports" 2>"$SHARED/faulty.err" 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line "$SHARED/faulty.ports" ' ' || { cat "$SHARED/faulty.err"; return 1; }
	read -r FAULTY OTHER <"$SHARED/faulty.ports"
	FAULTY=127.0.0.1:$FAULTY OTHER=127.0.0.1:$OTHER
}

# Sets the faults from now on, and clears the log.
fault() {
	echo "$*" >"$SHARED/faults.new"
	mv "$SHARED/faults.new" "$SHARED/faults"
	: >"$SHARED/faulty.log"
}

# Counts the matching requests in faulty.py's log.
requests() {
	grep -c -- "$1" "$SHARED/faulty.log" || true
}

# push NAME TARGET [WORD...]: copies an image of the layout into the registry with skopeo
push() {
	local name=$1 target=$2
	shift 2
	skopeo --insecure-policy copy -q --dest-tls-verify=false "$@" "oci:$SHARED/layout:$name" \
		"docker://$REGISTRY/$target"
}

# ---- images ----

# image NAME [--config JSON] LAYER...: adds an image to the layout
image() {
	python3 "$TOP/tests/image/oci.py" image "$SHARED/layout" "$@"
}

# pack DIR TAR: like layers of images
pack() {
	tar -C "$1" --numeric-owner --sort=name --format=posix -cf "$2" .
}

# A busybox root as $SHARED/base.tar.
make_base() {
	make_rootfs "$SHARED/base" && pack "$SHARED/base" "$SHARED/base.tar" && rm -rf "$SHARED/base"
}

# ---- leftovers ----

# The store's content, without what differs between two equal stores: the lock, the marks of
# unsynced images, notes about unreachable images.
store_list() {
	(cd "${1:-${STATE:-$W/state}}/images" 2>/dev/null && find . -mindepth 1 -maxdepth 4 -not -name lock \
		-not -name '*.unsynced' -not -path './unreachable*' | LC_ALL=C sort)
}

# The same without blobs, which a failed pull may leave for the next one.
store_images() {
	store_list "$@" | grep -v '^./blobs/'
}

# No image, no layer, nothing incomplete.
store_is_empty() {
	local found
	found=$(cd "${STATE:-$W/state}/images" 2>/dev/null && find names records layers -mindepth 1 -not -name '*.unsynced' |
		grep -v '^layers/[a-z0-9-]*\(/making\)\?$') || true
	[ -z "$found" ] || { echo "left: $found"; return 1; }
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

# json FIELD: of the object in $output
json() {
	python3 -c 'import json,sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$output" "$1"
}
