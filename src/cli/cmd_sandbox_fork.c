/* cmd_sandbox_fork - agentkernel sandbox fork: creates copies of a sandbox. */
#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/checkpoint.h"
#include "ops/op_sandbox.h"

static const char *const examples[] = {
	"agentkernel sandbox fork otter try --count 5",
	"try-1 to try-5, each with all that 'otter' has on disk now, and running if it runs",
	NULL,
};

struct flags {
	const char *count;
};

static const struct opt rows[] = {
	{ "Options", "count", 0, "N", "that many: NEW-1, NEW-2, ...", .kind = OPT_TEXT,
	  .offset = offsetof(struct flags, count) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "sandbox fork NAME NEW [--count N]",
					 .options = &options,
					 .min = 2,
					 .max = 2 };
	struct flags flags = { 0 };
	unsigned word_count = 0;
	struct op_fork_args args;
	uint64_t count = 0;
	char *words[3];

	if (words_read(&rule, argv, &flags, NULL, words, &word_count, e) < 0)
		return -1;
	if (flags.count && parse_count(flags.count, 1, CHECKPOINT_FORKS_MAX, &count, e) < 0)
		return err_wrap(e, "--count");
	*ret_status = 0;
	args = (struct op_fork_args){ words[0], words[1], (unsigned)count };
	return op_fork(context->ak, &args, &cli_events, e);
}

const struct cli_command cmd_sandbox_fork = {
	.name = "sandbox fork",
	.summary = "create sandboxes that start where another one is",
	.usage = "NAME NEW [--count N]",
	.text = "Files, policy and labels are the same at first, and each has its own from then "
		"on.\n"
		"Processes, the host name, the machine id and the network are new. A running one "
		"is\n"
		"frozen while its disk is copied, and its forks run.",
	.examples = examples,
	.options = &options,
	.run = run,
};
