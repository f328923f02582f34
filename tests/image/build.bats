# Images from Dockerfiles: what comes out, what a step sees, what is done again, what bad input gets.
load helpers

setup_file() {
	setup_shared
	make_base
	export STATE=$SHARED/state
	mkdir "$STATE"
	give "$STATE"
	ak image import base:1 "$SHARED/base.tar"
}

setup() {
	make_place
	as mkdir ctx
}

# dockerfile: stdin is ctx/Dockerfile
dockerfile() {
	cat >"$W/ctx/Dockerfile"
	give "$W/ctx/Dockerfile"
}

# put FILE TEXT, in the context
put() {
	as mkdir -p "$(dirname "$W/ctx/$1")"
	printf '%s\n' "$2" >"$W/ctx/$1"
	give "$W/ctx/$1"
}

# in_image REF COMMAND...
in_image() {
	ak run --network-policy deny -i "$@"
}

@test "a_step_sees_the_stage_and_leaves_only_its_changes" {
	put a.txt hello
	put sub/b.txt inner
	dockerfile <<-'END'
	FROM base:1
	ARG V=7
	ENV A=x P=${V}y
	RUN echo "$V $A $P" >/out && rm -r /opt && mkdir -p /made/dir
	WORKDIR /app
	COPY a.txt sub ./
	RUN cat a.txt b.txt /out >all
	LABEL k=v
	CMD ["cat", "/app/all"]
	END
	ak build -t tool:1 ctx >digest 2>log
	[[ "$(cat digest)" == sha256:* ]]
	run ak run -i tool:1
	says $'hello\ninner\n7 x 7y'
	run in_image tool:1 sh -c 'ls -d /opt /made/dir; cat /etc/resolv.conf | grep -c made; stat -c %a /app'
	[[ "$output" == *"/opt: No such file"* && "$output" == */made/dir* ]]
	ak image save tool:1 layout/
	# what every start of a sandbox writes is in no layer
	for blob in layout/blobs/sha256/*; do
		tar -tf "$blob" 2>/dev/null | grep -E '^(proc|sys|dev|etc/(hosts|hostname|resolv.conf))/?$' || true
	done >names
	[ "$(sort names | uniq -d)" = "" ] # in the base alone
}

@test "steps_that_were_done_are_not_done_again_and_what_changed_is" {
	put a.txt one
	dockerfile <<-'END'
	FROM base:1
	RUN date +%N >/stamp
	COPY a.txt /a.txt
	RUN cat /a.txt /stamp >/both
	END
	ak build -t again:1 ctx 2>/dev/null >first
	run ak build --json -t again:1 ctx
	[ "$(json cached)" = 3 ]
	[ "$(json digest)" = "$(cat first)" ]
	# the same content in another file
	as cp ctx/a.txt ctx/b.txt && as mv ctx/b.txt ctx/a.txt
	run ak build --json -t again:1 ctx
	[ "$(json digest)" = "$(cat first)" ]
	put a.txt two
	run ak build --json -t again:1 ctx
	[ "$(json cached)" = 1 ]
	run in_image again:1 head -n 1 /both
	says two
	run ak build --json --no-cache ctx
	[ "$(json cached)" = 0 ]
}

@test "the_same_input_has_the_same_digest_with_SOURCE_DATE_EPOCH" {
	put a.txt text
	dockerfile <<-'END'
	FROM base:1
	RUN mkdir /d && echo 1 >/d/f && ln -s f /d/l
	COPY a.txt /x/
	END
	as env SOURCE_DATE_EPOCH=1700000000 "$AK" build --no-cache ctx 2>/dev/null >first
	sleep 1.1
	as touch ctx/a.txt
	as env SOURCE_DATE_EPOCH=1700000000 "$AK" build --no-cache ctx 2>/dev/null >second
	cmp first second
	as "$AK" build --no-cache ctx 2>/dev/null >third
	! cmp -s first third
}

@test "stages_are_copied_from_and_those_that_are_not_needed_are_left_out" {
	dockerfile <<-'END'
	FROM base:1 AS one
	RUN echo 1 >/one
	FROM base:1 AS two
	RUN echo 2 >/two && ln -s /two /link
	FROM base:1 AS never
	RUN exit 9
	FROM scratch
	COPY --from=one /bin/busybox /bin/sh
	COPY --from=one /one /
	COPY --from=two --chown=5:6 --chmod=640 /link /here
	FROM base:1 AS last
	RUN echo not the target
	END
	ak build -t small:1 --target 3 ctx 2>log
	! grep -q never log
	run in_image small:1 /bin/sh -c 'echo $(cat /one /here) $(stat -c "%a" /here)'
	says '1 2 640'
	has_many_ids || skip "the caller has one id"
	run in_image small:1 /bin/sh -c 'stat -c "%u:%g" /here'
	says 5:6
}

@test "a_step_has_secrets_caches_and_files_that_the_image_has_not" {
	put sub/f bound
	put secret.txt hidden
	dockerfile <<-'END'
	FROM base:1
	RUN --mount=type=secret,id=s --mount=type=bind,source=sub,target=/b --mount=type=tmpfs,target=/t \
	    --mount=type=cache,target=/c,id=count \
	    cp /run/secrets/s /seen && cat /b/f >>/seen && echo x >/t/x && echo x >>/c/n && wc -l </c/n >>/seen
	RUN --network=none ls / >/names; ! ping -c 1 -W 1 198.51.100.1
	END
	ak build -t mounts:1 --secret id=s,src=ctx/secret.txt ctx 2>/dev/null
	run in_image mounts:1 sh -c 'cat /seen; ls -d /run/secrets /b /t /c 2>&1 | grep -c "No such"'
	says $'hidden\nbound\n1\n4'
	ak build --no-cache -t mounts:1 --secret id=s,src=ctx/secret.txt ctx 2>/dev/null
	run in_image mounts:1 tail -n 1 /seen
	says 2
}

@test "a_context_does_not_lead_out_of_itself" {
	put a.txt own
	echo outside >"$W/outside.txt"
	as ln -s ../outside.txt ctx/up
	as ln -s /etc/passwd ctx/absolute
	as mkdir ctx/dir && as ln -s ../../outside.txt ctx/dir/link
	dockerfile <<-'END'
	FROM base:1
	COPY dir /dir
	END
	ak build -t links:1 ctx 2>/dev/null
	run in_image links:1 readlink /dir/link
	says ../../outside.txt
	for source in ../outside.txt up absolute; do
		printf 'FROM base:1\nCOPY %s /x\n' $source | dockerfile
		run ak build ctx
		[ "$status" -eq 125 ]
		[[ "$output" == *"Dockerfile:2:6: COPY: '"*"in the context"* ]]
	done
	printf 'FROM base:1\nCOPY . /x\n' | dockerfile
	as mkfifo ctx/fifo
	python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' ctx/socket
	run ak build ctx
	[[ "$output" == *"'socket' in the context is a socket"* ]]
	put .dockerignore $'socket\n*.txt\n!a.txt'
	as touch ctx/left.txt
	ak build -t links:2 ctx 2>/dev/null
	run in_image links:2 sh -c 'ls /x'
	says $'Dockerfile\na.txt\nabsolute\ndir\nfifo\nup'
}

@test "a_failing_step_says_where_and_earlier_ones_are_kept" {
	dockerfile <<-'END'
	FROM base:1
	RUN echo kept >/kept
	RUN echo some words; echo more >&2; exit 3
	END
	run ak build -t broken:1 ctx
	[ "$status" -eq 125 ]
	[[ "$output" == *"#2 some words"*"#2 more"*"Dockerfile:3:5: RUN: 'echo some words; echo more >&2; exit 3' failed with exit status 3" ]]
	run ak image inspect broken:1
	[ "$status" -ne 0 ]
	run ak build ctx
	[[ "$output" == *"#1 CACHED"* ]]
	# nothing is left of what was being done
	[ -z "$(find "$STATE"/images/layers/*/making -mindepth 1)" ]
}

