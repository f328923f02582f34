# Shared by the bats files of this directory: the real agents, as npm installs them, and a model
# service that follows a test's script (model.py).
# shellcheck disable=SC2154,SC1091
. "$BATS_TEST_DIRNAME/../cli/helpers.bash"
bats_require_minimum_version 1.5.0

setup_file() {
	load_shared
	export CLIENTS=$BUILD/agents/node_modules
	[ -e "$BUILD/agents/installed" ] || return 0
	# an ordinary user may not see the build folder: hard links to its files are quickly made
	as test -x "$CLIENTS/.bin/codex" || {
		cp -al "$CLIENTS" "$SHARED/node_modules" && CLIENTS=$SHARED/node_modules
	}
}

setup() {
	[ -e "$BUILD/agents/installed" ] || skip "the agents could not be installed (tests/agents/install says why)"
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	mkdir "$W/project" "$W/home"
	own "$W"
	cd "$W/project" || return 1
}

teardown() {
	local name
	[ -n "${W:-}" ] || return 0
	for name in $(ak list --all --quiet); do
		ak remove -f "$name" || true
	done
	[ -z "${MODEL_PID:-}" ] || kill "$MODEL_PID"
}

own() {
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$@"
}

# agent COMMAND...: as the caller of this round, with its own home, a key for every service and the
# variables in GIVEN
agent() {
	as env -u AGENTKERNEL_IMAGE PATH="$SHARED:$CLIENTS/.bin:/usr/local/bin:/usr/bin:/bin" HOME="$W/home" \
		AGENTKERNEL_HOME="$W/home/state" ANTHROPIC_API_KEY=sk-ant-none OPENAI_API_KEY=sk-none \
		GEMINI_API_KEY=none "${GIVEN[@]}" "$@" 3>&- </dev/null
}
GIVEN=(X=1)

ak() {
	agent "$AK" "$@"
}

# version PACKAGE: the installed version
version() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["version"])' "$CLIENTS/$1/package.json"
}

# ---- the model ----

# start_model: listens on the port MODEL of the loopback interface
start_model() {
	python3 "$BATS_TEST_DIRNAME/model.py" "$W/log" >"$W/port" 3>&- &
	MODEL_PID=$!
	for _ in $(seq 200); do
		[ ! -s "$W/port" ] || break
		sleep 0.05
	done
	MODEL=$(cat "$W/port")
}

# turns JSON: the model's next answers, one for each request; clears the log
turns() {
	: >"$W/log"
	curl -sS -o "$W/posted" -d "$1" "http://127.0.0.1:$MODEL/script"
}

# sent KIND: one field of the agent's last request, a line each: prompts, calls, results, answers,
# key, tools
sent() {
	python3 -c 'import json, sys
lines = open(sys.argv[1]).read().splitlines()
print(*json.loads(lines[-1])[sys.argv[2]] if lines else ["nothing was sent"], sep="\n")' "$W/log" "$1"
}

# opencode_config: opencode's settings for the model at URL
opencode_config() {
	echo "{ \"model\": \"anthropic/claude-sonnet-4-5\", \"provider\": { \"anthropic\": { \"options\": { \"baseURL\": \"$URL/v1\" } } } }"
}

# has TEXT: $output contains it
has() {
	[[ "$output" == *"$1"* ]] || { echo "no '$1' in: $output"; return 1; }
}
