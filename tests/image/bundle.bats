#!/usr/bin/env bats
# Images in files: from and to podman and skopeo, file by file; trees and tars; and what is kept
# while it is in use.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	setup_shared && make_base && cd "$SHARED" && make_special && make_images
}

# A busybox and one of every kind of file that an archive can contain.
make_special() {
	make_rootfs special
	mkdir -p special/sp/{empty,sticky,deep/er}
	chmod 1777 special/sp/sticky
	chmod 2750 special/sp/deep
	echo content >special/sp/file
	ln special/sp/file special/sp/second
	ln special/sp/file special/sp/deep/third
	ln -s /absolute/nowhere special/sp/absolute
	ln -s ../sp/file special/sp/relative
	mkfifo -m 640 special/sp/fifo
	cp special/bin/busybox special/sp/setuid
	chmod 6711 special/sp/setuid
	echo long >"special/sp/$(printf 'n%.0s' $(seq 250))"
	printf 'x' >"special/sp/"$'odd \n\xc3\xa4 name'
	truncate -s 1000000 special/sp/sparse
	: >special/sp/nothing
	chmod 000 special/sp/nothing
	python3 -c 'import os; os.setxattr("special/sp/file", "user.note", b"kept\0binary")'
	if [ "$(id -u)" -eq 0 ]; then
		chown 1234:55 special/sp/deep special/sp/fifo
		chown -h 33:44 special/sp/relative
		# cap_net_raw=ep
		python3 -c 'import os; os.setxattr("special/sp/setuid", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))'
	fi
	find special/sp -exec touch -h -d '2019-04-05 06:07:08.123456789' {} +
	tar -C special --numeric-owner --sort=name --format=posix --xattrs --xattrs-include='user.*' \
		--xattrs-include='security.capability' --pax-option=delete=atime,delete=ctime -cf special.tar .
}

# Imported once into podman's own store.
make_images() {
	podman_do import -q --change 'CMD ["cat","/sp/file"]' --change 'ENV A=b' special.tar registry.example.org/special:1 >/dev/null &&
		podman_do save -q --format docker-archive -o docker.tar registry.example.org/special:1 &&
		podman_do save -q --format oci-archive -o oci.tar registry.example.org/special:1 &&
		chmod 644 docker.tar oci.tar
}

podman_do() {
	podman --root "$SHARED/podman" --runroot "$SHARED/podman-run" --storage-driver vfs --runtime runc "$@"
}

teardown_file() {
	podman_do image unmount --all >/dev/null 2>&1 || true
	remove_shared
}

# The directory of an image's only layer.
layer_of() {
	local id
	id=$(tr '\0' '\n' <"$(readlink -f "${STATE:-$W/state}/images/names/$1")" | sed -n 's/^layer=//p')
	echo "${STATE:-$W/state}"/images/layers/*/"$id"
}

# same_trees DIR DIR [WORD]: nothing differs
same_trees() {
	python3 "$TOP/tests/image/tree.py" "$1" ${3:-} >"$W/tree.1"
	python3 "$TOP/tests/image/tree.py" "$2" ${3:-} >"$W/tree.2"
	[ "$(wc -l <"$W/tree.1")" -gt 100 ] && diff "$W/tree.1" "$W/tree.2"
}

# With the owners if this caller's files can have them.
compare() {
	if [ "${AS:-root}" = root ]; then
		same_trees "$1" "$2"
	else
		same_trees "$1" "$2" --owners=no
	fi
}

# bats test_tags=once
@test "tree.py sees each kind of difference" {
	only_root # to create them
	for change in 'chmod 700 sp/sticky' 'chown 5 sp/fifo' 'touch -h -d "2019-04-05 06:07:08.123456788" sp/absolute' \
		'echo contenT >sp/file; touch -d "2019-04-05 06:07:08.123456789" sp/file' 'ln -sf x sp/relative' \
		'cp -a --remove-destination sp/file sp/copy; mv sp/copy sp/second' 'rm sp/nothing' \
		'python3 -c "import os; os.removexattr(\"sp/file\", \"user.note\")"'; do
		rm -rf "$W/copy"
		cp -a --preserve=all "$SHARED/special" "$W/copy"
		same_trees "$SHARED/special" "$W/copy"
		(cd "$W/copy" && eval "$change")
		run same_trees "$SHARED/special" "$W/copy"
		[ "$status" -ne 0 ] || { echo "not seen: $change"; false; }
	done
}

# ---- from others ----

@test "what podman saves is loaded, as docker-archive and as oci-archive, file for file" {
	for kind in docker oci; do
		STATE=$W/$kind run -0 ak image load -q "$SHARED/$kind.tar"
		says registry.example.org/special:1
		export STATE=$W/$kind
		compare "$SHARED/special" "$(layer_of registry.example.org+special:1)"
		run -0 ak run --pull never --image registry.example.org/special:1
		says content
		run -0 ak run --pull never --image registry.example.org/special:1 sh -c 'echo $A; ls -A /sp | wc -l'
		says "b
$(find "$SHARED/special/sp" -mindepth 1 -maxdepth 1 -printf x | wc -c)"
		[ -z "$(find "$STATE"/images/layers/*/making -mindepth 1)" ]
	done
}