@test "mistakes_are_told_before_anything_runs" {
	while IFS='|' read -r text words; do
		printf "$text" | dockerfile
		run ak build ctx
		[ "$status" -eq 125 ]
		[[ "$output" == *"$words"* ]] || { echo "$text: $output"; return 1; }
		[[ "$output" != *"#1"* ]]
	done <<-'END'
	FROM base:1\nRUN true\nRUNN x|Dockerfile:3:6: RUNN: there is no instruction 'runn', did you mean 'run'?
	FROM base:1\nRUN true\nCOPY --form=x a b|Dockerfile:3:6: COPY: unknown flag '--form', did you mean '--from'?
	FROM base:1\nRUN true\nCOPY a|Dockerfile:3:6: COPY: too few words
	RUN true\nFROM base:1|Dockerfile:1:5: RUN: only ARG may stand before the first FROM
	FROM $NOTHING|FROM: '$NOTHING' is empty
	FROM base:1 AS a\nFROM base:1 AS A|Dockerfile:2:6: FROM: there is a stage 'A' already
	FROM --platform=linux/none base:1|this machine builds for linux/
	END
	printf 'FROM base:1\n' | dockerfile
	run ak build -P 80 ctx
	[[ "$output" == *"-P: nothing in a build is reached from outside"* || "$output" == *"--publish: nothing in a build"* ]]
	run ak build --target none ctx
	[[ "$output" == *"has no stage 'none'"* ]]
}

