#!/usr/bin/env bats
# agent list and run, with shell scripts as agents: what they get, what is kept, what ends when. The
# real agents are in tests/agents.
load helpers
bats_require_minimum_version 1.5.0

# The script prints what it sees. It is in a home directory, as npm installs it there, with an
# interpreter that exists only there.
setup_file() {
	load_shared
	home=$SHARED/agents
	mkdir -p "$home/bin" "$home/lib/node_modules/pkg/bin" "$home/node/bin"
	cp /bin/sh "$home/node/bin/fakenode"
	cat >"$home/lib/node_modules/pkg/bin/cli.js" <<-'SH'
	#!/usr/bin/env fakenode
	case "$1" in
	status) exit "$2" ;;
	env) env ;;
	keep) echo "$2" >>~/kept; cat ~/kept ;;
	wait) touch "$2.up"; until [ -e "$2.go" ]; do sleep 0.05; done ;;
	run) shift; exec "$@" ;;
	*) echo "agent in $PWD home $HOME args $# $*" ;;
	esac
	SH
	chmod 755 "$home/lib/node_modules/pkg/bin/cli.js"
	for agent in claude codex gemini opencode; do
		ln -s ../lib/node_modules/pkg/bin/cli.js "$home/bin/$agent"
	done
	chmod -R a+rX "$home"
}

teardown() {
	for name in $(ak list --all --quiet); do
		ak remove -f "$name" || true
	done
}

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	mkdir "$W/project" "$W/home"
	own "$W"
	cd "$W/project" || return 1
}

own() {
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$@"
}

# ak COMMAND...: as the caller of this round, with its own home and state and the keys in GIVEN
ak() {
	as env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY -u GEMINI_API_KEY -u GOOGLE_API_KEY -u AGENTKERNEL_IMAGE \
		PATH="$SHARED/agents/bin:$SHARED/agents/node/bin:/usr/local/bin:/usr/bin:/bin" \
		HOME="$W/home" AGENTKERNEL_HOME="$W/home/state" "${GIVEN[@]}" "$AK" "$@" 3>&-
}
GIVEN=(X=1)

state() {
	ak list --all --json | python3 -c 'import json, sys
print(" ".join(s["name"] + ":" + s["state"] for s in json.load(sys.stdin)))'
}

@test "an agent runs in its project, with a home of its own, and its status comes through" {
	run ak agent run claude
	says "agent in $W/project home /root args 0 "
	run ak agent run claude . -- --flag 'two  words' -- x
	says "agent in $W/project home /root args 4 --flag two  words -- x"
	run ak agent run codex "$W/project" -- status 7
	[ "$status" -eq 7 ]
	cd "$W"
	run ak agent run gemini project
	says "agent in $W/project home /root args 0 "
	run ak agent run codex project -- run touch made
	[ "$status" -eq 0 ]
	[ -e project/made ]
	[ "$(stat -c %u project/made)" = "$(stat -c %u project)" ]
}

@test "one sandbox is kept for each agent and project, stopped, and its home stays" {
	mkdir -p "$W/other" "$W/elsewhere/project"
	own "$W/other" "$W/elsewhere"
	run ak agent run claude -- keep one
	says one
	run ak agent run claude -- keep two
	says "one
two"
	run ak agent run claude "$W/other" -- keep three
	says three
	run ak agent run codex -- keep four
	says four
	run state
	[[ "$output" =~ ^claude-other-[0-9a-f]{8}:stopped\ claude-project-[0-9a-f]{8}:stopped\ codex-project-[0-9a-f]{8}:stopped$ ]]
	run ak agent run claude "$W/elsewhere/project" -- keep other # the same name in another directory
	says other
	run ak list --all --label agent=claude --quiet
	[ "${#lines[@]}" -eq 3 ]
	for name in $(ak list --all --quiet); do ak remove "$name"; done
	run ak agent run claude -- keep five
	says five
	ak remove "$(ak list --all --quiet)"
}

