/* cmd_forward - agentkernel forward: reach a port of a sandbox as long as this command runs. */
#include "base/cleanup.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_port.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define ENDED_STATUS 1

static const char *const examples[] = {
	"agentkernel forward db 15432:5432",
	"psql -h 127.0.0.1 -p 15432 reaches the server in sandbox 'db'; Ctrl-C ends it",
	NULL,
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "forward NAME [ADDR:]PORT[:INNER]",
					 .min = 2,
					 .max = 2 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct pollfd polled = { .events = POLLIN };
	struct op_forward_args args;
	struct control_port port;
	cleanup_fd int fd = -1;
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, NULL, &none, words, &count, e) < 0)
		return -1;
	args = (struct op_forward_args){ .name = words[0], .port = words[1] };
	if (op_forward(context->ak, &args, &cli_events, &port, &fd, e) < 0)
		return -1;
	say("%s leads to port %u of sandbox '%s' (Ctrl-C ends it)", port.at, (unsigned)port.inner,
	    args.name);
	polled.fd = fd;
	while (poll(&polled, 1, -1) < 0 && errno == EINTR)
		continue;
	say("sandbox '%s' has stopped", args.name);
	*ret_status = ENDED_STATUS;
	return 0;
}

const struct cli_command cmd_forward = {
	.name = "forward",
	.summary = "reach a port of a sandbox as long as this command runs",
	.usage = "NAME [ADDR:]PORT[:INNER]",
	.examples = examples,
	.run = run,
};