@test "a_step_is_held_by_its_limits" {
	dockerfile <<-'END'
	FROM base:1
	RUN for i in $(seq 100); do sleep 20 & done; wait
	END
	run ak build --pids 40 ctx
	fails_with_last "failed with exit status"
	[ "${AS:-root}" != root ] || fails_with_last "it reached its limit of processes (raise it with --pids)"
	dockerfile <<-'END'
	FROM base:1
	RUN sleep 60
	END
	run ak build --timeout 300ms ctx
	fails_with_last "it took longer than --timeout"
}

# fails_with_last TEXT: the last line has it
fails_with_last() {
	[ "$status" -eq 125 ]
	[[ "$(tail -n 1 <<<"$output")" == *"$1"* ]] || { echo "$output"; return 1; }
}

@test "two_builds_of_one_name_at_once_do_each_step_once" {
	dockerfile <<-'END'
	FROM base:1
	RUN sleep 1; date +%N >/stamp
	END
	ak build -t both:1 ctx 2>/dev/null >one 3>&- &
	first=$!
	ak build -t both:1 ctx 2>log >two || { cat log; false; }
	wait $first
	cmp one two
}

@test "caches_of_commands_stay_and_the_least_recently_used_beyond_a_number_go" {
	dockerfile <<-'END'
	FROM base:1
	RUN --mount=type=cache,id=kept,target=/c echo more >>/c/f && wc -l </c/f >/n
	END
	as sh -c 'for n in $(seq 300); do mkdir -p "$1/build-cache/old$n/sub"; done; touch -d 2020-01-01 "$1"/build-cache/old*' - "$STATE"
	ak build -t cached:1 ctx 2>/dev/null
	ak build --no-cache -t cached:1 ctx 2>/dev/null
	run in_image cached:1 cat /n
	says 2
	[ "$(as ls "$STATE/build-cache" | wc -l)" -eq 256 ]
	[ -d "$STATE/build-cache/kept" ]
}

@test "an_interrupted_build_leaves_nothing_half_done" {
	dockerfile <<-'END'
	FROM base:1
	RUN echo done >/done
	RUN sleep 60
	END
	as "$AK" build --progress plain -t late:1 ctx 2>log 3>&- &
	building=$!
	wait_for_line log '#2 '
	pid=$(pgrep -f "^$AK build --progress plain -t late:1" | head -n 1)
	kill -TERM "$pid"
	wait "$building" || true
	grep -q interrupted log
	[ -z "$(find "$STATE"/images/layers/*/making -mindepth 1)" ]
	run ak image inspect late:1
	[ "$status" -ne 0 ]
}

@test "stdin_is_a_Dockerfile_or_a_context" {
	run sh -c 'printf "FROM base:1\nRUN echo x >/x\n" | "$@"' - env HOME="$SHARED/home" "$AK" version
	printf 'FROM base:1\nRUN echo from stdin >/x\n' | ak build -t stdin:1 - 2>/dev/null
	run in_image stdin:1 cat /x
	says 'from stdin'
	put f packed
	printf 'FROM base:1\nCOPY f /f\n' | dockerfile
	tar -C ctx -czf context.tgz .
	ak build -t stdin:2 - <context.tgz 2>/dev/null
	run in_image stdin:2 cat /f
	says packed
	[ -z "$(find "$STATE/build-contexts" -mindepth 1)" ]
}

@test "a_sandbox_becomes_an_image" {
	ak create made-$$ -i base:1
	ak start made-$$
	ak exec made-$$ sh -c 'echo kept >/kept; rm -r /opt; mkdir /new'
	run ak commit --json made-$$ kept:1
	[[ "$(json digest)" == sha256:* ]]
	ak remove -f made-$$
	run in_image kept:1 sh -c 'cat /kept; ls -d /opt /new 2>/dev/null; cat /etc/machine-id 2>/dev/null'
	says $'kept\n/new'
	[ -z "$(ak checkpoint list | grep "made-$$")" ]
	ak create onit-$$ --template kept:1
	ak remove -f onit-$$
	ak create hosts-$$ -i host
	ak start hosts-$$
	run ak commit hosts-$$ x:1
	[[ "$output" == *"has this machine's own programs"* ]]
	ak remove -f hosts-$$
}

