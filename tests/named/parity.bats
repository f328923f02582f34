#!/usr/bin/env bats
# An operation has the same result from the command line, over MCP and over HTTP.

load helpers

session() {
	as python3 "$TOP/tests/named/mcp.py" "$AK" "$@" 3>&-
}

# everywhere OPTION... -- COMMAND: its output from the command line, in a new sandbox over MCP, with
# and without files, and in a named one.
everywhere() {
	local options=() expected
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	expected=$(ak run -i host "${options[@]}" sh -c "$2" 2>/dev/null)
	run session -i host "${options[@]}" -- sandbox_run "{\"command\":\"$2\"}" sandbox_run "{\"command\":\"$2\",\"files\":{\"/tmp/unused\":\"\"}}" \
		sandbox_create '{"name":"one"}' sandbox_exec "{\"name\":\"one\",\"command\":\"$2\"}" sandbox_remove '{"name":"one"}'
	[ "$(grep -cx "$expected" <<<"$output")" = 3 ] || { echo "expected $expected, got: $output"; return 1; }
}

@test "[sandbox] init runs first, whoever asks" {
	mkdir project && cd project
	give .
	printf '[sandbox]\ninit = "echo made-by-init >/tmp/init"\n' >agentkernel.toml
	everywhere --workspace -- 'cat /tmp/init'
}

@test "--workspace --clone is a clone, whoever asks" {
	mkdir project && give project && cd project
	as git init -q . && as sh -c 'echo in-the-clone >file' && as git add file && as git -c user.name=a -c user.email=a@example.org commit -qm one
	everywhere --workspace --clone -- 'cat file'
	[ -z "$(git status --porcelain 2>/dev/null)" ]
}

# bats test_tags=once
@test "each operation does and refuses the same through the library, the command line, MCP and HTTP" {
	cp "$BUILD/libcall" "$BUILD"/libagentkernel.so.* "$SHARED/"
	mkdir box && give box && cd box
	field=
	[[ $BUILD != */testing ]] || field=field # what only the test build's table has (policy/fields.def)
	# shellcheck disable=SC2086 # a word or none
	run as timeout 300 python3 "$TOP/tests/named/parity.py" "$AK" "$SHARED/libcall" $field 3>&-
	[[ $output =~ ^"same: "[0-9]+" operations"$ ]] || { echo "$output"; return 1; }
}

# bats test_tags=once
@test "an agent's task through the library meets no refusal" {
	cp "$BUILD/libcall" "$BUILD"/libagentkernel.so.* "$SHARED/"
	mkdir task && give task && cd task
	run as timeout 300 python3 "$TOP/tests/named/agenttask.py" "$AK" "$SHARED/libcall" 3>&-
	[ "$output" = "done" ] || { echo "$output"; return 1; }
}

@test "a command that fails for want of the project is told that it is not visible, also in a call" {
	mkdir project && give project && cd project
	echo 'print(1)' >main.py
	touch ../outside .hidden
	run session -i host -- sandbox_run '{"command":["python3","main.py"]}' sandbox_run '{"command":["false","../outside",".hidden"]}' sandbox_run '{"command":["true","main.py"]}'
	[[ "${lines[*]}" == *"'main.py' is in this directory, which is not visible inside (add files to the call, or the user's option --workspace)"* ]] || { echo "$output"; return 1; }
	[ "$(grep -c 'is in this directory' <<<"$output")" -eq 1 ] || { echo "$output"; return 1; } # not of files elsewhere, nor where all went well
	run session -i host --workspace -- sandbox_run '{"command":["python3","main.py"]}' sandbox_run '{"command":["false","main.py"]}'
	[[ "$output" != *"not visible"* ]] || { echo "$output"; return 1; }
	as sh -c 'echo "print(1)" >"$HOME/main.py"' # a home directory is never a workspace
	cd "$SHARED/home"
	run session -i host -- sandbox_run '{"command":["python3","main.py"]}'
	as sh -c 'rm "$HOME/main.py"'
	[[ "$output" != *"not visible"* ]] || { echo "$output"; return 1; }
}