@test "an archive may come compressed, and through a pipe" {
	gzip -1c "$SHARED/docker.tar" | as "$AK" image load -q >"$W/out"
	[ "$(cat "$W/out")" = registry.example.org/special:1 ]
	STATE=$W/zstd
	zstd -1qc "$SHARED/oci.tar" | as "$AK" image load -q - >"$W/out"
	[ "$(cat "$W/out")" = registry.example.org/special:1 ]
}

@test "inside, the files have the owners that the image says" {
	ak image load -q "$SHARED/docker.tar" >/dev/null
	owners="1234:55 33:44"
	has_many_ids || owners="0:0 0:0"
	run -0 ak run --pull never --image registry.example.org/special:1 -u 0 \
		sh -c 'echo $(stat -c %u:%g /sp/deep /sp/relative)'
	says "$owners"
}

# bats test_tags=once
@test "what podman has and what we have loaded is the same, file for file" {
	only_root # podman's owners are those of the image
	ak image load -q "$SHARED/oci.tar" >/dev/null
	place=$(podman_do image mount registry.example.org/special:1)
	compare "$place" "$(layer_of registry.example.org+special:1)"
	podman_do image unmount registry.example.org/special:1 >/dev/null
}

# ---- to others ----

# bats test_tags=once
@test "what we save is loaded by podman, file for file, and read by skopeo" {
	ak image import -q special:2 "$SHARED/special.tar" >/dev/null
	as "$AK" image save special:2 "$W/saved.tar"
	skopeo inspect "oci-archive:$W/saved.tar" | grep -q '"Architecture"'
	skopeo inspect "docker-archive:$W/saved.tar" | grep -q '"Architecture"'
	podman_do load -q -i "$W/saved.tar"
	place=$(podman_do image mount docker.io/library/special:2)
	same_trees "$SHARED/special" "$place"
	podman_do image unmount docker.io/library/special:2 >/dev/null
	podman_do rmi docker.io/library/special:2 >/dev/null
}

# bats test_tags=once
@test "an image goes through a pipe to podman" {
	ak image load -q "$SHARED/docker.tar" >/dev/null
	ak image save registry.example.org/special:1 - | podman_do load -q >"$W/out"
	grep -q 'registry.example.org/special:1' "$W/out"
}

