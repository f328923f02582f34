#!/usr/bin/env bats
# Pulling from a real registry, filled by skopeo.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	setup_shared && start_registry && start_faulty && make_base && make_images
}

# Five layers, of which the two images share four; other formats of one layer; two architectures.
make_images() {
	local n
	for n in 1 2 3 4 5; do
		mkdir -p "$SHARED/tree/opt"
		head -c 20000 /dev/urandom >"$SHARED/tree/opt/$n"
		pack "$SHARED/tree" "$SHARED/$n.tar"
		rm -rf "$SHARED/tree"
	done
	gzip -1k "$SHARED/base.tar" && zstd -q "$SHARED/base.tar" || return 1
	(
		cd "$SHARED" || return 1
		image five base.tar.gz 1.tar 2.tar 3.tar 4.tar && push five five:1 && push five five:latest
		image other-five base.tar.gz 1.tar 2.tar 3.tar 5.tar && push other-five five:2
		image small 1.tar 2.tar 3.tar 4.tar && push small small:1
		image plain base.tar && image gzip base.tar.gz && image zstd base.tar.zst
		image foreign --architecture "$(foreign_machine)" base.tar.gz
		python3 "$TOP/tests/image/oci.py" index layout many "$(foreign_machine)=foreign" "$(this_machine)=five"
		python3 "$TOP/tests/image/oci.py" index layout nowhere "$(foreign_machine)=foreign"
		push plain plain:1 --preserve-digests
		push gzip gzip:1
		push zstd zstd:1
		push gzip docker:1 --format v2s2
		push many many:1 --all
		push nowhere nowhere:1 --all
	)
}

this_machine() {
	python3 -c "import sys; sys.path.insert(0, '$TOP/tests/image'); import oci; print(oci.machine())"
}

foreign_machine() {
	[ "$(this_machine)" = arm64 ] && echo amd64 || echo arm64
}

teardown() {
	[ -z "${TMUX_SOCKET:-}" ] || as tmux -S "$TMUX_SOCKET" kill-server || true
	rm -rf "$SHARED/home/.docker" "$SHARED/home/.config"
}

# login HOST JSON: an entry of Docker's config.json
login() {
	mkdir -p "$SHARED/home/.docker"
	echo "{\"auths\":{\"$1\":$2}}" >"$SHARED/home/.docker/config.json"
	chmod 755 "$SHARED/home/.docker"
	give "$SHARED/home/.docker/config.json"
}

digest_of() {
	skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/$1"
}

# ---- names ----

@test "an image is pulled by its tag and runs" {
	ak image pull -q "$REGISTRY/five:1"
	run ak run --image "$REGISTRY/five:1" sh -c 'ls /opt | tr "\n" " "; wc -c </opt/4'
	says "1 2 3 4 20000"
}

# bats test_tags=once
@test "an image is pulled by its digest, and the digest is what runs afterwards" {
	digest=$(digest_of five:2)
	run ak image pull --json "$REGISTRY/five@$digest"
	[ "$(json digest)" = "$digest" ]
	run ak run --image "$REGISTRY/five@$digest" --pull never ls /opt
	[[ "$output" == *5* ]]
}

# bats test_tags=once
@test "without a tag it is latest" {
	run -0 ak image pull --json "$REGISTRY/five"
	[ "$(json reference)" = "$REGISTRY/five:latest" ]
	[ "$(json digest)" = "$(digest_of five:latest)" ]
}

# bats test_tags=once
@test "a tag that is not there is refused in words" {
	run ak image pull "$REGISTRY/five:nosuch"
	fails_with 125 "the registry $REGISTRY answers 404 for the tag 'nosuch' of 'five'"
	store_is_empty
}

# bats test_tags=once
@test "of an index the image for this machine is taken" {
	run -0 ak image pull --json "$REGISTRY/many:1"
	[ "$(json digest)" = "$(digest_of five:1)" ]
	ak run --image "$REGISTRY/many:1" true
}

# bats test_tags=once
@test "an index without this machine is refused, and says for which it is" {
	run ak image pull "$REGISTRY/nowhere:1"
	fails_with 125 "the image is not made for linux/$(this_machine), only for: linux/$(foreign_machine)"
}

# bats test_tags=once
@test "a port where nobody listens is named in the refusal" {
	run ak image pull 127.0.0.1:9/nobody:1
	fails_with 125 "127.0.0.1:9"
}

# ---- formats ----

