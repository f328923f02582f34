#!/usr/bin/env bats
# No caller gets what a server's options forbid, neither through a preset nor through an image, and
# a project's file allows no more than the user's own settings.

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

# With one id there is no other user: then everything is refused, which is also correct.
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
	run session -i bb -- sandbox_run "{$ID}" # control: without --user it is root
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

# An image that is only detected is a default: without a registry the sandbox uses the host's
# programs, and must be usable.
agents_task() {
	local files=("" package.json requirements.txt Makefile)
	[ "${AS:-root}" = root ] || files=("" package.json)
	for file in "${files[@]}"; do
		rm -rf "$W/project" "$W/home"
		mkdir "$W/project" "$W/home"
		give "$W/project" "$W/home"
		cd "$W/project"
		[ -z "$file" ] || as touch "$file"
		as mkdir "$W/home/state"
		run as env -u AGENTKERNEL_IMAGE HOME="$W/home" AGENTKERNEL_HOME="$W/home/state" http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 python3 "$TOP/tests/named/agenttask.py" "$AK" "$1" 3>&-
		[ "$output" = "done" ] || { echo "$file: $output"; return 1; }
	done
}

@test "an agent's task over MCP meets no refusal in an empty directory, a Node, a Python and a C project, without a registry" {
	agents_task mcp
}

# bats test_tags=once
@test "nor does it over HTTP" {
	agents_task http
}

TRUE='"command":["true"]'

@test "every preset works on every server: what the server does not allow is left out and named" {
	for options in "" "--no-network" "--profile restrictive" "--network-policy deny --allow-host good.example"; do
		for preset in '"profile":"moderate"' '"profile":"permissive"' '"compatibility_mode":"claude"' '"compatibility_mode":"codex"' '"compatibility_mode":"gemini"' '"network":true'; do
			# shellcheck disable=SC2086 # words
			run session -i bb $options -- sandbox_run "{$TRUE,$preset}" sandbox_create "{\"name\":\"preset\",$preset}" sandbox_exec "{\"name\":\"preset\",$TRUE}" sandbox_remove '{"name":"preset"}'
			[[ $output != *refused:* ]] || { echo "$options $preset: $output"; return 1; }
		done
	done
	run session -i bb --no-network -- sandbox_run '{"command":"ls /sys/class/net","profile":"moderate"}'
	[[ $output == *"not granted: profile: network = 'through the gate' goes beyond 'none' (the server)"* && $output != *eth* ]]
	# from the home directory, which cannot be a workspace
	cd "$SHARED/home"
	run session -i bb -- sandbox_run "{$TRUE,\"compatibility_mode\":\"claude\"}"
	[[ $output == "exit code 0"*"not granted: compatibility_mode: workspace"* ]]
}

@test "a limit that the user has not set may be raised to a maximum, and one that is set may not" {
	run session -i bb -- sandbox_run "{$TRUE,\"pids\":2000}" sandbox_run "{$TRUE,\"pids\":9000}" sandbox_run "{$TRUE,\"memory\":\"900GiB\"}"
	[[ ${lines[0]} == "exit code 0"* && $output == *"refused: pids: pids = '9000' goes beyond '8192' (the maximum for callers)"*"refused: memory: memory = '900 GiB' goes beyond '"* ]]
	run session -i bb --memory 1GiB -- sandbox_run "{$TRUE,\"memory\":\"3GiB\"}"
	[[ $output == "refused: "*"goes beyond '1 GiB' (the server)"* ]]
	run session -i bb --memory 1GiB --max-memory 4GiB -- sandbox_run "{$TRUE,\"memory\":\"3GiB\"}" sandbox_run "{$TRUE,\"memory\":\"5GiB\"}"
	[[ ${lines[0]} == "exit code 0"* && $output == *"refused: memory: memory = '5 GiB' goes beyond '4 GiB'"* ]]
	run ak mcp server --max-memory lots
	[[ $status -eq 125 && $output == *"--max-memory: "* ]]
}

@test "what callers may ask for is also a table of the user's own file, and of no project's" {
	mkdir -p "$SHARED/home/.config/agentkernel"
	printf '[callers]\nmemory = "64MiB"\nhost = false\n' >"$SHARED/home/.config/agentkernel/config.toml"
	run session -i bb -- sandbox_run "{$TRUE,\"memory\":\"65MiB\"}" sandbox_run "{$TRUE,\"memory\":\"60MiB\"}" sandbox_run "{$TRUE,\"image\":\"host\"}"
	[[ ${lines[0]} == "refused: "*"goes beyond '64 MiB' (~/.config/agentkernel/config.toml:2)"* && ${lines[1]} == "exit code 0"* && ${lines[2]} == "refused: image: "* ]] || { echo "$output"; return 1; }
	run session -i bb --host-image -- sandbox_run "{$TRUE,\"image\":\"host\"}"
	[[ $output == "exit code 0"* ]]
	rm "$SHARED/home/.config/agentkernel/config.toml"
	printf '[callers]\nmemory = "64MiB"\n' >agentkernel.toml
	run ak config check
	[[ $status -ne 0 && $output == *"only your own config.toml can say what callers may ask for"* ]]
}

