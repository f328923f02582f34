#!/usr/bin/env bats
# Images as other programs write them: names that begin with a slash, links in paths, an archive
# that ends too early, layouts with a short name or none.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	setup_shared && cd "$SHARED" && make_merged_root
}

# A busybox where bin is a link, as in most distributions.
make_merged_root() {
	make_rootfs merged
	rmdir merged/usr/bin
	mv merged/bin merged/usr/bin
	ln -s usr/bin merged/bin
	echo word >word
	printf '#!/bin/sh\necho a tool\n' >tool
	chmod 755 tool
}

# umoci_layout NAME: written by umoci, a root and then a small file
umoci_layout() {
	umoci init --layout "$W/umoci" && umoci new --image "$W/umoci:$1" &&
		umoci insert --image "$W/umoci:$1" "$SHARED/merged" / &&
		umoci insert --image "$W/umoci:$1" "$SHARED/word" /etc/word &&
		umoci config --image "$W/umoci:$1" --config.cmd cat --config.cmd /etc/word
	chmod -R a+rX "$W/umoci"
}

# Control of the next test: the content of its layers.
# bats test_tags=once
@test "umoci writes an entry called / and a layer without its last padding" {
	umoci_layout app
	for blob in "$W"/umoci/blobs/sha256/*; do
		gzip -dc "$blob" >"$W/layer" 2>/dev/null || continue
		[ "$(stat -c %s "$W/layer")" -eq $((512 + 5)) ] && short=yes
		[ "$(head -c 2 "$W/layer" | tr '\0' .)" = /. ] && slash=yes
	done
	[ "$short" = yes ] && [ "$slash" = yes ]
}

@test "what umoci builds is loaded under the name that it was tagged with, and runs" {
	umoci_layout app
	run -0 ak image load -q "$W/umoci"
	says docker.io/library/app:latest
	run -0 ak run --pull never --image app
	says word
	run -0 ak run --pull never --image app /bin/sh -c 'readlink /bin'
	says usr/bin
}

# bats test_tags=once
@test "a layout that is called what no image can be called wants another name" {
	umoci_layout App
	run ak image load "$W/umoci"
	fails_with 125 "(--name gives it another): "
	run -0 ak image load -q --name app:2 "$W/umoci"
	says docker.io/library/app:2
}

# As kaniko and bazel write them; tar -P gives the same without them.
@test "absolute names are those below the root of the image" {
	mkdir "$W/pieces"
	echo first >"$W/pieces/file"
	give -R "$W/pieces"
	tar -P --transform "s,^$W/pieces,/opt/app," -cf "$W/layer.tar" "$W/pieces"
	[ "$(tar -Ptf "$W/layer.tar" | tail -n 1)" = /opt/app/file ]
	pack "$SHARED/merged" "$W/merged.tar"
	SHARED=$W image app:1 "$W/merged.tar" "$W/layer.tar"
	chmod -R a+rX "$W/layout"
	ak image load -q "$W/layout" >/dev/null
	run -0 ak run --pull never --image app:1 cat /opt/app/file
	says first
}

@test "a file below a link of the same layer lies where the link leads" {
	tar -C "$SHARED" -cf "$W/layer.tar" -C merged . -C "$SHARED" --transform 's,^tool,./bin/tool,' tool
	[ "$(tar -tf "$W/layer.tar" | tail -n 1)" = ./bin/tool ]
	ak image import -q linked:1 "$W/layer.tar" >/dev/null
	run -0 ak run --pull never --image linked:1 sh -c 'readlink /bin; cat /usr/bin/tool; tool'
	says 'usr/bin
#!/bin/sh
echo a tool
a tool'
}

@test "what skopeo writes to dir: is loaded, for one machine and for several" {
	pack "$SHARED/merged" "$W/merged.tar"
	SHARED=$W image one:1 --config '{"Cmd":["cat","/etc/passwd"]}' "$W/merged.tar"
	SHARED=$W image other:1 --architecture s390x "$W/merged.tar"
	python3 "$TOP/tests/image/oci.py" index "$W/layout" both:1 "$(oci_machine)=one:1" s390x=other:1
	skopeo --insecure-policy copy -q "oci:$W/layout:one:1" "dir:$W/one"
	skopeo --insecure-policy copy -q --all "oci:$W/layout:both:1" "dir:$W/both"
	[ "$(find "$W/both" -name '*.manifest.json' | wc -l)" -eq 2 ]
	chmod -R a+rX "$W"
	for from in one both; do
		run ak image load -q "$W/$from"
		fails_with 125 "the image has no name there (give it one with --name)"
		run -0 ak image load -q --name "$from" "$W/$from"
		says "docker.io/library/$from:latest"
		run -0 ak run --pull never --image "$from"
		says "$(cat "$SHARED/merged/etc/passwd")"
	done
}

oci_machine() {
	python3 -c "import sys; sys.path.insert(0, '$TOP/tests/image'); import oci; print(oci.machine())"
}

# bats test_tags=once
@test "a dir: whose files are not what its manifest says is refused" {
	pack "$SHARED/merged" "$W/merged.tar"
	SHARED=$W image one:1 "$W/merged.tar"
	skopeo --insecure-policy copy -q "oci:$W/layout:one:1" "dir:$W/one"
	layer=$(find "$W/one" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
	echo more >>"$layer"
	run ak image load --name one "$W/one"
	fails_with 125 "layer 1: '$(basename "$layer")' is not what its name says"
	rm "$layer"
	ln -s /etc/passwd "$layer"
	run ak image load --name one "$W/one"
	[ "$status" -eq 125 ] && [[ "$output" == *"layer 1: "* ]]
	store_is_empty
}

@test "import takes its words in docker's order too, where they leave no doubt" {
	pack "$SHARED/merged" "$W/root.tar"
	cp -a "$SHARED/merged" "$W/merged"
	give -Rh "$W/merged"
	run -0 ak image import -q "$W/root.tar" a:1
	says docker.io/library/a:1
	as "$AK" image import -q - b:1 <"$W/root.tar" >"$W/out"
	[ "$(cat "$W/out")" = docker.io/library/b:1 ]
	for name in a:1 b:1; do
		run -0 ak run --pull never --image "$name" echo "$name"
		says "$name"
	done
	# both exist: the name comes first
	cp "$W/root.tar" "$W/name"
	run -0 ak image import -q name root.tar
	says docker.io/library/name:latest
	run ak image import -q merged c:1
	fails_with 125 "there is no file 'c:1', but a directory 'merged': the name of the image comes first"
	run ak image import -q c:1 nosuch.tar
	fails_with 125 "open 'nosuch.tar': No such file or directory"
}
