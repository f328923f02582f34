/* cmd_version - agentkernel version. */
#include "cli/commands.h"

#include <stdio.h>

#ifndef AGENTKERNEL_VERSION
#error "the build passes AGENTKERNEL_VERSION"
#endif

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	(void)context;
	if (argv[0])
		return err_set(e, ERR_INVALID, "version takes no argument, not '%s'", argv[0]);
	printf("agentkernel %s\n", AGENTKERNEL_VERSION);
	*ret_status = fflush(stdout) == 0 ? 0 : CLI_EXIT_FAILED;
	return 0;
}

const struct cli_command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "",
	.run = run,
};
