/* cmd_mcp_server - agentkernel mcp server: offers sandboxes as tools for coding agents. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/face.h"
#include "cli/runoptions.h"
#include "state/ak.h"

static const char *const examples[] = {
	"agentkernel mcp server",
	"on standard input and output, as an MCP client starts it ('agentkernel plugin install' "
	"tells yours)",
	"agentkernel mcp server --profile restrictive --workspace",
	"no sandbox of any caller may do more than that",
	NULL,
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	CLEANUP(face_done) struct face face = { 0 };
	const char *none[1];
	unsigned count = 0;

	if (runoptions_collect(&runoptions_mcp, argv, context->ak, &o, none, 0, &count, e) < 0)
		return -1;
	if (request_resolve(&o.request, NULL, &cli_events, e) < 0 ||
	    request_raise_ceiling(&o.request, e) < 0 || face_begin(&face, "agentkernel-mcp", e) < 0)
		return -1;
	face_add_ceiling(&face, &o.request);
	*ret_status = 0;
	return face_become(&face, context->ak->caller.environ_list, e);
}

const struct cli_command cmd_mcp_server = {
	.name = "mcp server",
	.summary = "serve sandboxes as tools to an MCP client, on standard input and output",
	.usage = "[run's options]",
	.text = "The options and agentkernel.toml are the ceiling: what they do not allow no "
		"caller can\n"
		"get. Both revisions of the protocol are spoken, with and without the initialize\n"
		"handshake. When the client closes standard input, or cancels a call, the "
		"sandboxes "
		"of\n"
		"the calls that run are gone.",
	.examples = examples,
	.options = &runoptions_mcp,
	.run = run,
};
