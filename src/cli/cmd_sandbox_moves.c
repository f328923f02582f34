/*
 * cmd_sandbox_moves - agentkernel sandbox start, stop, restart, pause, resume, remove: the commands
 * that do one thing to each of the sandboxes named.
 */
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/words.h"
#include "named/supervisor.h"
#include "named/lifecycle.h"

struct flags {
	const char *timeout;
	bool is_forced;
};

struct move {
	const struct ak *ak;
	uint64_t timeout_ms;
	unsigned flags;
};

typedef int move_fn(const struct move *m, const char *name, struct err *e);

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

/* One that fails does not keep the others from being done. */
static int for_each(const struct words_rule *rule, move_fn *fn, const struct cli_context *context,
		    char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings none = { 0 };
	cleanup_free char **names = mem_alloc((WORDS_MAX + 1) * sizeof(*names));
	struct flags flags = { 0 };
	struct move m = { .ak = context->ak, .timeout_ms = LIFECYCLE_STOP_DEFAULT_MS };
	unsigned count = 0;

	if (words_read(rule, argv, &flags, &none, names, &count, e) < 0)
		return -1;
	if (flags.timeout &&
	    parse_duration_ms(flags.timeout, 0, SUPERVISOR_STOP_MAX_MS, &m.timeout_ms, e) < 0)
		return err_wrap(e, "--timeout");
	m.flags = flags.is_forced ? LIFECYCLE_FORCE : 0;
	*ret_status = 0;
	for (unsigned i = 0; i < count; i++) {
		struct err failure = { 0 };

		if (fn(&m, names[i], &failure) == 0)
			continue;
		if (count == 1) {
			*e = failure;
			return -1;
		}
		cli_say("%s", failure.msg);
		*ret_status = CLI_EXIT_FAILED;
	}
	return 0;
}

static int start(const struct move *m, const char *name, struct err *e)
{
	return lifecycle_start(m->ak, name, e);
}

static int told(const struct move *m, const char *name, int r)
{
	char **notices = lifecycle_take_notices(m->ak, name);

	ending_tell_notices(notices);
	keyrows_list_free(&notices);
	return r;
}

static int stop(const struct move *m, const char *name, struct err *e)
{
	return told(m, name, lifecycle_stop(m->ak, name, m->timeout_ms, m->flags, e));
}

static int restart(const struct move *m, const char *name, struct err *e)
{
	return told(m, name, lifecycle_restart(m->ak, name, m->timeout_ms, m->flags, e));
}

static int pause_it(const struct move *m, const char *name, struct err *e)
{
	return lifecycle_pause(m->ak, name, e);
}

static int resume(const struct move *m, const char *name, struct err *e)
{
	return lifecycle_resume(m->ak, name, e);
}

static int remove_it(const struct move *m, const char *name, struct err *e)
{
	return lifecycle_remove(m->ak, name, m->flags, e);
}

#define MOVE(word, fn, table)                                                                      \
	static int run_##word(const struct cli_context *context, char **argv, int *ret_status,     \
			      struct err *e)                                                       \
	{                                                                                          \
		const struct words_rule rule = { .usage = "sandbox " #word " NAME...",             \
						 .options = (table),                               \
						 .min = 1,                                         \
						 .max = WORDS_MAX };                               \
                                                                                                   \
		return for_each(&rule, fn, context, argv, ret_status, e);                          \
	}

MOVE(start, start, NULL)
MOVE(stop, stop, &timeout_options)
MOVE(restart, restart, &timeout_options)
MOVE(pause, pause_it, NULL)
MOVE(resume, resume, NULL)
MOVE(remove, remove_it, &remove_options)

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
