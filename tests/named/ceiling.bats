#!/usr/bin/env bats
# What a server's options forbid, no caller gets: neither by a preset nor by an image, and a project's file
# gets no more than the user's own words.

load helpers

prepare_file() {
	as bash -c "cp -a '$SHARED/import/bb' '$SHARED/import/evil' && printf 'root:x:0:0::/:/bin/sh\nnode:x:0:0::/:/bin/sh\n' >'$SHARED/import/evil/etc/passwd'
		printf 'root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/:/bin/sh\n' >'$SHARED/import/bb/etc/passwd'" &&
		ak image import --quiet bb "$SHARED/import/bb" >/dev/null && ak image import --quiet evil "$SHARED/import/evil" >/dev/null
}

# session OPTION... -- TOOL JSON...
session() {
	as python3 "$TOP/tests/named/mcp.py" "$AK" "$@" 3>&-
}

ID='"command":["id","-u"]'

# Whoever has one id cannot be another user: then all of it is refused, which is as good.
needs_ids() {
	[ "${AS:-root}" != user ] || skip "needs more than one id"
}

@test "a user that the server names stays, whatever preset a caller asks for" {
	needs_ids
	for preset in '"profile":"moderate"' '"compatibility_mode":"native"' '"network":false'; do
		run session -i bb --user 1000 -- sandbox_run "{$ID,$preset}"
		[[ $output == *1000* && $output != *$'\n0'* ]] || { echo "$preset: $output"; return 1; }
	done
	run session -i bb --user node -- sandbox_run "{$ID,\"profile\":\"moderate\"}"
	[[ $output == *1000* ]]
	run session -i bb -- sandbox_run "{$ID}" # the control: without --user it is root
	[[ $output == *0* && $output != *1000* ]]
}

@test "no call of a server with a user gets root in a named sandbox" {
	needs_ids
	run session -i bb --user 1000 -- sandbox_create '{"name":"held","profile":"moderate"}' \
		sandbox_exec "{\"name\":\"held\",$ID}" sandbox_exec "{\"name\":\"held\",$ID,\"user\":\"root\"}" \
		sandbox_exec "{\"name\":\"held\",$ID,\"user\":\"0\"}" sandbox_exec "{\"name\":\"held\",$ID,\"user\":\"1000\"}"
	[[ ${lines[*]} == *"1000"*"refused: "*"the server does not let you choose one"*"refused: "*"1000"* ]] || { echo "$output"; return 1; }
	ak remove -f held
}

@test "an image that calls another user root does not make one of it" {
	needs_ids
	run session -i bb --user node -- sandbox_run "{$ID,\"image\":\"evil\"}"
	[[ $output == "refused: "*"user 'node' is root in image 'evil', which is not allowed"* ]]
}

@test "a project's file cannot raise itself to root by an image or a profile" {
	needs_ids
	mkdir -p "$SHARED/home/.config/agentkernel"
	printf '[sandbox]\nimage = "bb"\nuser = "1000"\n' >"$SHARED/home/.config/agentkernel/config.toml"
	[ "$(as env -u AGENTKERNEL_IMAGE "$AK" run id -u)" = 1000 ]
	for text in '[security]\nprofile = "moderate"' '[security]\nprofile = "permissive"' '[sandbox]\nuser = "root"' '[sandbox]\nuser = "node"\nimage = "evil"' '[agent]\ncompatibility_mode = "native"'; do
		# shellcheck disable=SC2059 # the text is the format
		printf "$text\n" >agentkernel.toml
		run as env -u AGENTKERNEL_IMAGE "$AK" run id -u
		[[ $status -eq 125 || ${lines[-1]} == 1000 ]] || { echo "$text: $output"; return 1; }
	done
	rm "$SHARED/home/.config/agentkernel/config.toml"
}

# An image that is only detected is a default: without a registry the sandbox is the host's, and has to be usable.
@test "an agent's task meets no refusal in an empty directory, a Node, a Python and a C project, without a registry" {
	for file in "" package.json requirements.txt Makefile; do
		rm -rf "$W/project" "$W/home"
		mkdir "$W/project" "$W/home"
		give "$W/project" "$W/home"
		cd "$W/project"
		[ -z "$file" ] || as touch "$file"
		run as env -u AGENTKERNEL_IMAGE HOME="$W/home" AGENTKERNEL_HOME="$W/home/state" http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 python3 "$TOP/tests/named/agenttask.py" "$AK"
		[ "$output" = "done" ] || { echo "$file: $output"; false; }
	done
}