@test "layers may be plain, gzip or zstd, manifests OCI's or Docker's" {
	for name in plain gzip zstd docker; do
		ak image pull -q "$REGISTRY/$name:1" >/dev/null
		run ak run --image "$REGISTRY/$name:1" sh -c 'echo $0 works' "$name"
		says "$name works"
	done
	# and have these formats: the store keeps the manifests unchanged
	for type in oci.image.layer.v1.tar oci.image.layer.v1.tar+gzip oci.image.layer.v1.tar+zstd \
		docker.image.rootfs.diff.tar.gzip; do
		grep -qa "application/vnd.$type\"" "$W"/state/images/blobs/sha256/* || { echo "no $type"; false; }
	done
}

# ---- what is not fetched ----

# bats test_tags=once
@test "a second pull is up to date and fetches no blob" {
	fault
	ak image pull -q "$FAULTY/five:1"
	fault
	run -0 ak image pull "$FAULTY/five:1"
	[ "${lines[-1]}" = "agentkernel: $FAULTY/five:1 is up to date: 0 of 5 layers fetched, 0 bytes" ]
	[ "$(requests blobs)" -eq 0 ]
	[ "$(requests manifests)" -ge 1 ]
}

@test "an image that shares four of five layers fetches the fifth alone" {
	fault
	run -0 ak image pull --json "$FAULTY/five:1"
	[ "$(json layers_fetched)" -eq 5 ]
	fault
	run -0 ak image pull --json "$FAULTY/five:2"
	[ "$(json layers)" -eq 5 ] && [ "$(json layers_fetched)" -eq 1 ]
	[ "$(requests blobs)" -eq 2 ] # plus the config
	ak run --image "$FAULTY/five:2" test -e /opt/5
	ak run --image "$FAULTY/five:1" test ! -e /opt/5
}

# bats test_tags=once
@test "a tag that means another image now is pulled anew, and the old one goes with prune" {
	ak image pull -q "$REGISTRY/five:1" >/dev/null
	push five moving:1
	ak image pull -q "$REGISTRY/moving:1" >/dev/null
	push other-five moving:1
	run -0 ak image pull --json "$REGISTRY/moving:1"
	[ "$(json is_new)" = True ]
	ak run --image "$REGISTRY/moving:1" test -e /opt/5
	ak image remove -q "$REGISTRY/five:1"
	ak run --image "$REGISTRY/moving:1" test -e /opt/1
	[ "$(find "$W"/state/images/layers/*/ -mindepth 1 -maxdepth 1 -not -name making | wc -l)" -eq 5 ]
}

@test "two pulls of one image at once both succeed and fetch each layer once" {
	fault
	ak image pull -q "$FAULTY/five:1" 3>&- &
	first=$!
	ak image pull -q "$FAULTY/five:1"
	wait "$first"
	[ "$(requests 'blobs.* 200')" -eq 6 ]
	ak run --image "$FAULTY/five:1" true
	[ -z "$(find "$W"/state/images/layers/*/making "$W/state/images/blobs/partial" -mindepth 1)" ]
}

@test "prune --all while a run waits for its image leaves that image alone" {
	for round in 1 2 3; do
		fault slow=500000
		ak run --image "$FAULTY/five:1" echo "round $round ran" >"$W/out" 2>&1 3>&- &
		waiting=$!
		for _ in $(seq 200); do [ "$(requests blobs)" -eq 0 ] || break; sleep 0.02; done
		prunes=()
		for _ in 1 2 3; do
			ak image prune -q --all 3>&- &
			prunes+=($!)
		done
		sleep 0.1
		fault
		wait "$waiting" || { cat "$W/out"; false; }
		grep -q "round $round ran" "$W/out"
		wait "${prunes[@]}"
		ak image prune -q --all
	done
	[ -z "$(find "$W/state/images/records" -mindepth 1)" ] # nothing keeps it any more
}

# ---- authentication ----

# bats test_tags=once
@test "a registry with tokens gives the image to who logged in" {
	fault token=ann:secret
	login "$FAULTY" "{\"auth\":\"$(printf ann:secret | base64)\"}"
	ak image pull -q "$FAULTY/five:1"
	[ "$(requests 'GET /v2/.*auth=bearer')" -gt 5 ]
	[ "$(requests 'GET /v2/.*auth=basic')" -eq 0 ] # the password is sent only to the realm
}

# bats test_tags=once
@test "a registry with tokens gives the image to anybody where it says so" {
	fault token=:x
	ak image pull -q "$FAULTY/five:1"
	[ "$(requests 'auth=basic')" -eq 0 ]
}

