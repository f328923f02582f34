/* cmd_kill - agentkernel kill: sends a signal to a command of a sandbox. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_exec.h"

struct flags {
	const char *signal;
};

static const struct opt rows[] = {
	{ "Options", "signal", 's', "SIGNAL", "TERM (default), KILL, INT, HUP, ... or a number",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, signal) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = {
		.usage = "kill NAME ID [--signal S]", .options = &options, .min = 2, .max = 2
	};
	struct flags flags = { 0 };
	struct op_exec_kill_args args;
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	args = (struct op_exec_kill_args){ words[0], words[1], flags.signal };
	*ret_status = 0;
	return op_exec_kill(context->ak, &args, &cli_events, e);
}

const struct cli_command cmd_kill = {
	.name = "kill",
	.summary = "send a signal to a command of a sandbox and its process group",
	.usage = "NAME ID [--signal SIGNAL]",
	.options = &options,
	.run = run,
};
