# A registry that dies while an image is pushed: slow, since the attempts pause. `make check-build` runs it.
load ../image/helpers

setup_file() {
	setup_shared
	make_base
	export STATE=$SHARED/state
	mkdir "$STATE"
	give "$STATE"
	ak image import base:1 "$SHARED/base.tar"
}

# A registry at the port that the first time chose.
other_registry() {
	cat >"$W/other.yml" <<-YML
	version: 0.1
	log: {level: info, accesslog: {disabled: false}}
	storage: {filesystem: {rootdirectory: $W/other}}
	http: {addr: "127.0.0.1:${OTHER_PORT:-0}"}
	YML
	docker-registry serve "$W/other.yml" >"$W/other.log" 2>&1 3>&- &
	other_pid=$!
	echo $other_pid >>"$SHARED/pids"
	wait_for_line "$W/other.log" 'msg="listening on ' || return 1
	OTHER=$(sed -n 's/.*msg="listening on \([0-9.:]*\)".*/\1/p' "$W/other.log" | head -n 1)
	OTHER_PORT=${OTHER##*:}
}

@test "a_registry_that_dies_has_nothing_half_and_the_next_try_goes_on" {
	other_registry
	printf 'FROM base:1\nRUN head -c 5000000 /dev/urandom >/a\nRUN head -c 90000000 /dev/urandom >/b\n' |
		ak build -t "$OTHER/big:1" - 2>/dev/null
	as "$AK" image push --json "$OTHER/big:1" >second 2>&1 3>&- &
	push=$!
	wait_for_line other.log 'PATCH'
	kill -9 "$other_pid"
	! wait $push
	grep -q 'cannot reach' second
	mv other.log other.3
	other_registry
	run skopeo inspect --tls-verify=false "docker://$OTHER/big:1"
	[ "$status" -ne 0 ]
	ak image push -q "$OTHER/big:1"
	skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$OTHER/big:1" oci:got:1
}