# bats test_tags=once
@test "saving and loading keeps the digest, by archive and by directory" {
	ak image load -q "$SHARED/oci.tar" >/dev/null
	run -0 ak image inspect registry.example.org/special:1
	digest=$(grep -o 'sha256:[0-9a-f]\{64\}' <<<"$output" | head -n 1)
	as "$AK" image save registry.example.org/special:1 "$W/saved.tar"
	as "$AK" image save registry.example.org/special:1 "$W/layout/"
	for from in saved.tar layout; do
		STATE=$W/again-$from run -0 ak image load -q --name again:1 "$W/$from"
		STATE=$W/again-$from run -0 ak image inspect again:1
		[[ "$output" == *"$digest"* ]] || { echo "$from: $output"; false; }
	done
}

# bats test_tags=once
@test "an OCI layout in a directory goes to skopeo and comes back from it" {
	ak image load -q "$SHARED/docker.tar" >/dev/null
	as "$AK" image save registry.example.org/special:1 "$W/layout/"
	skopeo --insecure-policy copy -q "oci:$W/layout" "oci:$W/copied:mine"
	chmod -R a+rX "$W/copied"
	STATE=$W/copy run -0 ak image load -q --name mine:1 "$W/copied"
	says docker.io/library/mine:1
	STATE=$W/copy run -0 ak run --pull never --image mine:1
	says content
}

# bats test_tags=once
@test "several images in one archive share their blobs and keep their names" {
	ak image import -q one:1 "$SHARED/base.tar" >/dev/null
	ak image load -q "$SHARED/docker.tar" >/dev/null
	as "$AK" image save one:1 registry.example.org/special:1 "$W/both.tar"
	STATE=$W/both run -0 ak image load --json "$W/both.tar"
	says '["docker.io/library/one:1","registry.example.org/special:1"]'
	STATE=$W/both run ak image load --name x:1 "$W/both.tar"
	fails_with 125 "there are 2 images, --name is for one"
}

# ---- trees and tars ----

@test "a directory becomes an image, file for file" {
	cp -a "$SHARED/special" "$W/special"
	[ "${AS:-root}" = root ] || give -Rh "$W/special"
	rm -rf "$W"/special/{proc,sys,dev,run}
	[ "${AS:-root}" = root ] || find "$W/special/sp" -exec touch -h -d '2019-04-05 06:07:08.123456789' {} +
	ak image import -q tree:1 "$W/special" >/dev/null
	compare "$W/special" "$(layer_of docker.io+library+tree:1)"
	run -0 ak run --pull never --image tree:1 cat /sp/relative
	says content
}

@test "a tar becomes an image: plain, gzip, zstd, through a pipe" {
	gzip -1c "$SHARED/base.tar" >"$W/base.tar.gz"
	zstd -1qc "$SHARED/base.tar" >"$W/base.tar.zst"
	ak image import -q plain:1 "$SHARED/base.tar" >/dev/null
	ak image import -q gzip:1 "$W/base.tar.gz" >/dev/null
	ak image import -q zstd:1 "$W/base.tar.zst" >/dev/null
	as "$AK" image import -q pipe:1 - <"$W/base.tar.gz" >/dev/null
	cat "$SHARED/base.tar" | as "$AK" image import -q pipe:2 - >/dev/null
	for name in plain:1 gzip:1 zstd:1 pipe:1 pipe:2; do
		run -0 ak run --pull never --image "$name" echo "$name"
		says "$name"
	done
}

# bats test_tags=once
@test "what is no image is refused with what it lacks, and nothing comes of it" {
	run ak image load "$SHARED/base.tar"
	fails_with 125 "holds no image: neither manifest.json nor index.json is in it"
	echo text >"$W/text"
	run ak image load "$W/text"
	fails_with 125 "'$W/text'"
	run ak image import x:1 "$W/text"
	fails_with 125 "Unrecognized archive format"
	run ak image load "$W/nosuch"
	fails_with 125 "open '$W/nosuch': No such file or directory"
	mkdir "$W/empty"
	run ak image load "$W/empty"
	fails_with 125 "holds no image"
	head -c 100000 "$SHARED/docker.tar" >"$W/half.tar"
	run ak image load "$W/half.tar"
	[ "$status" -eq 125 ]
	run ak image save nosuch:1 "$W/out.tar"
	fails_with 125 "no image 'nosuch:1' in the store"
	[ ! -e "$W/out.tar" ]
	store_is_empty
	run -0 ak image list
	[ "${#lines[@]}" -le 1 ]
}

