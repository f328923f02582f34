/* cmd_image_pull - agentkernel image pull: pulls from a registry into the store. */
#include "cli/commands.h"
#include "cli/imagewords.h"

static const char *const examples[] = {
	"agentkernel image pull alpine:3.20",
	"Docker Hub's alpine",
	"agentkernel image pull registry.example.org:5000/team/tool@sha256:...",
	"exactly that image of another registry",
	NULL,
};

static const struct imagewords_command command = {
	.operation = "pull",
	.shape = IMAGEWORDS_REFERENCES,
	.rule = { .usage = "image pull REF", .options = &imagewords_options, .min = 1, .max = 1 },
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	return imagewords_run(&command, context, argv, ret_status, e);
}

const struct cli_command cmd_image_pull = {
	.name = "image pull",
	.summary = "fetch an image from a registry",
	.usage = "[options] REF",
	.text = "REF is [HOST[:PORT]/]PATH[:TAG][@DIGEST]; without a host it is Docker Hub's, "
		"without a tag\n"
		"\"latest\". Layers that are there already are not fetched again; a pull that "
		"broke off goes on where\n"
		"it was. Credentials are those of docker login (~/.docker/config.json and its "
		"helpers). Mirrors and\n"
		"registries without TLS are named in ~/.config/agentkernel/config.toml:\n"
		"\n"
		"  [registries.\"registry.example.org\"]\n"
		"  mirrors = [\"https://mirror.example.org\"]\n"
		"  insecure = true\n"
		"  private-redirects = true  # to addresses that are not public\n"
		"  timeout = \"30m\"          # of a whole pull; without: 6 hours",
	.examples = examples,
	.options = &imagewords_options,
	.run = run,
};
