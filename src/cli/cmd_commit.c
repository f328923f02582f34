/* cmd_commit - agentkernel commit: makes an image of a named sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_build.h"

static const char *const examples[] = {
	"agentkernel commit otter tools:2",
	"what otter has written, on the image that it was made from; 'agentkernel run -i tools:2' "
	"uses it",
	NULL,
};

struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Output", "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const struct words_rule rule = {
	.usage = "commit NAME REF",
	.options = &options,
	.min = 2,
	.max = 2,
};

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	struct flags flags = { 0 };
	char *words[3];
	struct op_commit_args args;
	struct committer_result result;
	cleanup_buf struct buf out;
	unsigned count = 0;
	struct json j;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	args = (struct op_commit_args){ words[0], words[1] };
	if (op_commit(context->ak, &args, &cli_events, &result, e) < 0)
		return -1;
	*ret_status = 0;
	if (!flags.is_json) {
		buf_addf(&out, "%s\n", result.digest);
		return cli_print(&out, e);
	}
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_text(&j, "sandbox", args.name);
	json_add_text(&j, "reference", args.image);
	json_add_text(&j, "digest", result.digest);
	json_add_number(&j, "layer_bytes", (int64_t)result.size_bytes);
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
}

const struct cli_command cmd_commit = {
	.name = "commit",
	.summary = "make an image of what a sandbox has written",
	.usage = "[options] NAME REF",
	.text = "The image is the sandbox's own with one more layer: all that it has written, but "
		"not "
		"what is\n"
		"mounted into it. A running sandbox is frozen only while the last changes are "
		"copied. "
		"Prints the\n"
		"image's digest.",
	.examples = examples,
	.options = &options,
	.run = run,
};
