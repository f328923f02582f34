/* cmd_sandbox_update - agentkernel sandbox update: changes limits at once. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_sandbox.h"

static const char *const examples[] = {
	"agentkernel sandbox update otter --memory 4G --cpus 2",
	"new limits, for a running sandbox at once",
	NULL,
};

/* clang-format off */
static const struct opt rows[] = {
#define LIVE(id, name, value, help) \
	{ "Limits", name, 0, value, help, .kind = OPT_SETTING, .field = POLICY_##id },
#include "policy/fields.def"
};
/* clang-format on */
static const struct opts_table options = { rows, COUNT_OF(rows) };

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(settings_done) struct settings settings = { 0 };
	const struct words_rule rule = {
		.usage = "sandbox update NAME [limits]", .options = &options, .min = 1, .max = 1
	};
	unsigned count = 0;
	struct op_update_args args;
	char *words[2];

	if (words_read(&rule, argv, NULL, &settings, words, &count, e) < 0)
		return -1;
	args = (struct op_update_args){ words[0], &settings };
	if (op_update(context->ak, &args, &cli_events, e) < 0)
		return -1;
	*ret_status = 0;
	return 0;
}

const struct cli_command cmd_sandbox_update = {
	.name = "sandbox update",
	.summary = "change limits of a sandbox, at once if it runs",
	.usage = "NAME [limits]",
	.examples = examples,
	.options = &options,
	.run = run,
};
