#!/usr/bin/env bats
# Layers, manifests and configs that try more than they may: refused with the entry and the rule,
# nothing outside changed, nothing left in the store. And similar valid ones, which must work.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	export CANARY HOSTILE
	setup_shared || return 1
	CANARY=$SHARED/canary HOSTILE=$SHARED/hostile
	mkdir -m 777 "$CANARY" # writable for everyone, so that only unpacking stops an attack
	echo canary >"$CANARY/file"
	chmod 666 "$CANARY/file"
	python3 "$TOP/tests/image/hostile.py" make "$HOSTILE" "$CANARY" && make_base
	start_server
}

# Serves the cases as a registry would.
start_server() {
	export SERVER
	python3 "$TOP/tests/image/hostile.py" serve "$HOSTILE" >"$SHARED/server.port" 2>&1 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line "$SHARED/server.port" : && SERVER=$(cat "$SHARED/server.port")
}

setup() {
	make_place
	canary=$(show_canary)
}

show_canary() {
	find "$CANARY" -printf '%p %y %m %n %i %T@ %U %l\n' | sort
	cat "$CANARY/file"
}

# refused CASE TEXT: when it is loaded, and with PULLED=yes also when it is pulled
refused() {
	local before
	# a store in use, with an image that must stay
	[ -e "$W/state" ] || ak image load -q --name kept "$HOSTILE/good-dot-slash" >/dev/null
	before=$(store_images)
	run ak image load "$HOSTILE/$1"
	fails_with 125 "$2" || { echo "case $1"; return 1; }
	unchanged "$before" || { echo "case $1"; return 1; }
	[ -n "${PULLED:-}" ] || return 0
	ak image prune -q
	run ak image pull --quiet "$SERVER/$1:1"
	fails_with 125 "$2" || { echo "case $1, pulled"; return 1; }
	unchanged "$before" || { echo "case $1, pulled"; return 1; }
}

# unchanged LISTING: the canary, and the store without any new image, layer or partial layer
unchanged() {
	local now
	now=$(show_canary)
	[ "$now" = "$canary" ] || { diff <(echo "$canary") <(echo "$now"); return 1; }
	now=$(store_images)
	[ "$now" = "$1" ] || { diff <(echo "$1") <(echo "$now"); return 1; }
}

