#!/usr/bin/env bats
# MCP's own conformance suite, both protocol versions, against /mcp: docs/design/mcp-conformance.md
# lists what passes and why the rest does not apply. It tests the protocol, not the caller: only as
# root.

load ../cli/helpers

conformance() {
	[ -e "$BUILD/clients/installed" ] || skip "the clients could not be installed (tests/clients/install says why)"
	as env -u AGENTKERNEL_IMAGE AGENTKERNEL="$AK" BUILD="$BUILD" AGENTKERNEL_HOME="$W/state" \
		node "$BATS_TEST_DIRNAME/conformance.mjs" "$1"
}

# bats test_tags=once
@test "the suite 0.1 passes where an execution server can be asked" {
	conformance 0.1
}

# bats test_tags=once
@test "the suite 0.2 passes where an execution server can be asked, in both eras" {
	conformance 0.2
}
