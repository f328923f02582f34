/* cmd_image_import - agentkernel image import: makes an image from a root directory or its tar. */
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image import mine ./rootfs",
	"the directory, as one layer",
	"mmdebstrap --variant=minbase stable | agentkernel image import debian -",
	"from a pipe",
	NULL,
};

static const struct imagewords_command command = {
	.operation = "import",
	.shape = IMAGEWORDS_REFERENCE_FILE,
	.rule = { .usage = "image import REF FILE|DIR|-",
		  .options = &imagewords_options,
		  .min = 2,
		  .max = 2 },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_import = {
	.name = "image import",
	.summary = "make an image from a root directory or a tar of one",
	.usage = "[options] REF FILE|DIR|-",
	.text = "Plain, gzip and zstd tars are fine. Of a directory, /proc, /sys, /dev and /run "
		"are left\n"
		"out: every sandbox has its own. The image has no entrypoint, user or variables.\n"
		"FILE REF, as docker has it, works too.",
	.examples = examples,
	.options = &imagewords_options,
	.run = run,
};
