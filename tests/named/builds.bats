#!/usr/bin/env bats
# An older and a newer build with one state directory. The newer one is a test build that claims
# another version of every message and record (src/base/buildid.h).

load helpers

setup_file() {
	[ -x "$BUILD/testing/agentkernel" ] || return 0
	setup_shared
	cp "$BUILD"/testing/agentkernel "$SHARED/agentkernel"
}

# not in setup_file(): bats 1.8 takes a skip before teardown_file() for a failure
setup() {
	[ -n "${SHARED:-}" ] || skip "needs a build for tests (make TESTING=1)"
	setup_work
}

# Like ak, with a program of a later build.
newer() {
	as env AGENTKERNEL_TEST_NEWER=1 "$AK" "$@"
}

member() { # member NAME KEY: of `info --json`
	ak info --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

@test "a supervisor of another build is marked, and each request says so and how to renew it" {
	local words
	started old
	[ "$(member old is_outdated)" = False ]
	run newer list
	[[ "$output" == *"running (other build)"* ]]
	run newer info --json old
	[[ "$output" == *'"is_outdated":true'* ]]
	while read -r words; do
		# shellcheck disable=SC2086 # words
		run newer $words </dev/null
		[ "$status" -eq 125 ] || { echo "$words: $status: $output"; return 1; }
		[[ "$output" == *"was started by another build of agentkernel"*"('agentkernel restart' "* ]] || { echo "$words: $output"; return 1; }
	done <<-'COMMANDS'
	exec old true
	exec -d old true
	exec -t old true
	ps old
	stats --no-stream old
	cp old:/etc/hosts .
	checkpoint create old
	pause old
	COMMANDS
	[ "$(ak exec old echo unharmed)" = unharmed ]
}

@test "stop, restart and remove -f of the newer build work on what the older one runs" {
	started kept
	ak exec kept sh -c 'echo here >~/file'
	newer stop kept
	newer start kept
	[ "$(newer exec kept sh -c 'cat ~/file')" = here ]
	newer remove -f kept
	started again
	ak exec again sh -c 'echo here >~/file'
	newer restart again
	[ "$(newer exec again sh -c 'cat ~/file')" = here ]
	newer remove -f again
	started gone
	newer remove -f gone
	run ak info gone
	[ "$status" -eq 125 ]
}

@test "what a newer build has written is refused in words by the older one, and can be removed" {
	newer create late
	newer start late
	for words in "info late" "start late" "stop late" "exec late true"; do
		# shellcheck disable=SC2086 # words
		run ak $words
		[ "$status" -eq 125 ]
		[[ "$output" == *"was written by a later version of agentkernel"* ]]
	done
	run ak list --all
	[[ "$output" == *"late"*"written by a later version of agentkernel"* ]]
	ak remove -f late
	run newer info late
	[ "$status" -eq 125 ]
}

@test "a daemon of another build is not used, and says how to renew it" {
	as "$AK" daemon start 3>&-
	ak run true # creates a pool for it
	for _ in $(seq 100); do
		ak daemon status --json | grep -q '"warm":[1-9]' && break
		sleep 0.1
	done
	[[ "$(ak run --json true)" == *'"warm":true'* ]] || [[ "$(ak daemon status --json)" == *'"given":'[1-9]* ]]
	given=$(ak daemon status --json | sed 's/.*"given":\([0-9]*\).*/\1/')
	newer run true
	[ "$(ak daemon status --json | sed 's/.*"given":\([0-9]*\).*/\1/')" = "$given" ]
	run newer daemon status
	[[ "$output" == *"another build"*"agentkernel daemon restart"* ]]
	run newer daemon prewarm
	[ "$status" -eq 125 ]
	[[ "$output" == *"the daemon is of"*"daemon restart"* ]]
	as env AGENTKERNEL_TEST_NEWER=1 "$AK" daemon restart 3>&-
	run newer daemon status
	[[ "$output" != *"another build"* ]]
	newer daemon stop
}
