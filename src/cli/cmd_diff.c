/* cmd_diff - agentkernel diff: what a sandbox has changed against its image. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "engine/changes.h"

#include <string.h>

#define OUTPUT_MAX_BYTES (256u << 20)

struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable array", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* Names are the sandbox's choice: they must not steer the reader's terminal or fake lines. */
static void add_path(struct buf *out, const char *path)
{
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (c < ' ' || c == 0x7f)
			buf_addf(out, "\\x%02x", c);
		else
			buf_add(out, path, 1);
	}
}

static void format(const struct treediff *d, bool is_json, struct buf *out)
{
	char letter[2] = "";
	struct json j;

	json_init(&j, out);
	if (is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < d->count; i++) {
		letter[0] = treediff_letter(d->list[i].kind);
		if (is_json) {
			json_open_object(&j, NULL);
			json_add_text(&j, "kind", letter);
			json_add_text(&j, "path", d->list[i].path);
			json_close_object(&j);
			continue;
		}
		buf_addf(out, "%s ", letter);
		add_path(out, d->list[i].path);
		buf_add_text(out, "\n");
	}
	if (is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	}
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings none = { 0 };
	CLEANUP(treediff_done) struct treediff diff = { 0 };
	const struct words_rule rule = {
		.usage = "diff NAME", .options = &options, .min = 1, .max = 1
	};
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0 ||
	    changes_find(context->environ_list, words[0], &diff, e) < 0)
		return -1;
	format(&diff, flags.is_json, &out);
	if (diff.is_cut || out.is_cut)
		cli_say("there are more changes than are shown");
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_diff = {
	.name = "diff",
	.summary = "list what a sandbox has changed against its image",
	.usage = "NAME [--json]",
	.text = "A is added, C changed, D deleted.",
	.options = &options,
	.run = run,
};
