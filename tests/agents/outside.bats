#!/usr/bin/env bats
# The real agents outside, with agentkernel as their MCP server, set up by `plugin install`: they
# list it, and the model (model.py) makes them call its tools. The tools' results are in the agent's
# last answer, and in what it sent to the model.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
load helpers

setup_model() {
	start_model
	URL=http://127.0.0.1:$MODEL
	GIVEN=("ANTHROPIC_BASE_URL=$URL" "GOOGLE_GEMINI_BASE_URL=$URL" OPENCODE_CONFIG_CONTENT="$(opencode_config)")
	CODEX=(exec --skip-git-repo-check -c model_provider=mock -c model_providers.mock.name=mock
		-c model_providers.mock.wire_api=responses -c model_providers.mock.env_key=OPENAI_API_KEY
		-c model_providers.mock.base_url="$URL/v1")
	# selects the key, as a user would
	mkdir -p "$W/home/.gemini"
	echo '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }' >"$W/home/.gemini/settings.json"
	own "$W/home"
}

# what a user does when codex asks whether to trust the project
trust_codex() {
	mkdir -p "$W/home/.codex"
	printf '[projects."%s"]\ntrust_level = "trusted"\n' "$PWD" >>"$W/home/.codex/config.toml"
	own "$W/home/.codex"
}

# A command that prints where it runs: nothing outside has that host name.
RUN='"command": ["sh", "-c", "echo $((6 * 7)) in $(hostname)"], "image": "host", "network": false'
ONE='[{"call": "sandbox_run", "with": {'$RUN'}}, {"say": "the tool says {result}"}]'
SEVERAL='[{"call": "sandbox_create", "with": {"name": "box", "image": "host"}},
	{"call": "sandbox_file_write", "with": {"name": "box", "path": "/root/notes", "content": "written before"}},
	{"call": "sandbox_exec", "with": {"name": "box", "command": ["sh", "-c", "cat /root/notes; echo in $(hostname)"]}},
	{"call": "sandbox_remove", "with": {"name": "box"}},
	{"say": "the tool says {result}"}]'

# script JSON: the same calls for codex, whose model writes JavaScript
script() {
	python3 -c 'import json, sys
turns = json.loads(sys.argv[1])
for turn in turns:
	if "call" in turn:
		turn["with"] = "text((await tools.mcp__agentkernel__%s(%s)).content[0].text)" % (turn["call"], json.dumps(turn["with"]))
		turn["call"] = "exec"
print(json.dumps(turns))' "$1"
}

# ran_once: a new sandbox printed this, and the agent passed it on
ran_once() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	has "the tool says"
	has "42 in sandbox"
	run sent results
	has "42 in sandbox"
}

# kept_one: the steps gave the expected results in order, and the sandbox is gone
kept_one() {
	[ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
	run sent results
	has "written before"
	has "in box"
	[ -z "$(ak list --all --quiet)" ] || { echo "left: $(ak list --all) after: $output"; return 1; }
	ak audit --json >"$W/audit"
	grep -q '"box"' "$W/audit"
}

@test "claude lists the server, and calls its tools" {
	setup_model
	ak plugin install claude
	run agent claude mcp list
	has "agentkernel: agentkernel mcp server"
	turns "$ONE"
	run agent claude --allowedTools mcp__agentkernel -p "use a sandbox"
	ran_once
	turns "$SEVERAL"
	run agent claude --allowedTools mcp__agentkernel -p "use a sandbox"
	kept_one
	turns "$ONE"
	run agent claude -p "use a sandbox" # as plugin install announced
	has "requested permissions to use mcp__agentkernel__sandbox_run"
}

@test "codex lists the server of a trusted project, and calls its tools as --approve says" {
	setup_model
	ak plugin install codex
	run agent codex mcp list
	has "No MCP servers configured" # not trusted yet
	trust_codex
	run agent codex mcp list
	has "agentkernel  agentkernel  mcp server"
	turns "$(script "$ONE")"
	run agent codex "${CODEX[@]}" "use a sandbox" # as plugin install announced
	has "requires approval"
	ak plugin install codex --approve
	turns "$(script "$ONE")"
	run agent codex "${CODEX[@]}" "use a sandbox"
	ran_once
	turns "$(script "$SEVERAL")"
	run agent codex "${CODEX[@]}" "use a sandbox"
	kept_one
}

@test "gemini lists the server of a trusted folder, and calls its tools as --approve says" {
	setup_model
	ak plugin install gemini
	run agent gemini mcp list
	has "agentkernel mcp server (stdio) - Disabled" # not trusted yet
	turns "$ONE"
	run agent gemini --skip-trust -y -p "use a sandbox"
	has "no tool sandbox_run among"
	GIVEN+=(GEMINI_CLI_TRUST_WORKSPACE=true)
	run agent gemini mcp list
	has "agentkernel mcp server (stdio) - Connected"
	turns "$ONE"
	run agent gemini -p "use a sandbox" # as plugin install announced
	has "no tool sandbox_run among"
	ak plugin install gemini --approve
	turns "$ONE"
	run agent gemini -p "use a sandbox"
	ran_once
	turns "$SEVERAL"
	run agent gemini -p "use a sandbox"
	kept_one
}

@test "opencode lists the server, and calls its tools" {
	setup_model
	ak plugin install opencode
	run agent opencode mcp list
	has "agentkernel"
	has "connected"
	turns "$ONE"
	run agent opencode run "use a sandbox"
	ran_once
	turns "$SEVERAL"
	run agent opencode run "use a sandbox"
	kept_one
}

@test "installed for all projects, each has it in any directory" {
	setup_model
	ak plugin install claude codex gemini --global --approve
	mkdir "$W/project/elsewhere"
	own "$W/project"
	cd elsewhere
	run agent claude mcp list
	has "agentkernel: agentkernel mcp server - ✔ Connected"
	run agent codex mcp list
	has "agentkernel  agentkernel  mcp server"
	turns "$ONE"
	run agent claude --allowedTools mcp__agentkernel -p "use a sandbox"
	ran_once
	turns "$(script "$ONE")"
	run agent codex "${CODEX[@]}" "use a sandbox"
	ran_once
	GIVEN+=(GEMINI_CLI_TRUST_WORKSPACE=true)
	turns "$ONE"
	run agent gemini -p "use a sandbox"
	ran_once
	[ -z "$(ls -A)" ]
}
