/*
 * cmd_sandbox_moves - agentkernel sandbox start, stop, restart, pause, resume, remove: change the
 * state of each named sandbox.
 */
#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/supervisor.h"
#include "ops/op_sandbox.h"

struct flags {
	const char *timeout;
	bool is_forced;
};

static const struct opt timeout_rows[] = {
	{ "Options", "timeout", 0, "DURATION", "between SIGTERM and SIGKILL (default: 5s)",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, timeout) },
	{ "Options", "force", 'f', NULL, "end it at once, also when its supervisor does not answer",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_forced) },
};
static const struct opts_table timeout_options = { timeout_rows, COUNT_OF(timeout_rows) };

static const struct opt remove_rows[] = {
	{ "Options", "force", 'f', NULL, "stop it first; one that is not there is fine",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_forced) },
};
static const struct opts_table remove_options = { remove_rows, COUNT_OF(remove_rows) };

/* Continues with the other sandboxes after a failure. */
static int for_each(const struct words_rule *rule, op_move_fn *op,
		    const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	cleanup_free char **names = mem_alloc((WORDS_MAX + 1) * sizeof(*names));
	struct flags flags = { 0 };
	struct op_move_args args = { .timeout_ms = LIFECYCLE_STOP_DEFAULT_MS };
	struct op_move_result ignored = { 0 };
	unsigned count = 0;

	if (words_read(rule, argv, &flags, NULL, names, &count, e) < 0)
		return -1;
	if (flags.timeout &&
	    parse_duration_ms(flags.timeout, 0, SUPERVISOR_STOP_MAX_MS, &args.timeout_ms, e) < 0)
		return err_wrap(e, "--timeout");
	args.is_forced = flags.is_forced;
	*ret_status = 0;
	for (unsigned i = 0; i < count; i++) {
		struct err failure = { 0 };

		args.name = names[i];
		if (op(context->ak, &args, &cli_events, &ignored, &failure) == 0)
			continue;
		if (count == 1) {
			*e = failure;
			return -1;
		}
		say("%s", failure.msg);
		*ret_status = ERRCODE_EXIT_FAILED;
	}
	return 0;
}

#define MOVE(word, table)                                                                          \
	static int run_##word(const struct cli_context *context, char **argv, int *ret_status,     \
			      struct err *e)                                                       \
	{                                                                                          \
		const struct words_rule rule = { .usage = "sandbox " #word " NAME...",             \
						 .options = (table),                               \
						 .min = 1,                                         \
						 .max = WORDS_MAX };                               \
                                                                                                   \
		return for_each(&rule, op_##word, context, argv, ret_status, e);                   \
	}

MOVE(start, NULL)
MOVE(stop, &timeout_options)
MOVE(restart, &timeout_options)
MOVE(pause, NULL)
MOVE(resume, NULL)
MOVE(remove, &remove_options)

const struct cli_command cmd_sandbox_start = {
	.name = "sandbox start",
	.summary = "start sandboxes",
	.usage = "NAME...",
	.run = run_start,
};

const struct cli_command cmd_sandbox_stop = {
	.name = "sandbox stop",
	.summary = "stop sandboxes; what is on their disk stays",
	.usage = "NAME... [--timeout DURATION | -f]",
	.options = &timeout_options,
	.run = run_stop,
};

const struct cli_command cmd_sandbox_restart = {
	.name = "sandbox restart",
	.summary = "stop running sandboxes and start them again",
	.usage = "NAME... [--timeout DURATION | -f]",
	.options = &timeout_options,
	.run = run_restart,
};

const struct cli_command cmd_sandbox_pause = {
	.name = "sandbox pause",
	.summary = "freeze every process of sandboxes",
	.usage = "NAME...",
	.run = run_pause,
};

const struct cli_command cmd_sandbox_resume = {
	.name = "sandbox resume",
	.summary = "resume paused sandboxes",
	.usage = "NAME...",
	.run = run_resume,
};

const struct cli_command cmd_sandbox_remove = {
	.name = "sandbox remove",
	.summary = "remove sandboxes and everything on their disk",
	.usage = "NAME... [-f]",
	.text = "Checkpoints that were taken of them stay.",
	.options = &remove_options,
	.run = run_remove,
};