@test "its key is passed, and is nowhere on disk" {
	GIVEN=(ANTHROPIC_API_KEY=sk-ant-secret-value OPENAI_API_KEY=sk-openai-value MY_TOKEN=other-value)
	run ak agent run claude -- env
	[[ "$output" == *ANTHROPIC_API_KEY=sk-ant-secret-value* ]]
	[[ "$output" == *IS_SANDBOX=1* && "$output" == *DISABLE_AUTOUPDATER=1* ]]
	[[ "$output" != *openai* && "$output" != *other-value* ]]
	run ak agent run -e KEPT=kept-value codex -- env
	[[ "$output" == *OPENAI_API_KEY=sk-openai-value* && "$output" != *secret-value* ]]
	[[ "$output" == *CODEX_API_KEY=sk-openai-value* ]] # the variable that codex exec reads
	grep -r -a -q kept-value "$W" # control: a requested variable is stored
	run ak agent run opencode -- env
	[[ "$output" == *sk-ant-secret-value* && "$output" == *sk-openai-value* ]]
	run grep -r -a -l -e sk-ant-secret-value -e sk-openai-value "$W"
	[ "$status" -eq 1 ]
	says ""
	GIVEN=(OPENAI_API_KEY=sk-openai-value CODEX_API_KEY=sk-codex-value)
	run ak agent run codex -- env
	[[ "$output" == *OPENAI_API_KEY=sk-openai-value* && "$output" == *CODEX_API_KEY=sk-codex-value* ]]
	GIVEN=(X=1)
	run ak agent run claude -- env # not even for the next run
	[[ "$output" != *sk-ant* ]]
}

@test "its network is its mode's, and its home not the caller's" {
	echo secret >"$W/home/file"
	own "$W/home"
	run ak agent run claude -- run cat "$W/home/file"
	[ "$status" -ne 0 ]
	name=$(ak list --all --quiet)
	run ak network check "$name" api.anthropic.com:443
	[ "$status" -eq 0 ]
	run ak network check "$name" example.com:443
	[ "$status" -eq 1 ]
	for agent in claude codex gemini; do
		run ak agent run "$agent" -- run cat /proc/self/uid_map
		[ "$status" -eq 0 ]
	done
	run ak agent run codex -- run id -u # as in its mode
	says 1000
}

@test "codex finds that it is in a sandbox already, in a file of its own home that stays" {
	run ak agent run codex -- run sh -c 'cat ~/.codex/config.toml; stat -c %U:%a ~/.codex/config.toml; echo mine >~/.codex/config.toml'
	says "# agentkernel runs codex in a sandbox, in which codex cannot make one of its own
sandbox_mode = \"danger-full-access\"
user:600"
	run ak agent run codex -- run sh -c 'cat ~/.codex/config.toml; echo ~'
	says "mine
/home/user"
	run ak agent run claude -- run sh -c 'ls -A ~' # claude needs no such file
	says ""
	[ -z "$(ls -A .)" ]
	[ "$(ls -A "$W/home")" = state ]
}

@test "what codex is told inside is never written through a mount" {
	mkdir "$W/home/.codex"
	own "$W/home/.codex"
	run ak agent run --mount "$W/home/.codex:/home/user/.codex" codex -- run sh -c 'ls -A ~/.codex; touch ~/.codex/mine'
	says ""
	[ "$(ls -A "$W/home/.codex")" = mine ] # control: it could be written
}

@test "gemini is told which of its keys counts" {
	run ak agent run gemini -- run sh -c 'ls -A ~'
	says ""
	GIVEN=(GEMINI_API_KEY=x GOOGLE_API_KEY=y)
	run ak agent run gemini -- run sh -c 'cat ~/.gemini/settings.json; rm ~/.gemini/settings.json'
	says '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }'
	GIVEN=(GOOGLE_API_KEY=y)
	run ak agent run gemini -- run sh -c 'cat ~/.gemini/settings.json'
	says '{ "security": { "auth": { "selectedType": "vertex-ai" } } }'
}

