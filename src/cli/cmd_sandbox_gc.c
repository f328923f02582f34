/* cmd_sandbox_gc - agentkernel sandbox gc: removes leftovers of crashes and expired sandboxes. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/namedgc.h"

struct flags {
	bool is_dry, is_json;
};

static const struct opt rows[] = {
	{ "Options", "dry-run", 0, NULL, "only say what would be done", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_dry) },
	{ NULL, "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static void format(const struct namedgc_counts *g, const struct flags *f, struct buf *out)
{
	struct json j;

	if (!f->is_json) {
		buf_addf(out, "expired sandboxes removed: %u\n", g->expired);
		buf_addf(out, "sandboxes cleaned up after their supervisor: %u\n", g->dead);
		buf_addf(out, "unfinished sandboxes removed: %u\n", g->leftovers);
		buf_addf(out, "unused layers removed: %u\n", g->layers);
		buf_addf(out, "quarantines of more than 30 days removed: %u\n", g->quarantined);
		return;
	}
	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_number(&j, "expired", g->expired);
	json_add_number(&j, "dead", g->dead);
	json_add_number(&j, "leftovers", g->leftovers);
	json_add_number(&j, "layers", g->layers);
	json_add_number(&j, "pins", g->pins);
	json_add_number(&j, "quarantined", g->quarantined);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "sandbox gc", .options = &options };
	struct namedgc_counts garbage = { 0 };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[1];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    namedgc_collect(context->ak, flags.is_dry ? NAMEDGC_DRY : 0, &garbage, e) < 0)
		return -1;
	format(&garbage, &flags, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_sandbox_gc = {
	.name = "sandbox gc",
	.summary = "remove expired sandboxes and what crashes have left",
	.usage = "[--dry-run]",
	.options = &options,
	.run = run,
};
