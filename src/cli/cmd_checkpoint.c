/* cmd_checkpoint - agentkernel checkpoint create, list, restore, remove, export, import. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "ops/op_checkpoint.h"
#include "ops/sandboxview.h"
#include "cli/words.h"
#include "named/checkpointfile.h"
#include "policy/operation.h"

#include <stdio.h>

#define OUTPUT_MAX_BYTES (16u << 20)

static const char *const create_examples[] = {
	"agentkernel checkpoint create otter --comment 'before the upgrade'",
	"prints an id; the sandbox may run, and is frozen only for what changes while it is copied",
	"agentkernel checkpoint create otter --every 5m --keep 12",
	"one now, and while it runs one every five minutes in which something has changed; of "
	"those "
	"made\nso, the last twelve are kept",
	"agentkernel checkpoint create otter --every off",
	"ends that; the checkpoints stay",
	NULL,
};

struct flags {
	const char *comment, *every, *keep;
	bool is_json, is_quiet;
};

#define JSON_ROW                                                                                   \
	{                                                                                          \
		NULL, "json", 0, NULL, "print machine-readable output",                            \
			.kind = OPT_FLAG, .offset = offsetof(struct flags, is_json)                \
	}

static const struct opt create_rows[] = {
	{ "Options", "comment", 'c', "TEXT", "what it is for", .kind = OPT_TEXT,
	  .offset = offsetof(struct flags, comment) },
	{ NULL, "every", 0, "TIME", "also at this interval from now on (5s or more; off: no more)",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, every) },
	{ NULL, "keep", 0, "N", "how many of those are kept (1 to 1000, default 10)",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, keep) },
	JSON_ROW,
};
static const struct opts_table create_options = { create_rows, COUNT_OF(create_rows) };

static const struct opt list_rows[] = {
	{ "Options", "quiet", 'q', NULL, "only ids", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_quiet) },
	JSON_ROW,
};
static const struct opts_table list_options = { list_rows, COUNT_OF(list_rows) };

static void add_object(struct json *j, const struct checkpoint *c)
{
	json_open_object(j, NULL);
	sandboxview_add_checkpoint(j, c);
	json_close_object(j);
}

static void add_result(struct json *j, const struct op_checkpoint_result *r, bool has_interval)
{
	json_open_object(j, NULL);
	if (r->made.id[0]) {
		sandboxview_add_checkpoint(j, &r->made);
		json_add_number(j, "frozen_us", (int64_t)r->timing.frozen_us);
		json_add_number(j, "total_us", (int64_t)r->timing.total_us);
	}
	if (has_interval) {
		json_add_number(j, "every_ms", (int64_t)r->every_ms);
		json_add_number(j, "keep", (int64_t)r->keep);
	}
	json_close_object(j);
}

static int run_create(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	CLEANUP(op_checkpoint_result_done) struct op_checkpoint_result result = { 0 };
	struct op_checkpoint_args args = { 0 };
	const struct words_rule rule = {
		.usage = "checkpoint create NAME", .options = &create_options, .min = 1, .max = 1
	};
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];
	struct json j;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	args.comment = flags.comment;
	args.every = flags.every;
	if (flags.keep && parse_count(flags.keep, 1, OPERATION_KEEP_MAX, &args.keep, e) < 0)
		return err_wrap(e, "--keep");
	if (op_checkpoint(context->ak, &args, &cli_events, &result, e) < 0)
		return -1;
	json_init(&j, &out);
	if (flags.is_json)
		add_result(&j, &result, flags.every);
	else
		buf_add_text(&out, result.made.id);
	if (out.len > 0)
		buf_add_text(&out, "\n");
	*ret_status = 0;
	return cli_print(&out, e);
}

static void add_row(struct table *t, const struct checkpoint *c)
{
	char age[SANDBOXVIEW_AGE_MAX_BYTES], entries[24];
	char size[PARSE_FORMAT_MAX_BYTES], alone[PARSE_FORMAT_MAX_BYTES];

	sandboxview_format_age(c->created_s, age);
	(void)snprintf(entries, sizeof(entries), "%llu", (unsigned long long)c->entries);
	table_add_row(t,
		      (const char *const[]){
			      c->id, c->sandbox, age, entries, parse_format_bytes(c->bytes, size),
			      c->has_cost ? parse_format_bytes(c->alone_bytes, alone) : "?",
			      c->is_automatic ? "interval" : "command",
			      c->comment ? c->comment : "" });
}

static void format_list(const struct checkpoint_list *list, const struct flags *f, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(8);
	struct json j;

	json_init(&j, out);
	table_add_row(t, (const char *const[]){ "ID", "SANDBOX", "AGE", "FILES", "SIZE", "ALONE",
						"MADE BY", "COMMENT" });
	if (f->is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < list->count; i++) {
		if (f->is_json)
			add_object(&j, &list->entries[i]);
		else if (f->is_quiet)
			buf_addf(out, "%s\n", list->entries[i].id);
		else
			add_row(t, &list->entries[i]);
	}
	if (f->is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	} else if (!f->is_quiet) {
		table_format(t, out);
	}
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	struct op_checkpoint_list_args args = { 0 };
	const struct words_rule rule = { .usage = "checkpoint list [NAME]",
					 .options = &list_options,
					 .max = 1 };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	args.has_costs = !flags.is_quiet;
	if (op_checkpoint_list(context->ak, &args, &cli_events, &list, e) < 0)
		return -1;
	format_list(&list, &flags, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

static int run_restore(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	const struct words_rule rule = { .usage = "checkpoint restore NAME ID",
					 .min = 2,
					 .max = 2 };
	struct op_restore_args args;
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0)
		return -1;
	*ret_status = 0;
	args = (struct op_restore_args){ .name = words[0], .id = words[1] };
	return op_restore(context->ak, &args, &cli_events, e);
}

static int run_remove(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	const struct words_rule rule = { .usage = "checkpoint remove ID...",
					 .min = 1,
					 .max = WORDS_MAX };
	char *words[WORDS_MAX + 1];
	unsigned count = 0;

	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0)
		return -1;
	for (unsigned i = 0; i < count; i++) {
		const struct op_checkpoint_remove_args args = { .id = words[i] };

		if (op_checkpoint_remove(context->ak, &args, &cli_events, e) < 0)
			return -1;
	}
	*ret_status = 0;
	return 0;
}

static int run_export(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	const struct words_rule rule = { .usage = "checkpoint export ID FILE", .min = 2, .max = 2 };
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0)
		return -1;
	*ret_status = 0;
	return checkpointfile_export(context->ak, words[0], words[1], e);
}

static int run_import(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	const struct words_rule rule = { .usage = "checkpoint import FILE", .min = 1, .max = 1 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0 ||
	    checkpointfile_import(context->ak, words[0], &c, e) < 0)
		return -1;
	buf_addf(&out, "%s\n", c.id);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_checkpoint_create = {
	.name = "checkpoint create",
	.summary = "save what a sandbox has on disk",
	.usage = "NAME [--comment TEXT] [--every TIME [--keep N]]",
	.text = "With --every, the sandbox's supervisor makes more of them while the sandbox runs, "
		"also after a\n"
		"restart: none if nothing has changed since the latest one. When there are more "
		"than "
		"--keep says,\n"
		"the oldest one that the interval has made is removed; others never are. 'info' "
		"shows the\n"
		"interval, and why the last one failed, if it did.",
	.examples = create_examples,
	.options = &create_options,
	.run = run_create,
};

const struct cli_command cmd_checkpoint_list = {
	.name = "checkpoint list",
	.summary = "list the checkpoints of one sandbox or of all",
	.usage = "[NAME]",
	.text = "SIZE is what the sandbox had written; ALONE is what removing this checkpoint "
		"alone "
		"frees: the rest\n"
		"is shared with other checkpoints or needed by sandboxes. MADE BY is 'interval' "
		"for "
		"those of\n"
		"'create --every', the oldest of which are removed when there are too many.",
	.options = &list_options,
	.run = run_list,
};

const struct cli_command cmd_checkpoint_restore = {
	.name = "checkpoint restore",
	.summary = "put a sandbox back to a checkpoint",
	.usage = "NAME ID",
	.text = "What it has written since is gone. Its policy stays as it is. One that runs is "
		"stopped, and\n"
		"started again afterwards. The checkpoint's files are checked against their "
		"digests "
		"first.",
	.run = run_restore,
};

const struct cli_command cmd_checkpoint_remove = {
	.name = "checkpoint remove",
	.summary = "remove checkpoints; sandboxes made from them keep what they need",
	.usage = "ID...",
	.run = run_remove,
};

const struct cli_command cmd_checkpoint_export = {
	.name = "checkpoint export",
	.summary = "write a checkpoint to one file, with digests",
	.usage = "ID FILE",
	.text = "The image is not in it, only its name and digest; nor is the policy.",
	.run = run_export,
};

const struct cli_command cmd_checkpoint_import = {
	.name = "checkpoint import",
	.summary = "read a checkpoint from such a file, and print its new id",
	.usage = "FILE",
	.text = "'create --from ID' makes a sandbox of it; its policy is what the options of that\n"
		"command say.",
	.run = run_import,
};
