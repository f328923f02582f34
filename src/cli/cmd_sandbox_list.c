/* cmd_sandbox_list - agentkernel sandbox list: lists sandboxes. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/say.h"
#include "cli/commands.h"
#include "ops/op_sandbox.h"
#include "ops/sandboxview.h"
#include "cli/words.h"
#include "named/inventory.h"

#include <string.h>

#define OUTPUT_MAX_BYTES (64u << 20)

static const char *const examples[] = {
	"agentkernel list",
	"the sandboxes that run",
	"agentkernel list --all --label project=web",
	"all with that label",
	"agentkernel list --all --quiet",
	"only names, for scripts",
	NULL,
};

struct flags {
	struct opts_list labels;
	bool is_all, is_json, is_quiet;
};

static const struct opt rows[] = {
	{ "Options", "all", 'a', NULL, "also those that do not run", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_all) },
	{ NULL, "label", 0, "KEY=VALUE", "only with this label", .kind = OPT_LIST,
	  .offset = offsetof(struct flags, labels) },
	{ NULL, "quiet", 'q', NULL, "only names", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_quiet) },
	{ NULL, "json", 0, NULL, "print one machine-readable array", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static bool has_label(const struct named *n, const char *label)
{
	for (char **own = n->labels; own && *own; own++)
		if (strcmp(*own, label) == 0)
			return true;
	return false;
}

static bool is_shown(const struct inventory_entry *entry, const struct flags *f)
{
	for (unsigned i = 0; i < f->labels.count; i++)
		if (!has_label(&entry->named, f->labels.texts[i]))
			return false;
	return f->is_all || namedrun_is_live(entry->state) || entry->state == NAMED_ASLEEP ||
	       entry->trouble[0];
}

static void add_row(struct table *t, const struct inventory_entry *entry)
{
	cleanup_buf struct buf state;
	cleanup_buf struct buf labels;
	char age[SANDBOXVIEW_AGE_MAX_BYTES] = "";

	buf_init(&state, BUF_TEXT_MAX_BYTES);
	buf_init(&labels, BUF_TEXT_MAX_BYTES);
	sandboxview_format_state(entry, &state);
	for (char **label = entry->named.labels; label && *label; label++)
		buf_addf(&labels, "%s%s", labels.len ? "," : "", *label);
	if (!entry->trouble[0])
		sandboxview_format_age(entry->named.created_s, age);
	table_add_row(t, (const char *const[]){ entry->named.name, buf_text(&state),
						entry->named.image ? entry->named.image : "", age,
						buf_text(&labels) });
}

static unsigned format(const struct inventory_list *list, const struct flags *f, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(5);
	unsigned hidden = 0;
	struct json j;

	json_init(&j, out);
	table_add_row(t, (const char *const[]){ "NAME", "STATE", "IMAGE", "AGE", "LABELS" });
	if (f->is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < list->count; i++) {
		const struct inventory_entry *entry = &list->entries[i];

		if (!is_shown(entry, f))
			hidden++;
		else if (f->is_json)
			sandboxview_add_object(&j, entry);
		else if (f->is_quiet)
			buf_addf(out, "%s\n", entry->named.name);
		else
			add_row(t, entry);
	}
	if (f->is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	} else if (!f->is_quiet) {
		table_format(t, out);
	}
	return hidden;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };
	const struct words_rule rule = { .usage = "sandbox list", .options = &options };
	const struct op_list_args all = { 0 };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	char *words[1];
	unsigned count = 0, hidden;

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    op_list(context->ak, &all, &cli_events, &list, e) < 0)
		return -1;
	hidden = format(&list, &flags, &out);
	*ret_status = 0;
	if (cli_print(&out, e) < 0)
		return -1;
	if (hidden && !flags.is_all && !flags.is_json && !flags.is_quiet)
		say("%u more do not run (--all shows them)", hidden);
	return 0;
}

const struct cli_command cmd_sandbox_list = {
	.name = "sandbox list",
	.summary = "list running sandboxes, or all",
	.usage = "[options]",
	.examples = examples,
	.options = &options,
	.run = run,
};