# bats test_tags=once
@test "a registry with basic credentials gives the image to who logged in" {
	fault basic=ann:secret
	login "$FAULTY" "{\"auth\":\"$(printf ann:secret | base64)\"}"
	ak image pull -q "$FAULTY/five:1"
	[ "$(requests 'auth=basic')" -gt 5 ]
}

# bats test_tags=once
@test "a wrong password is refused in words that do not repeat it, with tokens and without" {
	login "$FAULTY" "{\"auth\":\"$(printf ann:wrong-word | base64)\"}"
	for kind in token basic; do
		fault $kind=ann:secret
		run ak image pull "$FAULTY/five:1"
		[ "$status" -eq 125 ]
		[[ "$output" == *"$FAULTY"* ]] && [[ "$output" != *wrong-word* ]]
		[[ "$output" == *credentials* ]] || { echo "$kind: $output"; false; }
	done
}

# bats test_tags=once
@test "without credentials the refusal says that they are missing" {
	fault basic=ann:secret
	run ak image pull "$FAULTY/five:1"
	fails_with 125 "docker login"
}

@test "a credential helper is asked for the password" {
	mkdir "$W/bin"
	cat >"$W/bin/docker-credential-test" <<-SH
	#!/bin/sh
	read -r host
	[ "\$1" = get ] && echo "{\"ServerURL\":\"\$host\",\"Username\":\"ann\",\"Secret\":\"secret\"}"
	SH
	chmod 755 "$W/bin/docker-credential-test"
	mkdir -p -m 755 "$SHARED/home/.docker"
	echo "{\"credHelpers\":{\"$FAULTY\":\"test\"}}" >"$SHARED/home/.docker/config.json"
	give "$SHARED/home/.docker/config.json"
	fault basic=ann:secret
	as env PATH="$W/bin:$PATH" "$AK" image pull -q "$FAULTY/five:1"
	fault basic=ann:another
	run as env PATH="$W/bin:$PATH" "$AK" image pull -q "$FAULTY/five:2"
	fails_with 125 credentials
}

# ---- the user's config.toml ----

# configure TEXT
configure() {
	mkdir -p "$SHARED/home/.config/agentkernel"
	echo "$1" >"$SHARED/home/.config/agentkernel/config.toml"
	give -R "$SHARED/home/.config"
}

