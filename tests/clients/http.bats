#!/usr/bin/env bats
# The HTTP API: the published SDK, MCP's two, and raw sockets. Each test is a sentence of http.mjs,
# with its own home and project. It tests the protocol, not the caller: only as root.

load ../cli/helpers

api() {
	[ -e "$BUILD/clients/installed" ] || skip "the clients could not be installed (tests/clients/install says why)"
	as env -u AGENTKERNEL_IMAGE AGENTKERNEL="$AK" BUILD="$BUILD" AGENTKERNEL_HOME="$W/state" \
		node "$BATS_TEST_DIRNAME/http.mjs" "$1"
}

# Removes sandboxes that a failed test left running.
teardown() {
	local sandbox
	for sandbox in "$W"/state/sandboxes/*/; do
		[ ! -d "$sandbox" ] || as env AGENTKERNEL_HOME="$W/state" "$AK" remove -f "$(basename "$sandbox")"
	done
}

# bats test_tags=once
@test "the published SDK works unchanged, every method of it" {
	api "the published SDK works unchanged, every method of it"
}

# bats test_tags=once
@test "keys are asked for, and everyone else is told how" {
	api "keys are asked for, and everyone else is told how"
}

# bats test_tags=once
@test "a key sees, uses and is told of what it made itself, an admin of all, also after a restart" {
	api "a key sees, uses and is told of what it made itself, an admin of all, also after a restart"
}

# bats test_tags=once
@test "the sandbox of a run with files is the call's alone, and gone with it or with its client" {
	api "the sandbox of a run with files is the call's alone, and gone with it or with its client"
}

# bats test_tags=once
@test "events and logs tell each caller the same: what is about a sandbox that it may use" {
	api "events and logs tell each caller the same: what is about a sandbox that it may use"
}

# bats test_tags=once
@test "a page of another origin gets nothing, nor does another name for this machine" {
	api "a page of another origin gets nothing, nor does another name for this machine"
}

# bats test_tags=once
@test "what could be read in two ways is refused, and the connection closed" {
	api "what could be read in two ways is refused, and the connection closed"
}

# bats test_tags=once
@test "mistakes are told with the right status" {
	api "mistakes are told with the right status"
}

# bats test_tags=once
@test "a member that nobody knows is refused and named, and the SDK's own words are known" {
	api "a member that nobody knows is refused and named, and the SDK's own words are known"
}

# bats test_tags=once
@test "words that look like options are words" {
	api "words that look like options are words"
}

# bats test_tags=once
@test "files of any size go up and down without being held in memory" {
	api "files of any size go up and down without being held in memory"
}

# bats test_tags=once
@test "a client that goes away takes its command with it" {
	api "a client that goes away takes its command with it"
}

# bats test_tags=once
@test "a long command delays nobody, and too many at once are told to come back" {
	api "a long command delays nobody, and too many at once are told to come back"
}

# bats test_tags=once
@test "slow and silent clients cost nothing to the others" {
	api "slow and silent clients cost nothing to the others"
}

# bats test_tags=once
@test "told to end, it finishes what it has begun" {
	api "told to end, it finishes what it has begun"
}

# bats test_tags=once
@test "a unix socket is its owner's, and needs no key" {
	api "a unix socket is its owner's, and needs no key"
}

# bats test_tags=once
@test "an address that others can reach needs a key" {
	api "an address that others can reach needs a key"
}

# bats test_tags=once
@test "the API describes itself, counts, and tells what happens" {
	api "the API describes itself, counts, and tells what happens"
}

# bats test_tags=once
@test "MCP over HTTP, by both SDKs, in both eras" {
	api "MCP over HTTP, by both SDKs, in both eras"
}

# bats test_tags=once
@test "no key takes all that a server has, and no body costs more than its bytes" {
	api "no key takes all that a server has, and no body costs more than its bytes"
}

# bats test_tags=once
@test "a storm of sessions, batches, cancels and disconnects of two keys leaves everything as it was" {
	api "a storm of sessions, batches, cancels and disconnects of two keys leaves everything as it was"
}

# bats test_tags=once
@test "two thousand requests leave memory and descriptors where they were" {
	api "two thousand requests leave memory and descriptors where they were"
}

# bats test_tags=once
@test "clients that go away in the middle of anything do no harm" {
	api "clients that go away in the middle of anything do no harm"
}

# bats test_tags=once
@test "a cancel is for a call of the same session alone" {
	api "a cancel is for a call of the same session alone"
}

# bats test_tags=once
@test "figures for Prometheus: starts, latencies, denials, limits and states" {
	api "figures for Prometheus: starts, latencies, denials, limits and states"
}

# bats test_tags=once
@test "TLS: the same API, encrypted, and nothing of it in the clear" {
	api "TLS: the same API, encrypted, and nothing of it in the clear"
}

# bats test_tags=once
@test "a key in the user's own file counts, and in a project's it is refused" {
	api "a key in the user's own file counts, and in a project's it is refused"
}

# bats test_tags=once
@test "a server that is started again knows the sandboxes of the one before" {
	api "a server that is started again knows the sandboxes of the one before"
}

# bats test_tags=once
@test "the rate of calls is one for all of a batch" {
	api "the rate of calls is one for all of a batch"
}

# bats test_tags=once
@test "snapshots of sandboxes that may do more are not the callers'" {
	api "snapshots of sandboxes that may do more are not the callers'"
}

# bats test_tags=once
@test "a checkpoint is of one sandbox and not of a name, and ids win over comments" {
	api "a checkpoint is of one sandbox and not of a name, and ids win over comments"
}

# bats test_tags=once
@test "of many at once each gets its own answer" {
	api "of many at once each gets its own answer"
}

# bats test_tags=once
@test "every route refuses a member and a query parameter that it does not know" {
	api "every route refuses a member and a query parameter that it does not know"
}

# bats test_tags=once
@test "sandboxes are paused, forked, measured, edited, waited for and moved over HTTP" {
	api "sandboxes are paused, forked, measured, edited, waited for and moved over HTTP"
}

# bats test_tags=once
@test "a file is read whole or not at all, and directories go up and down as archives" {
	api "a file is read whole or not at all, and directories go up and down as archives"
}
