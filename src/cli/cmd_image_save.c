/* cmd_image_save - agentkernel image save: saves images to a file. */
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image save alpine:3.20 alpine.tar",
	"one image",
	"agentkernel image save alpine:3.20 - | podman load",
	"into another program's store",
	NULL,
};

static const struct opts_table options = { NULL, 0 };

static const struct imagewords_command command = {
	.operation = "save",
	.shape = IMAGEWORDS_REFERENCES_FILE,
	.rule = { .usage = "image save REF... FILE|DIR/|-",
		  .options = &options,
		  .min = 2,
		  .max = TOOL_REFERENCES_MAX + 1 },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_save = {
	.name = "image save",
	.summary = "write images to an archive that docker, podman and skopeo read",
	.usage = "REF... FILE|DIR/|-",
	.text = "The archive is an OCI layout and what docker load reads at once. A FILE that is a "
		"directory or ends\n"
		"in '/' becomes an OCI layout directory.",
	.examples = examples,
	.options = &options,
	.run = run,
};
