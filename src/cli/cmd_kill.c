/* cmd_kill - agentkernel kill: a signal for a command of a sandbox. */
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/tasks.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

struct flags {
	const char *signal;
};

static const struct opt rows[] = {
	{ "Options", "signal", 's', "SIGNAL", "TERM (default), KILL, INT, HUP, ... or a number",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, signal) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP },     { "INT", SIGINT },   { "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
	{ "KILL", SIGKILL },   { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "ALRM", SIGALRM },
	{ "TERM", SIGTERM },   { "CONT", SIGCONT }, { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },
	{ "WINCH", SIGWINCH },
};

static int read_signal(const char *text, int *ret, struct err *e)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number = 0;

	for (size_t i = 0; i < COUNT_OF(signals); i++) {
		if (strcasecmp(signals[i].name, name) != 0)
			continue;
		*ret = signals[i].number;
		return 0;
	}
	if (!keyrows_read_number(text, 64, &number) || number == 0)
		return err_set(e, ERR_INVALID,
			       "--signal: no signal '%s' (use TERM, KILL, INT, HUP or a number)",
			       text);
	*ret = (int)number;
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings none = { 0 };
	const struct words_rule rule = {
		.usage = "kill NAME ID [--signal S]", .options = &options, .min = 2, .max = 2
	};
	struct flags flags = { 0 };
	int number = SIGTERM;
	unsigned count = 0;
	char *words[3];
	uint32_t id = 0;

	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0 ||
	    (flags.signal && read_signal(flags.signal, &number, e) < 0) ||
	    tasks_parse_id(words[1], &id, e) < 0)
		return -1;
	*ret_status = 0;
	return tasks_kill(context->ak, words[0], id, number, e);
}

const struct cli_command cmd_kill = {
	.name = "kill",
	.summary = "send a signal to a command of a sandbox and its process group",
	.usage = "NAME ID [--signal SIGNAL]",
	.options = &options,
	.run = run,
};
