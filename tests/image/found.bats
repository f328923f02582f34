#!/usr/bin/env bats
# Fixed findings of attacks on images: names with a wrong digest, stores of other users, links of an
# image in the place of a mount, limits with many users inside.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	setup_shared && make_base
}

# tree COMMANDS: imports a root directory, changed by COMMANDS, as the image "odd"
tree() {
	rm -rf "$W/tree"
	mkdir "$W/tree"
	tar -C "$W/tree" -xf "$SHARED/base.tar"
	(cd "$W/tree" && eval "$1")
	[ "${AS:-root}" = root ] || chown -R "$CALLER_ID:$CALLER_ID" "$W/tree"
	ak image import -q odd "$W/tree" >/dev/null
}

@test "a name with a digest is only for the image that has it" {
	local lie="docker.io/library/python@sha256:$(printf 'a%.0s' {1..64})" digest
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	ak image save mine:1 "$W/saved.tar"
	run ak image load --name "$lie" "$W/saved.tar"
	fails_with 125 "names another digest"
	run ak image import "$lie" "$SHARED/base.tar"
	fails_with 125 "names another digest"
	mkdir "$W/parts"
	tar -C "$W/parts" -xf "$W/saved.tar"
	rm "$W/parts/index.json" "$W/parts/oci-layout"
	sed -i "s|docker.io/library/mine:1|$lie|" "$W/parts/manifest.json"
	run ak image load "$W/parts"
	fails_with 125 "names another digest"
	run ak run --pull never -i "$lie" true
	fails_with 125 "not in the store"
	run -0 ak image list --json # and the right one is accepted
	digest=$(grep -o '"digest":"sha256:[0-9a-f]*"' <<<"$output" | head -1 | cut -d'"' -f4)
	ak image load -q --name "mine@$digest" "$W/saved.tar"
	run ak run --pull never -i "mine@$digest" echo right
	says right
}

@test "a store that another user could change is refused" {
	only_root
	mkdir -p "$W/state/images/layers/raw/making"
	chown -R 12346 "$W/state"
	run ak image import mine:1 "$SHARED/base.tar"
	fails_with 125 "belongs to another user"
	chown -R 0 "$W/state"
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	run ak run -i mine:1 echo fine
	says fine
	[ "$(stat -c %a "$W/state/images/layers/raw" "$W/state/images")" = $'700\n700' ] # closed, whatever its mode was
	chmod 777 "$W/state/images/names"
	run ak run -i mine:1 echo fine
	fails_with 125 "is not a directory of this user alone"
}

@test "an image's link does not lead a mount onto /proc or /dev" {
	tree 'ln -s /proc data; ln -s dev/shm data2; mkdir real'
	mkdir "$W/shown"
	give "$W/shown"
	run ak run -i odd -v "$W/shown:/data" true
	fails_with 125 "'/data' leads to /proc in this image"
	run ak run -i odd --tmpfs /data2 true
	fails_with 125 "'/data2' leads to /dev in this image"
	run ak run -i odd -v "$W/shown:/real" ls /real
	says ""
}

@test "an image's link makes no file in a directory of the host" {
	tree "mkdir -p '.$W'; ln -s '$W/project/.git/hooks' zhooks"
	mkdir -p "$W/project/.git/hooks"
	echo x >"$W/hook"
	give "$W/project" "$W/hook" "$W/project/.git" "$W/project/.git/hooks"
	run ak run -i odd --workspace="$W/project" -v "$W/hook:/zhooks/post-checkout" true
	fails_with 125 "leads into another directory that is shown"
	[ -z "$(ls "$W/project/.git/hooks")" ]
}

@test "saving what is not there leaves the file as it was" {
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	echo precious >"$W/file"
	run ak image save nosuch:1 "$W/file"
	fails_with 125 "no image 'nosuch:1' in the store"
	[ "$(cat "$W/file")" = precious ]
	give "$W/file"
	ak image save mine:1 "$W/file" # and it replaces an existing file
	tar -tf "$W/file" | grep -q index.json
	[ -z "$(ls "$W" | grep part)" ]
	ak image save mine:1 /dev/null
	[ -c /dev/null ]
}

@test "a name that meant another image is worth a line" {
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	tree 'echo other >other'
	run ak image import mine:1 "$W/tree"
	[[ "$output" == *"agentkernel: mine:1 was another image before (sha256:"* ]]
}

