/* cmd_sandbox_info - agentkernel sandbox info: shows one sandbox's details. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "ops/sandboxview.h"
#include "cli/words.h"
#include "named/named.h"
#include "policy/policyshow.h"

#include <inttypes.h>


struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static void add(struct table *t, const char *key, const char *value)
{
	table_add_row(t, (const char *const[]){ key, value ? value : "none" });
}

static void add_time(struct table *t, const char *key, uint64_t time_s)
{
	char text[TIMESTAMP_TEXT_MAX_BYTES];

	if (time_s)
		add(t, key, timestamp_format(time_s * 1000, text));
}

/* The policy's disk size is `run`'s default; without --disk a named sandbox has no disk limit. */
static void format_field(const struct named *n, const struct policy *p, enum policy_field field,
			 struct buf *out)
{
	if (field == POLICY_DISK && !n->has_disk_limit)
		buf_add_text(out, "no limit");
	else
		policyshow_field(p, field, out);
}

static void add_checkpoints(struct table *t, const struct inventory_entry *entry)
{
	const struct named *n = &entry->named;
	const char *trouble = sandboxview_find_trouble(entry);
	char every[PARSE_FORMAT_MAX_BYTES];
	cleanup_buf struct buf text;

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	if (!n->checkpoint_every_ms)
		return;
	buf_addf(&text, "every %s, the last %" PRIu64 " are kept",
		 parse_format_duration(n->checkpoint_every_ms, every), n->checkpoint_keep);
	if (trouble)
		buf_addf(&text, "; the last one failed: %s", trouble);
	add(t, "checkpoints", buf_text(&text));
}

static void format_table(const struct inventory_entry *entry, const struct policy *p,
			 struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(2);
	const struct named *n = &entry->named;
	cleanup_buf struct buf state;

	buf_init(&state, BUF_TEXT_MAX_BYTES);
	sandboxview_format_state(entry, &state);
	add(t, "name", n->name);
	add(t, "id", n->id);
	add(t, "state", buf_text(&state));
	add(t, "made from", n->origin ? n->origin : n->image);
	if (n->owner)
		add(t, "owner", n->owner);
	add_time(t, "created", n->created_s);
	add_time(t, "expires", n->expires_s);
	add_time(t, "started", entry->run.started_s);
	if (entry->state == NAMED_STOPPED)
		add_time(t, "ended", entry->run.ended_s);
	add_checkpoints(t, entry);
	for (char **label = n->labels; label && *label; label++)
		add(t, "label", *label);
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf value;

		buf_init(&value, BUF_TEXT_MAX_BYTES);
		format_field(n, p, field, &value);
		add(t, policy_field_name(field), buf_text(&value));
	}
	table_format(t, out);
}

static void format_json(const struct inventory_entry *entry, const struct policy *p,
			struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	sandboxview_add_members(&j, entry);
	json_open_object(&j, "policy");
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf value;

		buf_init(&value, BUF_TEXT_MAX_BYTES);
		format_field(&entry->named, p, field, &value);
		json_add_text(&j, policy_field_name(field), buf_text(&value));
	}
	json_close_object(&j);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(named_done) struct named n;
	const struct words_rule rule = {
		.usage = "sandbox info NAME", .options = &options, .min = 1, .max = 1
	};
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	named_init(&n);
	named_init(&entry.named);
	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    inventory_info(context->ak, words[0], &entry, e) < 0 ||
	    named_open(context->ak, words[0], &n, e) < 0 || named_load_policy(&n, &policy, e) < 0)
		return -1;
	if (flags.is_json)
		format_json(&entry, &policy, &out);
	else
		format_table(&entry, &policy, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_sandbox_info = {
	.name = "sandbox info",
	.summary = "show a sandbox's state and its policy",
	.usage = "NAME [--json]",
	.options = &options,
	.run = run,
};
