/* cmd_image_inspect - agentkernel image inspect: shows an image's details. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image inspect alpine:3.20",
	"its manifest's digest, its layers and its config",
	NULL,
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "accepted, as everywhere: the output always is JSON",
	  .kind = OPT_FLAG, .offset = offsetof(struct imagewords_flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const struct imagewords_command command = {
	.operation = "inspect",
	.shape = IMAGEWORDS_REFERENCES,
	.rule = { .usage = "image inspect REF...",
		  .options = &options,
		  .min = 1,
		  .max = TOOL_REFERENCES_MAX },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_inspect = {
	.name = "image inspect",
	.summary = "show an image's digests, layers and config as JSON",
	.usage = "REF...",
	.text = NULL,
	.examples = examples,
	.options = &options,
	.run = run,
};