@test "two at once share the sandbox, and it stops with the last" {
	ak agent run claude -- wait one &
	one=$!
	until [ -e one.up ]; do sleep 0.05; done
	ak agent run claude -- wait two &
	two=$!
	until [ -e two.up ]; do sleep 0.05; done
	[[ "$(state)" =~ ^claude-project-[0-9a-f]{8}:running$ ]]
	touch one.go
	wait "$one"
	[[ "$(state)" == *":running" ]]
	touch two.go
	wait "$two"
	[[ "$(state)" == *":stopped" ]]
}

@test "two that begin at the same time both get their answer" {
	for round in 1 2 3; do
		pids=()
		for i in 1 2 3; do
			ak agent run codex -- keep "$round$i" >"$W/out$i" 2>&1 &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid"; done
	done
	run ak agent run codex -- run sh -c 'sort ~/kept | tr "\n" " "'
	says "11 12 13 21 22 23 31 32 33 "
}

@test "a sandbox that was made with other options goes on as it was, and says so" {
	run ak agent run claude
	[ "${#lines[@]}" -eq 1 ] # without a message about it
	run ak agent run --memory 1G claude
	[[ "${lines[0]}" == "agentkernel: the sandbox claude-project-"*" was made with memory '2 GiB' and keeps it ('agentkernel remove -f claude-project-"* ]]
	[ "${#lines[@]}" -eq 2 ]
}

@test "the project's configuration counts: tightening at once, more with trust, init first" {
	cat >agentkernel.toml <<-'END'
	[sandbox]
	init = "echo ready >~/kept; pwd >>~/kept"
	[resources]
	pids = 77
	END
	own .
	run ak agent run claude -- keep x
	says "ready
$W/project
x"
	name=$(ak list --all --quiet)
	grep -a -q -x -z 'pids=77' "$W/home/state/sandboxes/$name/policy"
	ak remove "$name"
	echo 'security.mount_home = true' >agentkernel.toml
	own .
	run -0 ak agent run claude
	[[ "$output" == *"agentkernel.toml:1: home = "* ]]
	name=$(ak list --all --quiet)
	run grep -a -q -z '^home=' "$W/home/state/sandboxes/$name/policy"
	[ "$status" -ne 0 ] # it was left out
	ak remove "$name"
}

@test "what an agent does to its project's protected names comes to nothing" {
	cp "$BATS_TEST_DIRNAME/attack.py" attack.py
	own .
	run ak agent run --protect-new strict claude -- run python3 attack.py .claude .claude/settings.json .mcp.json .git
	[ "$status" -eq 0 ]
	[ "$(ls -A)" = attack.py ]
}

@test "mistakes are told in words" {
	run ak agent run
	fails_with 125 "an agent is missing: agentkernel agent run AGENT [DIR] [-- ARGS]"
	run ak agent run cluade
	fails_with 125 "no agent 'cluade' (use claude, codex, gemini or opencode)"
	run ak agent run claude . extra
	fails_with 125 "what is the agent's own follows '--': 'extra'"
	run ak agent run claude none
	fails_with 125 "'$W/project/none' does not exist"
	touch file
	ln -s . link
	run ak agent run claude file
	fails_with 125 "is not a directory"
	run ak agent run claude link
	fails_with 125 "is a symbolic link"
	run ak agent run claude /
	fails_with 125 "cannot be a workspace"
	run ak agent run claude "$W/home"
	fails_with 125 "a workspace cannot hold your home directory"
	run ak agent run --nonsense claude
	fails_with 125 "unknown option '--nonsense'"
	run ak agent run --json claude # the output is the agent's own
	fails_with 125 "unknown option '--json'"
	[ -z "$(ak list --all --quiet)" ]
}

@test "an agent that is not there is named with what installs it" {
	run as env PATH=/usr/bin:/bin HOME="$W/home" "$AK" agent run opencode
	fails_with 125 "opencode is not installed (npm install -g opencode-ai, or 'agentkernel template build opencode'): 'opencode' is not on PATH"
	run as env PATH="$SHARED/agents/bin:/usr/bin:/bin" HOME="$W/home" "$AK" agent run opencode
	fails_with 125 "' needs 'fakenode', which is not on PATH"
	mkdir bin
	echo x >bin/codex # not a program
	mkdir bin/gemini
	own bin
	for agent in codex gemini; do
		run as env PATH="bin:$W/project/bin:/usr/bin:/bin" HOME="$W/home" "$AK" agent run "$agent"
		[ "$status" -eq 125 ]
		[[ "$output" == *"is not on PATH"* ]]
	done
}

