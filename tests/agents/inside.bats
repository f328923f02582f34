#!/usr/bin/env bats
# The real agents working in their sandboxes: the model (model.py) makes them edit a file of their
# project and run a command, and a second run continues the first one. Everything but the model is
# real, and the agents reach the model through the gate.
# shellcheck disable=SC2154,SC2034,SC2016
load helpers

setup_model() {
	start_model
	URL=http://host.agentkernel.internal:$MODEL
	CODEX=(-c openai_base_url="$URL/v1")
	echo old >file
	own file
}

# inside AGENT [ARG...]: runs it in its sandbox, allowed to reach the model
inside() {
	local agent=$1
	shift
	ak agent run --allow-host "localhost:$MODEL" -e "ANTHROPIC_BASE_URL=$URL" -e "GOOGLE_GEMINI_BASE_URL=$URL" \
		-e OPENCODE_CONFIG_CONTENT="$(opencode_config)" "$agent" . -- "$@"
}

# worked ANSWER: the last run printed it, the file was changed by its owner, and nothing else was
# created
worked() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	has "$1"
	[ "$(cat file)" = new ] || { echo "not edited: $output"; return 1; }
	[ "$(stat -c %u file)" = "$(stat -c %u .)" ]
	[ "$(ls -A)" = file ]
}

# goes_on ANSWER CALL: the last run sent what was said in the run before
goes_on() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	has "it was remembered"
	run sent prompts
	has "edit the file"
	has "what was that"
	run sent answers
	has "$1"
	run sent calls
	has "$2"
}

@test "claude edits a file, runs a command, and --continue goes on" {
	setup_model
	turns "[{\"call\": \"Read\", \"with\": {\"file_path\": \"$PWD/file\"}},
		{\"call\": \"Edit\", \"with\": {\"file_path\": \"$PWD/file\", \"old_string\": \"old\", \"new_string\": \"new\"}},
		{\"call\": \"Bash\", \"with\": {\"command\": \"cat file; echo in \$(hostname)\"}},
		{\"say\": \"it says {result}\"}]"
	run inside claude --dangerously-skip-permissions -p "edit the file"
	worked "it says new
in claude-project-"
	run sent key
	says sk-ant-none
	turns '[{"say": "it was remembered"}]'
	run inside claude --continue -p "what was that"
	goes_on "it says new" Edit
}

@test "codex edits a file, runs a command, and exec resume goes on" {
	setup_model
	turns '[{"call": "exec", "with": "text(await tools.apply_patch(\"*** Begin Patch\\n*** Update File: file\\n@@\\n-old\\n+new\\n*** End Patch\\n\"))"},
		{"call": "exec", "with": "text((await tools.exec_command({cmd: \"cat file; echo in $(hostname)\"})).output)"},
		{"say": "it says {result}"}]'
	run inside codex exec --skip-git-repo-check "${CODEX[@]}" "edit the file"
	worked "new
in codex-project-"
	run sent key
	says "Bearer sk-none"
	turns '[{"say": "it was remembered"}]'
	run inside codex exec --skip-git-repo-check "${CODEX[@]}" resume --last "what was that"
	goes_on "it says Script completed" exec
}

@test "gemini edits a file, runs a command, and --resume goes on" {
	setup_model
	turns '[{"call": "read_file", "with": {"file_path": "file"}},
		{"call": "replace", "with": {"file_path": "file", "old_string": "old", "new_string": "new", "instruction": "say new instead of old"}},
		{"call": "run_shell_command", "with": {"command": "cat file; hostname", "description": "look"}},
		{"say": "it says {result}"}]'
	run inside gemini --skip-trust -y -p "edit the file"
	worked "new
gemini-project-"
	run sent key
	says none
	turns '[{"say": "it was remembered"}]'
	run inside gemini --skip-trust -r latest -p "what was that"
	goes_on "Output: new" replace
}

@test "opencode edits a file, runs a command, and --continue goes on" {
	setup_model
	turns "[{\"call\": \"read\", \"with\": {\"filePath\": \"$PWD/file\"}},
		{\"call\": \"edit\", \"with\": {\"filePath\": \"$PWD/file\", \"oldString\": \"old\", \"newString\": \"new\"}},
		{\"call\": \"bash\", \"with\": {\"command\": \"cat file; hostname\", \"description\": \"look\"}},
		{\"say\": \"it says {result}\"}]"
	run inside opencode run "edit the file"
	worked "it says new
opencode-project-"
	run sent key
	says sk-ant-none
	turns '[{"say": "it was remembered"}]'
	run inside opencode run --continue "what was that"
	goes_on "it says new" edit
}

@test "without a rule for the model nobody reaches it" {
	setup_model
	turns '[{"say": "reached"}]'
	# codex waits until there is a network
	ak agent run codex . -- exec --skip-git-repo-check "${CODEX[@]}" hello >"$W/out" 2>&1 &
	for _ in $(seq 100); do
		name=$(ak list --all --quiet)
		[ -n "$name" ] && ak network log "$name" >"$W/network" 2>&1 && grep -q "denied.* host.agentkernel.internal " "$W/network" && break
		sleep 0.2
	done
	ak stop --timeout 1s "$name"
	wait $! || true
	grep "denied.* host.agentkernel.internal " "$W/network" || { cat "$W/network" "$W/out"; return 1; }
	[ ! -s "$W/log" ]
	ak remove "$name"
	run inside codex exec --skip-git-repo-check "${CODEX[@]}" hello # control
	has reached
}