# ---- what is kept, and what is removed ----

# start_user IMAGE: a sandbox that runs until stop_user
start_user() {
	mkfifo "$W/stop"
	give "$W/stop"
	as sh -c "exec '$AK' run --pull never --image $1 sh -c 'echo up; read line; cat /sp/file; echo over' <'$W/stop'" >"$W/user.out" 3>&- &
	USER_PID=$!
	exec 5>"$W/stop"
	wait_for_line "$W/user.out" up
}

stop_user() {
	echo stop >&5
	exec 5>&-
	wait "$USER_PID"
}

teardown() {
	exec 5>&- || true
}

@test "a sandbox goes on when its image is removed, and its layers go with the next prune after its end" {
	ak image load -q "$SHARED/docker.tar" >/dev/null
	layer=$(layer_of registry.example.org+special:1)
	start_user registry.example.org/special:1
	run -0 ak image remove registry.example.org/special:1
	[[ "$output" == *"1 image is in use and stays"* ]]
	run -0 ak image list
	[[ "$output" != *special* ]]
	run -0 ak image prune --json
	[ "$(json in_use)" -eq 1 ] && [ "$(json layers)" -eq 0 ]
	ak image prune -q --all
	[ -d "$layer" ]
	stop_user
	[ "$(cat "$W/user.out")" = $'up\ncontent\nover' ]
	run -0 ak image prune --json
	[ "$(json in_use)" -eq 0 ] && [ "$(json images)" -eq 1 ] && [ "$(json layers)" -eq 1 ]
	[ ! -e "$layer" ]
	store_is_empty
	[ -z "$(find "$W/state/images/blobs" -type f)" ]
}

@test "an image that another takes the name of stays while it runs" {
	ak image load -q --name moving:1 "$SHARED/docker.tar" >/dev/null
	layer=$(layer_of docker.io+library+moving:1)
	start_user moving:1
	ak image import -q moving:1 "$SHARED/base.tar" >/dev/null
	ak image prune -q
	[ -d "$layer" ]
	stop_user
	[ "$(cat "$W/user.out")" = $'up\ncontent\nover' ]
	ak image prune -q
	[ ! -e "$layer" ]
	ak run --pull never --image moving:1 true
}

# bats test_tags=once
@test "prune takes what has no name, --all what nobody uses, --dry-run nothing" {
	ak image import -q kept:1 "$SHARED/base.tar" >/dev/null
	ak image load -q "$SHARED/docker.tar" >/dev/null
	ak image import -q registry.example.org/special:1 "$SHARED/base.tar" >/dev/null # the name moves to another image
	before=$(store_list)
	run -0 ak image prune --dry-run
	[[ "$output" == "would be removed: 1 image, 1 layer, "* ]]
	[ "$(store_list)" = "$before" ]
	run -0 ak image prune
	[[ "$output" == "removed: 1 image, 1 layer, "* ]]
	ak run --pull never --image kept:1 true
	run -0 ak image prune
	says "removed: 0 images, 0 layers, 0 bytes of blobs"
	run -0 ak image prune --all
	store_is_empty
	run -0 ak image list
	[[ "$output" != *kept* ]]
}

# bats test_tags=once
@test "remove takes all names or none, and another name keeps the image" {
	ak image load -q --name a:1 "$SHARED/docker.tar" >/dev/null
	ak image load -q --name b:1 "$SHARED/docker.tar" >/dev/null
	run ak image remove a:1 nosuch:1
	fails_with 125 "no image 'nosuch:1' in the store"
	ak run --pull never --image a:1
	ak image remove -q a:1
	run -0 ak run --pull never --image b:1
	says content
	run ak run --pull never --image a:1
	fails_with 125 "not in the store"
}
