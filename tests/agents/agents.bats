#!/usr/bin/env bats
# The real agents, as npm installs them, each in its sandbox: do they start, and which service do
# they look up first? There is no key and no connection to their services here.
load helpers

# starts AGENT VERSION HELP: --version and --help print what is expected, from inside
starts() {
	run --separate-stderr ak agent run "$1" -- --version
	[ "$status" -eq 0 ]
	says "$2"
	[ -z "$stderr" ] || { echo "$stderr"; return 1; }
	run --separate-stderr ak agent run "$1" -- --help
	[ "$status" -eq 0 ]
	[[ "$output$stderr" == *"$3"* ]]
	[ -z "$(ls -A)" ] # and the project stays empty
}

# looks_for HOST COMMAND...: the agent looks up that name after a while
looks_for() {
	local host=$1 name agent=$2
	shift
	ak agent run "$@" >"$W/out" 2>&1 &
	for _ in $(seq 150); do
		name=$(ak list --all --quiet)
		[ -n "$name" ] && ak network log "$name" >"$W/log" 2>/dev/null && grep -q " $host " "$W/log" && break
		sleep 0.2
	done
	ak stop --timeout 1s "$name" || true
	wait $! || true
	grep " $host " "$W/log" || { cat "$W/log" "$W/out"; return 1; }
	[[ "$name" == "$agent-project-"* ]]
}

@test "claude starts, and looks for its service" {
	starts claude "$(version @anthropic-ai/claude-code) (Claude Code)" "Usage: claude"
	run looks_for api.anthropic.com claude -- -p hello
	[ "$status" -eq 0 ]
	[[ "$output" == *" lookup "* ]] # allowed, and looked up outside
}

@test "codex starts, and looks for its service" {
	starts codex "codex-cli $(version @openai/codex)" "Codex CLI"
	run looks_for api.openai.com codex -- exec --skip-git-repo-check hello
	[ "$status" -eq 0 ]
	[[ "$output" == *" lookup "* ]]
}

@test "gemini starts, and looks for its service" {
	starts gemini "$(version @google/gemini-cli)" "Usage: gemini"
	run looks_for generativelanguage.googleapis.com gemini -- --skip-trust -p hello
	[ "$status" -eq 0 ]
	[[ "$output" == *" lookup "* ]]
}

@test "opencode starts, with the project's own settings where there are any" {
	starts opencode "$(version opencode-ai)" "opencode"
	run ak agent run opencode -- debug config
	[ "$status" -eq 0 ]
	for name in opencode.json opencode.jsonc; do
		echo '{ "username": "from-the-project" }' >"$name"
		run ak agent run opencode -- debug config
		[ "$status" -eq 0 ]
		[[ "$output" == *from-the-project* ]]
		rm "$name"
	done
}
