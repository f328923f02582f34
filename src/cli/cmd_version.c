/* cmd_version - agentkernel version. */
#include "base/buf.h"
#include "base/buildid.h"
#include "base/cleanup.h"
#include "cli/commands.h"

#ifndef AGENTKERNEL_VERSION
#error "the build passes AGENTKERNEL_VERSION"
#endif

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	cleanup_buf struct buf out;

	(void)context;
	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (argv[0])
		return err_set(e, ERR_INVALID, "version takes no argument, not '%s'", argv[0]);
	buf_addf(&out, "agentkernel " AGENTKERNEL_VERSION " (build %s)\n", buildid_get());
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "",
	.run = run,
};
