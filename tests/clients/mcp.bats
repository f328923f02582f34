#!/usr/bin/env bats
# The MCP server with real clients: npm's @modelcontextprotocol/sdk, client and inspector. Each test
# is a sentence of mcp.mjs, with its own home and project. It tests the protocol, not the caller:
# only as root.

load ../cli/helpers

mcp() {
	[ -e "$BUILD/clients/installed" ] || skip "the clients could not be installed (tests/clients/install says why)"
	output=$(as env -u AGENTKERNEL_IMAGE AGENTKERNEL="$AK" BUILD="$BUILD" AGENTKERNEL_HOME="$W/state" \
		MCP_SCHEMAS="${MCP_SCHEMAS:-$TOP/../shared/mcp-schema}" node "$BATS_TEST_DIRNAME/mcp.mjs" "$1" 2>&1) || {
		echo "$output"
		return 1
	}
	[[ $output != skip:* ]] || skip "${output#skip: }"
	[ -z "$(ak list --all --quiet)" ]
}

# bats test_tags=once
@test "sdk 1.x uses every tool" {
	mcp "sdk 1.x uses every tool"
}

# bats test_tags=once
@test "client 2.x uses every tool, with and without a handshake" {
	mcp "client 2.x uses every tool, with and without a handshake"
}

# bats test_tags=once
@test "the inspector lists and calls in both eras" {
	mcp "the inspector lists and calls in both eras"
}

# bats test_tags=once
@test "twenty calls at a time are all answered right, and a long one delays nobody" {
	mcp "twenty calls at a time are all answered right, and a long one delays nobody"
}

# bats test_tags=once
@test "a cancelled call is gone with its sandbox, and the server goes on" {
	mcp "a cancelled call is gone with its sandbox, and the server goes on"
}

# bats test_tags=once
@test "when standard input closes, running calls end and the server leaves" {
	mcp "when standard input closes, running calls end and the server leaves"
}

# bats test_tags=once
@test "eras do not disturb each other, and answers say what they must" {
	mcp "eras do not disturb each other, and answers say what they must"
}

# bats test_tags=once
@test "batches are for 2025-03-26 alone" {
	mcp "batches are for 2025-03-26 alone"
}

# bats test_tags=once
@test "bad input gets the right answer, and the server goes on" {
	mcp "bad input gets the right answer, and the server goes on"
}

# bats test_tags=once
@test "long output is cut in its middle between characters, and all of it can be read" {
	mcp "long output is cut in its middle between characters, and all of it can be read"
}

# bats test_tags=once
@test "nobody gets more than the server was started with" {
	mcp "nobody gets more than the server was started with"
}

# bats test_tags=once
@test "tools, commands and rates are what the configuration says" {
	mcp "tools, commands and rates are what the configuration says"
}

# bats test_tags=once
@test "a denied host comes with its rule and what would allow it" {
	mcp "a denied host comes with its rule and what would allow it"
}

# bats test_tags=once
@test "progress is told to who asks, and only then" {
	mcp "progress is told to who asks, and only then"
}

# bats test_tags=once
@test "a thousand calls leave memory and descriptors where they were" {
	mcp "a thousand calls leave memory and descriptors where they were"
}

# bats test_tags=once
@test "every answer is valid against the schema of its revision" {
	mcp "every answer is valid against the schema of its revision"
}

# bats test_tags=once
@test "what a model reads is short, ids come first, and what is ours is apart from what was printed" {
	mcp "what a model reads is short, ids come first, and what is ours is apart from what was printed"
}

# bats test_tags=once
@test "messages name tools and parameters, not commands and options" {
	mcp "messages name tools and parameters, not commands and options"
}

# bats test_tags=once
@test "the list of tools costs at most 4,000 tokens" {
	mcp "the list of tools costs at most 4,000 tokens"
}

# bats test_tags=once
@test "a path is absolute, in the home, or in the working directory" {
	mcp "a path is absolute, in the home, or in the working directory"
}

# bats test_tags=once
@test "an edit matches exactly once, and a file is read whole or not at all" {
	mcp "an edit matches exactly once, and a file is read whole or not at all"
}

# bats test_tags=once
@test "archives stay in their directory, and large ones are refused in words" {
	mcp "archives stay in their directory, and large ones are refused in words"
}