@test "a layer whose root belongs to another user is unpacked, run and removed" {
	has_many_ids || skip "one id: all belongs to it"
	mkdir "$W/tree"
	tar -C "$W/tree" -xf "$SHARED/base.tar"
	chown 1234:1234 "$W/tree"
	chmod 700 "$W/tree"
	tar -C "$W/tree" -cf "$W/root.tar" .
	run -0 ak image import -q owned:1 "$W/root.tar"
	run ak run -i owned:1 stat -c '%u %a' /
	says "1234 700"
	ak image remove -q owned:1
	store_is_empty
}

@test "users inside share one limit of processes" {
	has_many_ids || skip "one id: the kernel counts it"
	tree ''
	run ak run -i odd --pids 40 --timeout 20s sh -c '
		for user in 1 2 3 4 5 6 7 8; do
			setuidgid $user sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; wait" 2>/dev/null &
		done
		sleep 1
		ls -d /proc/[0-9]* | wc -l'
	# a cgroup refuses more processes; without one, the sandbox is ended
	[[ "$output" == *"more processes than its limit of 40"* ]] || [ "$output" -le 41 ]
}

@test "what lies in a tmpfs counts as memory wherever it is moved" {
	[ "${AS:-root}" != root ] || skip "root's sandboxes have cgroups, which see it"
	needs_kernel 6.6 "a tmpfs with user attributes, to move a directory of an image"
	tree ''
	run ak run -i odd --memory 64M --disk 16M --tmpfs /a/b:256M --timeout 20s sh -c '
		mv /a /c; ln -s /tmp/none /a; dd if=/dev/zero of=/c/b/f bs=1M count=150 2>/dev/null; sleep 1; echo survived'
	[ "$status" -eq 137 ]
	[[ "$output" == *"ran out of memory"* ]]
}