# takes CASE: it is loaded; its only or highest layer is $LAYER
takes() {
	STATE=$W/$1
	ak image load -q "$HOSTILE/$1" >/dev/null || return 1
	LAYER=$(tr '\0' '\n' <"$(readlink -f "$STATE/images/names/docker.io+library+x:1")" | sed -n 's/^layer=//p' | head -n 1)
	LAYER=$(echo "$STATE"/images/layers/*/"$LAYER")
	[ -d "$LAYER" ]
}

# Control for the canary: this caller can do what hostile layers try.
@test "the canary can be written to by this caller" {
	as sh -c "echo changed >'$CANARY/file'"
	[ "$(show_canary)" != "$canary" ]
	echo canary >"$CANARY/file"
}

# ---- names ----

@test "a name that climbs is refused, at its start and inside" {
	PULLED=yes refused name-climbs "/canary/file': the name climbs with '..'"
	refused name-climbs-inside "'etc/../../"
	refused whiteout-climbs "/.wh.file': the name climbs with '..'"
}

@test "an absolute name is relative to the root of the layer, and cannot climb" {
	PULLED=yes refused name-absolute-climbs "/canary/file': the name climbs with '..'"
	takes inside-absolute
	[ "$(cat "$LAYER$CANARY/file")" = mine ]
	[ "$(show_canary)" = "$canary" ]
}

# bats test_tags=once
@test "a name cannot bring escape sequences or lines to the terminal" {
	refused name-with-escapes "'../?[31mred?line': the name climbs with '..'"
}

# bats test_tags=once
@test "names beyond the maxima are refused" {
	refused name-long "nnn...': a part of the name is longer than 255 bytes"
	refused name-deep "/d/...': it lies beneath more than 512 directories"
	refused name-longest "...': the name is longer than 4095 bytes"
}

@test "a leading ./ and an entry for the root are fine" {
	takes good-dot-slash
	[ "$(cat "$LAYER/etc/plain")" = plain ]
}

# ---- links ----

# Files, directories, links, hard links and whiteouts. The first test is the control: this caller
# could write there.
@test "a name that leads through links lands in the layer, wherever the links point" {
	for case in inside-link inside-dots inside-links inside-swapped; do
		takes "$case"
		[ "$(show_canary)" = "$canary" ] || { echo "case $case"; false; }
		inside=$LAYER$CANARY
		[ "$(cat "$inside/file")" = mine ] && [ "$(readlink "$inside/link")" = / ] || { echo "case $case"; false; }
		[ "$(stat -c %a "$inside/new")" = 700 ] && [ -c "$inside/gone" ]
		[ "$LAYER/hard" -ef "$inside/file" ] && [ "$LAYER/hard" -ef "$inside/hard" ]
	done
	[ -e "$LAYER/etc/b" ] && [ ! -e "$LAYER/etc/a" ] # the last case: the link's target at the time of the entry
}

@test "links that lead nowhere are refused" {
	PULLED=yes refused links-in-a-circle "'a/file': the name leads through more than 40 symbolic links"
	refused links-too-many "'l0/file': the name leads through more than 40 symbolic links"
	refused link-to-whiteout "'out/file': the name leads through a symbolic link to a whiteout"
	refused link-to-file "'out/file': the name leads through what is not a directory"
	refused link-too-deep "'b/file': it lies beneath more than 512 directories"
	refused link-too-long "'a/a/file': the name is longer than 4095 bytes"
}

@test "a hard link leads to a file of its own layer or is refused" {
	PULLED=yes refused hard-link-climbs "canary/file': the name climbs with '..'"
	refused hard-link-absolute "'x': it is a hard link to '${CANARY#/}/file', which is not in this layer"
	refused hard-link-through-link "'x': it is a hard link to 'out/file', which is not in this layer"
	refused hard-link-to-directory "'x': it is a hard link to 'd', which cannot be linked"
	refused hard-link-to-nothing "'x': it is a hard link to 'nothing', which is not in this layer"
}

@test "a hard link to a file of a lower layer is refused" {
	run ak image load -q "$HOSTILE/hard-link-below"
	fails_with 125 "'x': it is a hard link to 'etc/plain', which is not in this layer"
	[ -z "$(ls -A "$W/state/images/names" "$W/state/images/records" | grep -v :)" ]
}

@test "links that lead anywhere are fine while nothing goes through them" {
	takes good-links
	[ "$(readlink "$LAYER/out")" = "$CANARY" ]
	[ "$(readlink "$LAYER/loop")" = loop ]
	takes good-link-replaced
	[ ! -L "$LAYER/out" ]
	[ "$(cat "$LAYER/out/file")" = mine ]
	takes good-hard-links
	[ "$LAYER/x" -ef "$LAYER/etc/plain" ] && [ "$LAYER/y" -ef "$LAYER/etc/plain" ]
	[ "$(show_canary)" = "$canary" ]
}

# ---- devices and rights ----

@test "a device outside of dev is refused, and a hidden whiteout anywhere" {
	PULLED=yes refused device-in-etc "'etc/null': it is a device outside of dev/"
	refused block-device "'disk': it is a device outside of dev/"
	refused device-0-0 "'dev/zero': it is the device 0:0"
}

@test "devices in dev are left out and the rest of it stays" {
	takes good-devices
	[ ! -e "$LAYER/dev/null" ] && [ -f "$LAYER/dev/file" ]
}

@test "a set-user-id bit is kept, behind a door that nobody else passes" {
	takes good-setuid
	# with one id as with many: the file keeps the image's mode
	[ "$(stat -c %a "$LAYER/su")" = 6755 ] && [ "$(stat -c %a "$LAYER/plain")" = 600 ]
	# users of this machine must not be able to execute a set-user-id file
	door=$(dirname "$LAYER")
	[ "$(stat -c %a "$door")" = 700 ]
	run ! setpriv --reuid 54321 --regid 54321 --clear-groups "$LAYER/su"
	[[ "$output" == *"Permission denied"* ]]
}

@test "a set-user-id program gives no rights inside" {
	mkdir -p "$W/tree"
	make_rootfs "$W/tree"
	cp "$W/tree/bin/busybox" "$W/tree/bin/busybox-su"
	chown 0:0 "$W/tree/bin/busybox-su"
	chmod 4755 "$W/tree/bin/busybox-su"
	tar -C "$W/tree" -cf "$W/tree.tar" .
	ak image import -q setuid "$W/tree.tar" >/dev/null
	run -0 ak run --image setuid ls -l /bin/busybox-su
	[[ "$output" == -rws* ]]
	for user in 0 app; do
		run -0 ak run --image setuid -u "$user" /bin/busybox-su id -u
		[ "$user" = 0 ] && says 0 || says 1234
	done
}

@test "an owner that no sandbox can have is refused, the highest one is fine" {
	refused owner-too-high "'x': its owner 70000:0 is not within 0..65534"
	takes good-owner
}

@test "attributes that overlay would obey are not taken from a layer" {
	takes good-overlay-attributes
	run getfattr_all "$LAYER/lower/dir"
	says "user.mine"
}

# getfattr_all FILE: the names of its attributes, without those of the system
getfattr_all() {
	python3 -c 'import os,sys; print("\n".join(n for n in os.listxattr(sys.argv[1]) if n != "security.selinux"))' "$1"
}

# ---- sizes ----

@test "a sparse file that is larger than a layer may be is refused before it is made" {
	PULLED=yes refused sparse-huge "'sparse': the layer's files are larger than 68719476736 bytes"
}

@test "a sparse file takes no room" {
	takes good-sparse
	[ "$(stat -c %s "$LAYER/sparse")" -eq $((1 << 30)) ]
	[ "$(stat -c %b "$LAYER/sparse")" -lt 100 ]
}

@test "a decompression bomb is refused after a moment" {
	for case in bomb bomb-gzip; do
		PULLED=yes refused "$case" "'zeros': the archive grows more than 100-fold when it is decompressed"
	done
}

@test "a layer of a few hundred megabytes of zeros is none" {
	takes good-zeros
	[ "$(stat -c %s "$LAYER/zeros")" -eq $((256 << 20)) ]
}

# bats test_tags=once
@test "more than four million entries are refused" {
	refused entries "the layer has more than 4194304 entries"
}

@test "sizes that are not true are refused" {
	refused size-huge "the archive is damaged: Tar entry size overflow"
	refused size-negative "the archive is damaged: Tar entry has negative size"
	PULLED=yes refused size-too-long "'big': the archive is damaged: Truncated tar archive"
	PULLED=yes refused cut-off "the gzip data is cut off"
	refused wrong-checksum "the gzip data has a wrong checksum"
	refused trailing "something follows the end of the archive"
	refused no-archive "the archive is damaged: Unrecognized archive format"
}

# ---- whiteouts ----

@test "a whiteout that hides no name is refused" {
	PULLED=yes refused whiteout-nothing "'.wh.': the whiteout hides no name"
	refused whiteout-dot "'etc/.wh..': the whiteout hides no name"
	refused whiteout-dots "'etc/.wh...': the whiteout hides no name"
	refused whiteout-beneath "'etc/.wh.x/file': it lies beneath a whiteout"
}

@test "whiteouts of what is there and what is not are fine" {
	takes good-whiteouts
	[ -c "$LAYER/gone" ] && [ -c "$LAYER/etc/nothing" ]
	[ ! -e "$LAYER/.wh..wh.plnk" ]
}

# ---- manifests ----

# bats test_tags=once
@test "a manifest that is no JSON, too deep or too long is refused" {
	PULLED=yes refused manifest-deep "maximum parsing depth reached"
	refused manifest-deep-inside "maximum parsing depth reached"
	refused manifest-not-json "unable to decode byte 0xff"
	refused manifest-list "not a JSON object"
	refused manifest-twice "duplicate object key near '\"layers\"'"
	refused manifest-long "File too large"
	run ak image pull "$SERVER/manifest-long:1"
	fails_with 125 "manifest"
}

# bats test_tags=once
@test "a manifest whose fields have other types or are missing is refused" {
	PULLED=yes refused manifest-no-layers ": 'layers' is missing"
	refused manifest-empty-layers ": the image has no layers"
	PULLED=yes refused manifest-layers-text ": 'layers' is not a list"
	refused manifest-layer-number ": 'layers' 0: not an object"
	refused manifest-no-config ": 'config' is missing"
	refused manifest-config-list ": 'config' is not an object"
	refused manifest-size-text ": 'layers' 0: 'size' is not a whole number"
	refused manifest-size-negative ": 'layers' 0: 'size' is not a whole number"
	refused manifest-size-huge ": 'layers' 0: 'size' is more than 68719476736"
	refused manifest-schema-1 "a manifest of schema 1, which is too old"
}

# bats test_tags=once
@test "a manifest of something else is refused" {
	refused manifest-artifact "it is an artifact, not an image: its config is 'application/vnd.cncf.helm.config.v1+json'"
	refused manifest-foreign "is a layer that registries may not distribute"
	refused manifest-encrypted "+encrypted' cannot be read"
	PULLED=yes refused manifest-index-too "it is an index and a manifest at once"
}

# bats test_tags=once
@test "a manifest whose layers are not there, are too many or have another size is refused" {
	refused manifest-layer-absent "layer 1: 'blobs/sha256/0000"
	run ak image pull --quiet "$SERVER/manifest-layer-absent:1"
	fails_with 125 "404"
	refused manifest-many-layers "'layers' has 128 entries, more than 127"
	PULLED=yes refused manifest-two-layers "the manifest has 2 layers, the config names 1"
	refused manifest-size-wrong "has 10240 bytes, and should have 1"
}

# bats test_tags=once
@test "a digest that is a path is refused" {
	PULLED=yes refused manifest-digest-climbs "'digest' is not of sha256: 'sha256:../../../../etc/passwd'"
	refused manifest-digest-other "'digest' is not of sha256: 'sha512:"
}

# ---- configs ----

# bats test_tags=once
@test "a config that is too deep or has other types is refused" {
	PULLED=yes refused config-deep "maximum parsing depth reached"
	refused config-deep-inside "maximum parsing depth reached"
	refused config-list "'config' is not an object"
	refused config-cmd-text "'config': 'Cmd' is not a list"
	refused config-entrypoint-object "'config': 'Entrypoint' is not a list"
	refused config-user-number "'config': 'User' is not text"
	refused config-no-rootfs "'rootfs' is missing"
}

# bats test_tags=once
@test "a megabyte of Env is refused, as are other entries that are no variables" {
	PULLED=yes refused config-env-megabyte "'Env': the text of all entries is more than 524288 bytes"
	refused config-env-long "'Env' holds an entry of more than 131072 bytes"
	refused config-env-many "'Env' has 1025 entries, more than 1024"
	refused config-env-number "'Env' holds what is not text"
	refused config-env-text "'Env' is not a list"
	refused config-env-no-name "'Env' holds '=b', not NAME=VALUE"
	refused config-env-no-sign "'Env' holds 'A', not NAME=VALUE"
	refused config-env-nul "not JSON"
}

# bats test_tags=once
@test "a config for another machine or other content is refused" {
	refused config-other-machine "the image is made for linux/m68k, and this machine is linux/"
	refused config-other-system "the image is made for windows/"
	PULLED=yes refused config-diff-id "which is not what the image's config says (sha256:1111"
	refused config-diff-id-text "'diff_ids' 0 is not a digest of sha256"
}

# ---- through a real registry ----

@test "hostile layers that a real registry hands out are refused as well" {
	start_registry
	for case in links-in-a-circle:"'a/file': the name leads through more than 40 symbolic links" \
		device-in-etc:"'etc/null': it is a device outside of dev/" \
		name-absolute-climbs:"the name climbs with '..'"; do
		name=${case%%:*}
		skopeo --insecure-policy copy -q --dest-tls-verify=false --preserve-digests \
			"oci:$HOSTILE/$name:x:1" "docker://$REGISTRY/$name:1"
		run ak image pull --quiet "$REGISTRY/$name:1"
		fails_with 125 "${case#*:}"
		[ "$(show_canary)" = "$canary" ]
		store_is_empty
		run ak run --image "$REGISTRY/$name:1" true
		[ "$status" -eq 125 ]
		[[ "$output" == *"${case#*:}"* ]]
	done
}

# ---- archives that are loaded ----

# bats test_tags=once
@test "an archive for load with names that climb or links that lead out reads nothing outside" {
	mkdir "$W/archive"
	ln -s "$CANARY/file" "$W/archive/manifest.json"
	tar -C "$W/archive" -cf "$W/link.tar" manifest.json
	run ak image load "$W/link.tar"
	fails_with 125 "holds no image"
	echo '[{"Config":"../../../../../../../../etc/passwd","RepoTags":["x:1"],"Layers":[]}]' >"$W/climb.json"
	tar -C "$W" --transform 's/climb/manifest/' -cf "$W/climb.tar" climb.json
	run ak image load "$W/climb.tar"
	fails_with 125 "config: '../../../../../../../../etc/passwd' is missing"
	rm "$W/archive/manifest.json"
	cp "$W/climb.json" "$W/archive/manifest.json"
	run ak image load "$W/archive"
	[ "$status" -eq 125 ]
	[[ "$output" == *"etc/passwd"* ]]
	store_is_empty
}
