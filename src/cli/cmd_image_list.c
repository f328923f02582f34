/* cmd_image_list - agentkernel image list: lists the images in the store. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/imagewords.h"
#include "ops/sandboxview.h"
#include "engine/images.h"

#include <stdio.h>

#define OUTPUT_MAX_BYTES (16u << 20)
#define DIGEST_SHOWN_BYTES 19 /* "sha256:" and twelve digits */

static const char *const examples[] = {
	"agentkernel image list",
	"names, digests, ages and sizes",
	"agentkernel image list --quiet",
	"only the names, for scripts",
	NULL,
};

static const struct opt rows[] = {
	IMAGEWORDS_JSON,
	{ NULL, "quiet", 'q', NULL, "only names", .kind = OPT_FLAG,
	  .offset = offsetof(struct imagewords_flags, is_quiet) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static void add_row(struct table *t, const struct images_entry *entry)
{
	char size[PARSE_FORMAT_MAX_BYTES], age[SANDBOXVIEW_AGE_MAX_BYTES],
		digest[DIGEST_SHOWN_BYTES + 1], layers[16];

	sandboxview_format_age(entry->record.added_s, age);
	(void)snprintf(digest, sizeof(digest), "%s", entry->record.digest);
	(void)snprintf(layers, sizeof(layers), "%u", entry->record.layer_count);
	table_add_row(t, (const char *const[]){ entry->name, digest, layers,
						parse_format_bytes(entry->record.size_bytes, size),
						age });
}

static void add_object(struct json *j, const struct images_entry *entry)
{
	json_open_object(j, NULL);
	json_add_text(j, "reference", entry->full_name);
	json_add_text(j, "digest", entry->record.digest);
	json_add_text(j, "config_digest", entry->record.config);
	json_add_number(j, "layers", entry->record.layer_count);
	json_add_number(j, "size", (int64_t)entry->record.size_bytes);
	json_add_number(j, "added", (int64_t)entry->record.added_s);
	json_add_text(j, "created", entry->record.created);
	json_close_object(j);
}

static void format(const struct images_list *list, const struct imagewords_flags *flags,
		   struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(5);
	struct json j;

	json_init(&j, out);
	table_add_row(t, (const char *const[]){ "NAME", "DIGEST", "LAYERS", "SIZE", "AGE" });
	if (flags->is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < list->count; i++) {
		if (flags->is_json)
			add_object(&j, &list->entries[i]);
		else if (flags->is_quiet)
			buf_addf(out, "%s\n", list->entries[i].name);
		else
			add_row(t, &list->entries[i]);
	}
	if (flags->is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	} else if (!flags->is_quiet) {
		table_format(t, out);
	}
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(images_list_done) struct images_list list = { 0 };
	const struct words_rule rule = { .usage = "image list", .options = &options };
	struct imagewords_flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[1];

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    images_list(context->ak, &list, e) < 0)
		return -1;
	format(&list, &flags, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_image_list = {
	.name = "image list",
	.summary = "list the images in the store",
	.usage = "[options]",
	.examples = examples,
	.options = &options,
	.run = run,
};