@test "after a crash of the machine an image is checked and unpacked again, but not what others use" {
	local record layer
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	record=$(ls "$W/state/images/records" | grep -v unsynced)
	for _ in $(seq 100); do [ -e "$W/state/images/records/$record.unsynced" ] || break; sleep 0.1; done
	layer=$(ls -d "$W"/state/images/layers/*/* | grep -v making)
	rm -rf "$layer/bin"
	as sh -c "echo another-boot >'$W/state/images/records/$record.unsynced'"
	run ak run -i mine:1 echo whole
	[[ "$output" == *"unpacking mine:1 again from the store"*whole ]]
	# another image with the same layer, perhaps in use, keeps it
	as cp "$W/state/images/records/$record" "$W/state/images/records/aaaaaaaaaaaaaaaaaaaaaaaaaa"
	as touch "$layer/kept"
	as sh -c "echo another-boot >'$W/state/images/records/$record.unsynced'"
	run ak run -i mine:1 ls /kept
	[[ "$output" == *"/kept" ]]
}

@test "an OCI layout on another file system is loaded" {
	local there
	there=$(mktemp -d /dev/shm/agentkernel-test.XXXXXX)
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	[ "${AS:-root}" = root ] || chown "$CALLER_ID" "$there"
	ak image save mine:1 "$there/"
	STATE=$W/second run ak image load -q "$there"
	rm -rf "$there"
	says "docker.io/library/mine:1"
}

@test "a layout that has only a tag asks for a name" {
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	mkdir "$W/layout"
	give "$W/layout"
	ak image save mine:1 "$W/layout"
	sed -i 's|"annotations":{[^}]*}|"annotations":{"org.opencontainers.image.ref.name":"3.20"}|' "$W/layout/index.json"
	run ak image load "$W/layout"
	fails_with 125 "there it is called only '3.20' (give it a name with --name)"
	run ak image load -q --name mine:3.20 "$W/layout"
	says "docker.io/library/mine:3.20"
}

@test "a damaged record is made anew, or pruned" {
	local record
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	ak image save mine:1 "$W/saved.tar"
	record=$W/state/images/records/$(ls "$W/state/images/records" | grep -v unsynced | head -1)
	as sh -c ": >'$record'"
	run ak run --pull never -i mine:1 true
	[ "$status" -eq 125 ]
	ak image load -q "$W/saved.tar" >/dev/null
	run ak run --pull never -i mine:1 echo whole
	says whole
	as sh -c ": >'$record'"
	run -0 ak image prune
	[[ "$output" == "removed: 1 image, 1 layer, "* ]]
	store_is_empty
}

@test "prune --dry-run changes nothing at all" {
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	as touch "$W/state/images/names/.new.1" "$W/state/images/records/.x.1" "$W/state/images/blobs/partial/abc"
	before=$(find "$W/state" | sort)
	run -0 ak image prune --all --dry-run
	[[ "$output" == "would be removed: 1 image, 1 layer, "* ]]
	[ "$(find "$W/state" -not -name '*.unsynced' | sort)" = "$(grep -v unsynced <<<"$before")" ]
}

@test "an image's links do not lead home or workspace past their masks" {
	local name
	name=$(basename "$SHARED")
	mkdir -p "$SHARED/home/.ssh"
	echo SECRET >"$SHARED/home/.ssh/id_rsa"
	mkdir -p "$W/.git/hooks"
	give "$SHARED/home" "$SHARED/home/.ssh" "$SHARED/home/.ssh/id_rsa" "$W/.git" "$W/.git/hooks"
	# before the home is mounted /tmp is /r2; afterwards .ssh is a directory and /tmp is /
	tree "rmdir tmp; mkdir -p r2/a/b/c/d r2/$name/home D; ln -s /r2/a/b/c/d r2/$name/home/.ssh
		ln -s /r2/$name/home/.ssh/../../../.. tmp"
	run ak run -p permissive --no-network -i odd sh -c "cat /r2/$name/home/.ssh/id_rsa"
	fails_with 125 "the image's links lead '$SHARED/home' elsewhere"
	# the same for protected names of a workspace
	tree "rmdir tmp; mkdir -p r2/a/b/c/d/e 'r2/$name/work/$(basename "$W")'
		ln -s /r2/a/b/c/d/e 'r2/$name/work/$(basename "$W")/.git'
		ln -s '/r2/$name/work/$(basename "$W")/.git/../../../../..' tmp"
	run ak run --no-network -i odd --workspace --workdir / \
		sh -c "touch '/r2/$name/work/$(basename "$W")/.git/hooks/pre-commit'"
	# (the state directory is in this workspace, and is resolved first, to hide it)
	fails_with 125 "'$W"
	[ -z "$(ls "$W/.git/hooks")" ]
	tree 'true' # and without such links everything works
	run ak run -p permissive --no-network -i odd sh -c "cat '$SHARED/home/.ssh/id_rsa'; touch .git/hooks/pre-commit; touch fine && echo fine"
	[[ "$output" != *SECRET* && "$output" == *"Read-only file system"* && "$output" == *fine ]]
}

@test "what is saved goes to no place that another prepared" {
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	mkdir -p "$W/public/layout" "$W/precious"
	give "$W/public" "$W/public/layout" "$W/precious"
	ln -s "$W/precious" "$W/public/layout/blobs"
	run ak image save mine:1 "$W/public/layout"
	[ "$status" -eq 125 ]
	[ -z "$(ls "$W/precious")" ]
}

@test "two loads with the same process id do not disturb each other" {
	only_root
	local i pids
	ak image import -q mine:1 "$SHARED/base.tar" >/dev/null
	ak image save mine:1 "$W/saved.tar"
	for i in 1 2 3 4; do
		pids=()
		for name in one two; do
			as unshare -pf --mount-proc "$AK" image load -q --name "$name:$i" "$W/saved.tar" >"$W/$name.$i" 2>&1 3>&- &
			pids+=($!)
		done
		wait "${pids[@]}"
		cat "$W/one.$i" "$W/two.$i"
		grep -q "/one:$i" "$W/one.$i"
		grep -q "/two:$i" "$W/two.$i"
	done
}

@test "a mount does not land on a device through a link" {
	tree 'ln -s /dev/null null; ln -s /dev/pts pts; ln -s / top'
	echo d >"$W/file"
	mkdir "$W/dir"
	give "$W/file" "$W/dir"
	run ak run -i odd --mount "$W/file:/null" true
	fails_with 125 "'/null' leads to /dev in this image"
	run ak run -i odd --mount "$W/dir:/pts" true
	fails_with 125 "'/pts' leads to /dev in this image"
	run ak run -i odd --tmpfs /top true
	fails_with 125 "'/top' leads to the root in this image"
}