@test "a_projects_dockerfile_is_built_when_it_changes_and_the_file_is_trusted" {
	as mkdir proj
	printf 'FROM base:1\nCOPY f /f\nRUN cat /f >/g\n' >proj/Dockerfile
	printf '[sandbox]\ndockerfile = "Dockerfile"\n' >proj/agentkernel.toml
	echo one >proj/f
	give proj/*
	cd proj
	run as env -u AGENTKERNEL_IMAGE "$AK" run true
	[[ "$output" == *"that is left out: [sandbox] dockerfile"* ]]
	ak config trust 2>/dev/null
	run as env -u AGENTKERNEL_IMAGE "$AK" run cat /g
	[[ "$output" == *"RUN cat /f >/g"*one ]]
	run as env -u AGENTKERNEL_IMAGE "$AK" run cat /g
	says one
	echo two >f
	run as env -u AGENTKERNEL_IMAGE "$AK" run cat /g
	[[ "$output" == *two ]]
}

@test "a_devcontainer_says_what_the_sandbox_is" {
	as mkdir -p dev/.devcontainer
	printf 'FROM base:1\nARG V\nRUN echo "$V" >/v\n' >dev/.devcontainer/Dockerfile
	cat >dev/.devcontainer/devcontainer.json <<-'END'
	// of a project
	{
		"build": { "dockerfile": "Dockerfile", "args": { "V": "7" } },
		"containerEnv": { "WHERE": "${localWorkspaceFolderBasename}", },
		"features": {},
		"postCreateCommand": ["sh", "-c", "echo made >/tmp/made"],
		"customizations": { "vscode": {} }
	}
	END
	give dev dev/.devcontainer dev/.devcontainer/*
	cd dev
	ak create dev-$$ --devcontainer 2>/dev/null
	ak start dev-$$
	run ak exec dev-$$ sh -c 'cat /v /tmp/made; echo $WHERE; pwd'
	says $'7\nmade\ndev\n'"$PWD"
	ak remove -f dev-$$
	sed -i 's|"features": {}|"features": {"ghcr.io/x/node:1": {}}|' .devcontainer/devcontainer.json
	run ak create dev-$$ --devcontainer
	[[ "$output" == *"devcontainer.json:5:"*": the feature 'ghcr.io/x/node:1' is not installed"* ]]
}

@test "an_address_is_fetched_through_the_gate_and_its_digest_compared" {
	[[ "$BUILD" != */san* ]] || [ "${AS:-root}" = root ] || skip "a program with sanitizers needs more addresses than the limit leaves it"
	put thing.txt content
	digest=sha256:$(sha256sum ctx/thing.txt | cut -d' ' -f1)
	python3 -u -m http.server --bind 127.0.0.1 --directory ctx 0 >port 2>&1 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line port 'port [0-9]'
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' port | head -n 1)
	printf 'FROM base:1\nADD --checksum=%s --chmod=644 http://host.agentkernel.internal:%s/thing.txt /d/\n' "$digest" "$port" | dockerfile
	run ak build ctx
	[[ "$output" == *"ADD: the network policy denied host.agentkernel.internal"* ]] || { echo "$output"; false; }
	ak build --allow-host "host.agentkernel.internal:$port" -t fetched:1 ctx 2>/dev/null
	run in_image fetched:1 cat /d/thing.txt
	says content
	printf 'FROM base:1\nADD --checksum=sha256:%064d http://host.agentkernel.internal:%s/thing.txt /d/\n' 0 "$port" | dockerfile
	run ak build --allow-host "host.agentkernel.internal:$port" ctx
	[[ "$output" == *"its digest is $digest, not sha256:0000"* ]]
}

@test "a_repository_is_cloned_in_a_sandbox" {
	git init -q repo
	mkdir repo/app
	printf 'FROM base:1\nCOPY . /src\nRUN ls -A /src >/list\n' >repo/app/Dockerfile
	echo x >repo/app/f
	git -C repo add -A
	git -C repo -c user.name=a -c user.email=a@b commit -qm x
	git clone -q --bare repo repo.git
	git -C repo.git update-server-info
	python3 -u -m http.server --bind 127.0.0.1 0 >port 2>&1 3>&- &
	echo $! >>"$SHARED/pids"
	wait_for_line port 'port [0-9]'
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' port | head -n 1)
	address=http://host.agentkernel.internal:$port/repo.git#HEAD:app
	run ak build "$address"
	[[ "$output" == *"the network policy denied host.agentkernel.internal"* ]]
	ak build --allow-host "host.agentkernel.internal:$port" -t cloned:1 "$address" 2>/dev/null
	run in_image cloned:1 cat /list
	says $'Dockerfile\nf'
	[ -z "$(find "$STATE/build-contexts" -mindepth 1)" ]
}