@test "without the host image a sandbox does not fall back to it" {
	touch package.json
	run as env -u AGENTKERNEL_IMAGE http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 python3 "$TOP/tests/named/mcp.py" "$AK" --no-host-image -- sandbox_create '{"name":"none"}' 3>&-
	[[ $output == "refused: "* ]]
	run ak info none
	[ "$status" -ne 0 ]
}

@test "callers use what they made, also if the user lowers the ceiling; others of that owner may only end it" {
	session -i bb -- sandbox_create '{"name":"mine"}' sandbox_checkpoint '{"name":"mine","comment":"mark"}'
	mkdir -p "$SHARED/home/.config/agentkernel"
	printf '[security]\nprofile = "restrictive"\n' >"$SHARED/home/.config/agentkernel/config.toml"
	run session -i bb -- sandbox_exec "{\"name\":\"mine\",$TRUE}" sandbox_restore '{"name":"mine","id":"mark"}' sandbox_fork '{"name":"mine","new_name":"mine-2"}' sandbox_remove '{"name":"mine-2"}'
	[[ $output != *refused:* ]] || { echo "$output"; return 1; }
	rm "$SHARED/home/.config/agentkernel/config.toml"
	run session -i bb --no-network -- sandbox_exec "{\"name\":\"mine\",$TRUE}" sandbox_fork '{"name":"mine","new_name":"mine-2"}' sandbox_file_read '{"name":"mine","path":"/etc/passwd"}' sandbox_stop '{"name":"mine"}' sandbox_start '{"name":"mine"}' sandbox_remove '{"name":"mine"}'
	[[ ${lines[0]} == refused:*"may do more than you"* && ${lines[1]} == refused:* && ${lines[2]} == refused:* && ${lines[3]} == *stopped* && ${lines[4]} == refused:* && ${lines[5]} == *removed* ]] || { echo "$output"; return 1; }
	run ak info mine
	[ "$status" -ne 0 ]
}

@test "what the user has made beyond the ceiling, no caller uses, stops or removes" {
	ak create -i bb --network users
	run session -i bb --no-network -- sandbox_exec "{\"name\":\"users\",$TRUE}" sandbox_stop '{"name":"users"}' sandbox_remove '{"name":"users"}'
	[[ ${lines[0]} == refused:* && ${lines[1]} == refused:* && ${lines[2]} == refused:* ]] || { echo "$output"; return 1; }
	ak remove -f users
}

@test "callers may also set user, limits and hosts of a sandbox, within the ceiling" {
	run session -i bb -- sandbox_run '{"command":"id -u; ulimit -n; touch /x","user":"1000","nofile":99,"read_only":true}' \
		sandbox_run "{$TRUE,\"pids\":9000}" sandbox_run "{$TRUE,\"allow_host\":[\"10.0.0.1\"]}" \
		sandbox_run "{$TRUE,\"network_policy\":\"deny\",\"allow_host\":[\"good.example\"],\"disk\":\"64MiB\",\"cpu_time\":\"30s\"}" \
		sandbox_run "{$TRUE,\"volumes\":[\"/:/host\"]}" sandbox_run "{$TRUE,\"mount\":[\"/:/host\"]}"
	if [ "${AS:-root}" != user ]; then
		[[ $output == *$'\n1000\n99\n'*"Read-only file system"* ]] || { echo "$output"; return 1; }
	fi
	[[ $output == *"refused: pids: pids = '9000' goes beyond '8192'"*"refused: allow_host: allow-host = '10.0.0.1' goes beyond"*$'\nexit code 0'*"refused: "*volumes*"refused: "*mount* ]] || { echo "$output"; return 1; }
	run session -i bb --user 1000 -- sandbox_run '{"command":["true"],"user":"root"}'
	[[ $output == "refused: user: "*"goes beyond"* ]] || [ "${AS:-root}" = user ]
	run session -i bb --network-policy deny --allow-host good.example -- sandbox_run "{$TRUE,\"allow_host\":[\"evil.example\"]}" sandbox_run "{$TRUE,\"network_policy\":\"allow\"}"
	[[ ${lines[0]} == "refused: allow_host: "* && ${lines[1]} == "refused: network_policy: "* ]]
}
