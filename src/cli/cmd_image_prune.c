/* cmd_image_prune - agentkernel image prune: removes unused data. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image prune",
	"what has no name any more",
	"agentkernel image prune --all --dry-run",
	"how much would go if all unused images went",
	NULL,
};

static const struct opt rows[] = {
	IMAGEWORDS_JSON,
	IMAGEWORDS_QUIET,
	{ NULL, "all", 'a', NULL, "every image that no sandbox is using", .kind = OPT_FLAG,
	  .offset = offsetof(struct imagewords_flags, is_all) },
	{ NULL, "dry-run", 0, NULL, "only say what would go", .kind = OPT_FLAG,
	  .offset = offsetof(struct imagewords_flags, is_dry) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const struct imagewords_command command = {
	.operation = "prune",
	.shape = IMAGEWORDS_NOTHING,
	.rule = { .usage = "image prune", .options = &options },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_prune = {
	.name = "image prune",
	.summary = "remove what is not needed: old versions, broken pulls",
	.usage = "[options]",
	.text = "Takes what no name leads to and no sandbox uses: images whose tag means another "
		"now, layers\n"
		"and blobs that none needs, and the beginnings of pulls that broke off.",
	.examples = examples,
	.options = &options,
	.run = run,
};
