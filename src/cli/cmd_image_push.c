/* cmd_image_push - agentkernel image push: sends an image to a registry. */
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image push registry.example.org/team/tool:1",
	"the image of that name, to that registry",
	NULL,
};

static const struct imagewords_command command = {
	.operation = "push",
	.shape = IMAGEWORDS_REFERENCES,
	.rule = { .usage = "image push REF", .options = &imagewords_options, .min = 1, .max = 1 },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_push = {
	.name = "image push",
	.summary = "send an image to a registry",
	.usage = "[options] REF",
	.text = "REF names the image in the store and the registry it goes to; 'agentkernel build "
		"-t "
		"REF'\n"
		"gives such a name. Layers that the registry has are not sent, those of its other\n"
		"repositories are mounted from there; what breaks off goes on where it was. The "
		"manifest\n"
		"comes last. Credentials are those of docker login, as for image pull.",
	.examples = examples,
	.options = &imagewords_options,
	.run = run,
};