@test "an interpreter in the same node_modules, and an agent that is in /usr" {
	mkdir -p tools/node_modules/{a,b}/bin bin
	cp /bin/sh tools/node_modules/b/bin/mynode
	printf '#!/usr/bin/env -S mynode\necho from here\n' >tools/node_modules/a/bin/claude
	chmod 755 tools/node_modules/*/bin/*
	mkdir "$W/p2"
	own "$W"
	cd "$W/p2"
	GIVEN=(PATH="$W/project/tools/node_modules/a/bin:$W/project/tools/node_modules/b/bin:/usr/bin:/bin")
	run ak agent run claude
	says "from here"
	GIVEN=(X=1)
	run ak agent run --image host gemini # the same as without
	says "agent in $W/p2 home /root args 0 "
	[ -w /usr/local/bin ] && [ ! -e /usr/local/bin/opencode ] || skip "/usr/local/bin cannot be used by the test"
	printf '#!/bin/sh\necho from usr\n' >/usr/local/bin/opencode
	chmod 755 /usr/local/bin/opencode
	GIVEN=(PATH=/usr/local/bin:/usr/bin:/bin)
	run ak agent run opencode
	rm /usr/local/bin/opencode
	says "from usr"
}

@test "with --image the agent is the image's" {
	as bash -c ". '$TOP/tests/image/rootfs.bash' && make_rootfs '$SHARED/work/rootfs'" || skip "no busybox to make an image of"
	printf '#!/bin/sh\necho "of the image in $PWD"\n' >"$SHARED/work/rootfs/bin/claude"
	chmod 755 "$SHARED/work/rootfs/bin/claude"
	ak image import --quiet agentimage "$SHARED/work/rootfs" >/dev/null
	run ak agent run --image agentimage claude
	says "of the image in $W/project"
	run ak agent run --image agentimage claude
	says "of the image in $W/project" # and no message about other options
	run -127 ak agent run --image agentimage codex
}

@test "agent list tells what is installed and which keys are set" {
	GIVEN=(GEMINI_API_KEY=x)
	run ak agent list
	[[ "${lines[0]}" =~ ^AGENT\ +PROGRAM\ +KEY\ +MODE$ ]]
	[[ "${lines[1]}" =~ ^claude\ +$SHARED/agents/lib/node_modules/pkg/bin/cli.js\ +no\ ANTHROPIC_API_KEY\ +claude$ ]]
	[[ "${lines[3]}" =~ ^gemini\ .*\ GEMINI_API_KEY\ +gemini$ ]]
	run as env PATH=/usr/bin:/bin "$AK" agent list --json
	[ "$(python3 -c 'import json, sys; print([(a["name"], a["installed"], a["package"]) for a in json.loads(sys.argv[1])])' "$output")" = \
		"[('claude', False, '@anthropic-ai/claude-code'), ('codex', False, '@openai/codex'), ('gemini', False, '@google/gemini-cli'), ('opencode', False, 'opencode-ai')]" ]
}

@test "settings that an agent saves for its project are told of: not kept, unless that is asked for" {
	run ak agent run claude -- run sh -c 'mkdir .claude; sleep 0.1'
	[[ $output == *"'.claude' was moved to "*"(add --unprotect .claude to keep it)"* ]] || { echo "$output"; return 1; }
	mkdir .claude
	own .
	run ak agent run claude -- run true
	says "agentkernel: .claude is read-only inside, since claude outside would obey it: settings that it saves for this project are not kept (--unprotect .claude keeps them)"
	run ak agent run codex -- run true # not codex's own directory
	says ""
	for name in $(ak list --all --quiet); do ak remove -f "$name"; done
	run ak agent run --unprotect .claude claude -- run touch .claude/settings.local.json
	says ""
	[ -e .claude/settings.local.json ]
}
