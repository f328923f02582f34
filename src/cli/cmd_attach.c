/* cmd_attach - agentkernel attach: a login shell that survives detaching. */
#include "base/cleanup.h"
#include "base/say.h"
#include "cli/commands.h"
#include "ops/ending.h"
#include "cli/words.h"
#include "named/execute.h"
#include "named/tasks.h"

#include <unistd.h>

static const char *const examples[] = {
	"agentkernel attach otter",
	"a login shell; Ctrl-] leaves it running, attach again to come back",
	NULL,
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct words_rule rule = { .usage = "attach NAME [ID]", .min = 1, .max = 2 };
	struct execute_options o = { .ak = context->ak };
	bool has_left = false;
	unsigned count = 0;
	char *words[3];
	uint32_t id = 0;

	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0 ||
	    (words[1] && tasks_parse_id(words[1], &id, e) < 0))
		return -1;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "attach needs a terminal ('agentkernel exec' does without)");
	o.name = words[0];
	if (execute_attach(&o, id, &result, &has_left, e) < 0)
		return -1;
	*ret_status = has_left ? 0 : result.exit_code;
	if (has_left)
		say("left '%s' running; 'agentkernel attach %s' comes back", o.name, o.name);
	else
		ending_remark(&cli_events, &result, NULL, 0);
	return 0;
}

const struct cli_command cmd_attach = {
	.name = "attach",
	.summary = "a login shell in a sandbox that can be left and re-entered",
	.usage = "NAME [ID]",
	.text = "The shell stays when you leave with Ctrl-] or lose your connection; attaching "
		"again\n"
		"comes back to it, from another terminal too. With an ID: the terminal of a "
		"command\n"
		"that was started with 'exec -d -t'.",
	.examples = examples,
	.run = run,
};
