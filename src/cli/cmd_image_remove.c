/* cmd_image_remove - agentkernel image remove: removes names, and data that only they used. */
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image remove alpine:3.20",
	"it, and its layers unless another image has them too",
	NULL,
};

static const struct imagewords_command command = {
	.operation = "remove",
	.shape = IMAGEWORDS_REFERENCES,
	.rule = { .usage = "image remove REF...",
		  .options = &imagewords_options,
		  .min = 1,
		  .max = TOOL_REFERENCES_MAX },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_remove = {
	.name = "image remove",
	.summary = "remove images from the store",
	.usage = "[options] REF...",
	.text = "Removes the names, and the layers and blobs that no other image needs. What a "
		"sandbox is using stays\n"
		"until the sandbox has ended; the next remove or prune takes it then.",
	.examples = examples,
	.options = &imagewords_options,
	.run = run,
};