# bats test_tags=once
@test "a mirror is asked instead of the registry itself" {
	configure "[registries.\"registry.example.org\"]
mirrors = [\"http://$FAULTY\"]
insecure = true"
	fault
	ak image pull -q registry.example.org/five:1
	[ "$(requests blobs)" -ge 5 ]
	run ak run --image registry.example.org/five:1 echo in
	says in
}

# bats test_tags=once
@test "a mirror that fails is passed over" {
	configure "[registries.\"$REGISTRY\"]
mirrors = [\"http://127.0.0.1:9\", \"http://$FAULTY\"]"
	fault status=500,1000
	ak image pull -q "$REGISTRY/five:1"
	[ "$(requests ' 500 ')" -ge 1 ]
}

# bats test_tags=once
@test "credentials of a registry do not go to its mirror" {
	configure "[registries.\"$REGISTRY\"]
mirrors = [\"http://$FAULTY\"]"
	login "$REGISTRY" "{\"auth\":\"$(printf ann:secret | base64)\"}"
	fault basic=ann:secret
	ak image pull -q "$REGISTRY/five:1"
	[ "$(requests 'auth=basic')" -eq 0 ] && [ "$(requests 'auth=none')" -ge 1 ]
}

# Starts the registry with TLS and a self-signed certificate; TLS is its address.
start_tls() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 \
		-addext subjectAltName=IP:127.0.0.1 -keyout "$W/key" -out "$W/cert" 2>/dev/null
	python3 "$TOP/tests/image/faulty.py" --upstream "$REGISTRY" --cert "$W/cert" --key "$W/key" \
		--log "$W/tls.log" >"$W/tls.ports" 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line "$W/tls.ports" ' '
	TLS=127.0.0.1:$(cut -d ' ' -f 1 "$W/tls.ports")
}

# bats test_tags=once
@test "a certificate that nobody has signed is refused unless the file calls the registry insecure" {
	start_tls
	run ak image pull -q "$TLS/five:1"
	fails_with 125 certificate
	[ ! -s "$W/tls.log" ] # no request was made
	configure '[registries."registry.example.org"]
insecure = true'
	run ak image pull -q "$TLS/five:1"
	fails_with 125 certificate
	configure "[registries.\"$TLS\"]
insecure = true"
	ak image pull -q "$TLS/five:1"
	[ "$(grep -c blobs "$W/tls.log")" -ge 5 ]
}

# bats test_tags=once
@test "a file that cannot be read as it should is refused with its line" {
	configure '[registries."registry.example.org"]
insecure = "yes"'
	run ak image pull -q registry.example.org/five:1
	fails_with 125 "config.toml:2:12: true or false is expected, not a string"
}

# ---- output ----

# bats test_tags=once
@test "--quiet prints the full name and nothing else" {
	run --separate-stderr -0 ak image pull --quiet "$REGISTRY/five:1"
	says "$REGISTRY/five:1"
	[ -z "$stderr" ]
}

# bats test_tags=once
@test "--json prints one object and nothing else" {
	run --separate-stderr -0 ak image pull --json "$REGISTRY/five:1"
	[ "$(json layers)" -eq 5 ] && [ "$(json layers_fetched)" -eq 5 ] && [ "$(json is_new)" = True ]
	[ "$(json bytes_fetched)" -gt 1000000 ]
	[ -z "$stderr" ]
}

# bats test_tags=once
@test "without a terminal there is one plain line for each step of a layer" {
	run --separate-stderr -0 ak image pull "$REGISTRY/five:1"
	[ -z "$output" ]
	[[ "${stderr_lines[0]}" == "agentkernel: pulling $REGISTRY/five:1" ]]
	[ "$(grep -c ': downloaded ' <<<"$stderr")" -eq 5 ]
	[ "$(grep -c ': done$' <<<"$stderr")" -eq 5 ]
	[[ "${stderr_lines[-1]}" == "agentkernel: $REGISTRY/five:1 is here: 5 of 5 layers fetched, "* ]]
	[[ "$stderr" != *$'\033'* && "$stderr" != *$'\r'* ]]
}

# bats test_tags=once
@test "in a terminal there is one line for each layer, drawn in place" {
	fault slow=12000 # two pieces of each layer, a second between them
	TMUX_SOCKET=$W/tmux.sock
	as env -u TMUX tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x 100 -y 30 \
		"'$AK' image pull $FAULTY/small:1; sleep 60"
	for _ in $(seq 100); do
		as tmux -S "$TMUX_SOCKET" capture-pane -p >"$W/screen"
		grep -q downloading "$W/screen" && cp "$W/screen" "$W/moving"
		grep -q 'is here' "$W/screen" && break
		sleep 0.1
	done
	grep -q 'agentkernel: .* is here: 4 of 4 layers fetched' "$W/screen"
	[ "$(grep -c '^[0-9a-f]\{12\} \[=*>\?\] .* done' "$W/screen")" -eq 4 ] || { cat "$W/screen"; false; }
	[ "$(grep -c '^[0-9a-f]\{12\} \[' "$W/moving")" -eq 4 ]
}

@test "list and inspect show what was pulled, remove takes it" {
	ak image pull -q "$REGISTRY/five:1" >/dev/null
	run -0 ak image list
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[1]}" == "$REGISTRY/five:1 "*"sha256:"* ]]
	run -0 ak image inspect "$REGISTRY/five:1"
	[[ "$output" == *"$(digest_of five:1)"* ]]
	ak image remove -q "$REGISTRY/five:1"
	run -0 ak image list
	[ "${#lines[@]}" -eq 1 ]
	run ak image inspect "$REGISTRY/five:1"
	fails_with 125 "no image '$REGISTRY/five:1' in the store"
	[ -z "$(find "$W"/state/images/{layers/*,blobs,records,names} -type f)" ]
}

# ---- run ----

@test "run pulls what is missing, and the second run asks nobody" {
	fault
	run --separate-stderr -0 ak run --image "$FAULTY/five:1" echo in
	says in
	[[ "$stderr" == *"pulling $FAULTY/five:1"* ]]
	fault mute
	run -0 ak run --image "$FAULTY/five:1" echo in
	says in
	[ "$(requests .)" -eq 0 ]
}

@test "--pull always asks each time, --pull never asks nobody" {
	fault
	run ak run --image "$FAULTY/five:1" --pull never true
	fails_with 125 "image '$FAULTY/five:1': not in the store, and --pull never forbids to fetch it"
	[ "$(requests .)" -eq 0 ]
	ak run --image "$FAULTY/five:1" --pull missing true
	fault
	ak run --image "$FAULTY/five:1" --pull always true
	[ "$(requests manifests)" -ge 1 ]
	fault status=404,1000
	run ak run --image "$FAULTY/five:1" --pull always echo never
	fails_with 125 "answers 404"
	run ak run --image "$FAULTY/five:1" --pull sometimes true
	fails_with 125 "--pull: no 'sometimes' (use missing, always or never)"
}
