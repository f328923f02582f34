/* cmd_image_load - agentkernel image load: loads images from a file. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"docker save alpine | agentkernel image load -",
	"from another program's store",
	"agentkernel image load --name mine:1 ./layout",
	"an OCI layout in a directory",
	NULL,
};

static const struct opt rows[] = {
	IMAGEWORDS_JSON,
	IMAGEWORDS_QUIET,
	IMAGEWORDS_NAME,
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const struct imagewords_command command = {
	.operation = "load",
	.shape = IMAGEWORDS_FILE,
	.rule = { .usage = "image load FILE|DIR|-", .options = &options, .max = 1 },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_load = {
	.name = "image load",
	.summary = "load images from a docker save archive, an OCI layout or a skopeo dir:",
	.usage = "[options] [FILE|DIR|-]",
	.text = "Reads what docker save and podman save write, OCI layouts, and what skopeo writes "
		"to dir:,\n"
		"as an archive (plain, gzip, zstd) or a directory; without a word, from stdin. "
		"Images keep\n"
		"the names they have there; --name is for one that has none, or another.",
	.examples = examples,
	.options = &options,
	.run = run,
};
