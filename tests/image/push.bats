# Images go to a real registry on loopback, and other programs fetch them from there.
# bats file_tags=once
load helpers

setup_file() {
	setup_shared
	make_base
	export STATE=$SHARED/state
	mkdir "$STATE"
	give "$STATE"
	start_registry
	ak image import "$REGISTRY/base:1" "$SHARED/base.tar"
}

# built NAME COMMAND: an image from the base
built() {
	printf 'FROM %s/base:1\nRUN %s\n' "$REGISTRY" "$2" | ak build -t "$REGISTRY/$1" - 2>/dev/null
}

# Another registry, with its own files, at the port that the first time chose.
other_registry() {
	cat >"$W/other.yml" <<-YML
	version: 0.1
	log: {level: info, accesslog: {disabled: false}}
	storage: {filesystem: {rootdirectory: $W/other}}
	http: {addr: "127.0.0.1:${OTHER_PORT:-0}"}
	${AUTH:-}
	YML
	docker-registry serve "$W/other.yml" >"$W/other.log" 2>&1 3>&- &
	other_pid=$!
	echo $other_pid >>"$SHARED/pids"
	wait_for_line "$W/other.log" 'msg="listening on ' || return 1
	OTHER=$(sed -n 's/.*msg="listening on \([0-9.:]*\)".*/\1/p' "$W/other.log" | head -n 1)
	OTHER_PORT=${OTHER##*:}
}

@test "what_is_pushed_is_what_others_pull" {
	built tool:1 'echo made >/made'
	run ak image push --json "$REGISTRY/tool:1"
	[ "$(json layers_sent)" = 2 ]
	digest=$(json digest)
	[ "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/tool:1")" = "$digest" ]
	skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$REGISTRY/tool:1" oci:got:1
	as env AGENTKERNEL_HOME="$W/fresh" "$AK" image pull -q "$REGISTRY/tool:1"
	run as env AGENTKERNEL_HOME="$W/fresh" "$AK" run -i "$REGISTRY/tool:1" cat /made
	says made
	if has_podman; then
		podman --root "$W/pod" --runroot "$W/podrun" pull -q --tls-verify=false "$REGISTRY/tool:1" >id
		podman --root "$W/pod" --runroot "$W/podrun" inspect --format '{{.Digest}}' "$(cat id)" | grep -q "$digest"
		umount "$W/pod/overlay" 2>/dev/null || true
	fi
	# once more: nothing is sent
	run ak image push --json "$REGISTRY/tool:1"
	[ "$(json bytes_sent)" = 0 ]
}

has_podman() {
	[ "${AS:-root}" = root ] && command -v podman >/dev/null
}

@test "layers_of_another_repository_are_mounted" {
	built one:1 'head -c 300000 /dev/urandom >/data'
	ak image push -q "$REGISTRY/one:1"
	built team/two:1 'head -c 300000 /dev/urandom >/data' # the same step
	run ak image push --json "$REGISTRY/team/two:1"
	# that of the base may be asked of a repository to which it was never pushed
	[ "$(json layers_mounted)" -ge 1 ]
	grep -q "mount=sha256:.*from=one" "$SHARED/registry.log"
}

@test "a_registry_that_dies_for_a_moment_gets_the_rest" {
	other_registry
	printf 'FROM %s/base:1\nRUN head -c 5000000 /dev/urandom >/a\nRUN head -c 70000000 /dev/urandom >/b\n' "$REGISTRY" |
		ak build -t "$OTHER/big:1" - 2>/dev/null
	# it dies for a moment: the rest of the blob follows
	as "$AK" image push --json "$OTHER/big:1" >first 2>&1 3>&- &
	push=$!
	wait_for_line other.log 'PATCH'
	kill -9 "$other_pid"
	mv other.log other.1
	sleep 0.3
	other_registry
	wait $push
	grep -q '"digest"' first
	ak image push --json "$OTHER/big:1" >again
	grep -q '"bytes_sent":0' again
}

@test "credentials_are_those_of_docker_login" {
	python3 -W ignore -c 'import crypt; print("me:" + crypt.crypt("secret", crypt.mksalt(crypt.METHOD_BLOWFISH)))' >"$W/users"
	AUTH="auth: {htpasswd: {realm: here, path: $W/users}}" other_registry
	built x:1 true
	printf 'FROM %s/base:1\nRUN echo x >/x\n' "$REGISTRY" | ak build -t "$OTHER/x:1" - 2>/dev/null
	run ak image push "$OTHER/x:1"
	[ "$status" -eq 125 ]
	[[ "$output" == *"docker login $OTHER"* ]]
	mkdir "$W/docker"
	printf '{"auths":{"%s":{"auth":"%s"}}}' "$OTHER" "$(printf me:secret | base64)" >"$W/docker/config.json"
	as env DOCKER_CONFIG="$W/docker" "$AK" image push -q "$OTHER/x:1"
	skopeo inspect --tls-verify=false --creds me:secret "docker://$OTHER/x:1" >/dev/null
}

@test "what_is_not_in_the_store_is_not_pushed" {
	run ak image push "$REGISTRY/nothing:1"
	fails_with 125 "no image '$REGISTRY/nothing:1' in the store"
}
