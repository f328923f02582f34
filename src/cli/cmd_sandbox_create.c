/* cmd_sandbox_create - agentkernel sandbox create: creates a named sandbox without starting it. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/runoptions.h"
#include "cli/words.h"
#include "ops/devcontainer.h"
#include "ops/op_sandbox.h"

static const char *const examples[] = {
	"agentkernel sandbox create otter --image debian:12",
	"a sandbox of its own from an image; 'agentkernel start otter' starts it",
	"agentkernel create build --workspace --profile moderate --ttl 8h",
	"this directory inside, gone after eight hours",
	"agentkernel create again --from 3f2a9c1d4e5b",
	"what a checkpoint holds, with the policy it was taken with",
	"agentkernel create dev --devcontainer",
	"what .devcontainer/devcontainer.json of this directory describes",
	NULL,
};

static int print_json(const char *name, const char *id, struct err *e)
{
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_text(&j, "name", name);
	json_add_text(&j, "id", id);
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	struct op_create_args args = { .request = &o.request };
	struct op_create_result result;
	unsigned count = 0;

	args.words = words_cut_command(argv);
	if (runoptions_collect(&runoptions_create, argv, context->ak, &o, &args.name, 1, &count,
			       e) < 0 ||
	    runoptions_read_ttl(&o.flags, &args.ttl_ms, e) < 0)
		return -1;
	if (o.flags.devcontainer &&
	    devcontainer_load(&o.request, o.flags.devcontainer, &cli_events, e) < 0)
		return -1;
	if (!args.name && args.words) { /* `create OPTION... -- NAME` */
		args.name = *args.words++;
		args.words = *args.words ? args.words : NULL;
	}
	args.from = o.flags.from;
	args.labels = (char *const *)(uintptr_t)o.flags.labels.texts;
	if (op_create(context->ak, &args, &cli_events, &result, e) < 0)
		return -1;
	*ret_status = 0;
	return o.flags.is_json ? print_json(result.name, result.id, e) : 0;
}

const struct cli_command cmd_sandbox_create = {
	.name = "sandbox create",
	.summary = "create a sandbox that stays until it is removed",
	.usage = "NAME [options] [-- COMMAND...]",
	.text = "All that it writes, its /tmp and home included, is its disk: it is there again at "
		"the\n"
		"next start, and goes into checkpoints and forks. The policy that these options "
		"make is\n"
		"stored with it and holds at every start. It is not started. COMMAND is its "
		"service "
		"'main',\n"
		"which runs whenever the sandbox does.",
	.examples = examples,
	.options = &runoptions_create,
	.run = run,
};
