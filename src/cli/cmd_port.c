/* cmd_port - agentkernel port list, add, remove: reach ports of a sandbox from the host. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_port.h"
#include "ops/op_reach.h"

#include <stdio.h>

static const char *const examples[] = {
	"agentkernel port add web 8080:3000",
	"port 3000 inside is reachable at 127.0.0.1:8080, from now on and after each start",
	"agentkernel port add web 0:3000",
	"at a free port, which is printed",
	"agentkernel port list web",
	"where which port is reachable",
	NULL,
};

struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static void format_table(const struct op_port_list_result *r, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(3);

	if (r->count == 0)
		return;
	table_add_row(t, (const char *const[]){ "AT", "PORT INSIDE", "UNTIL" });
	for (unsigned i = 0; i < r->count; i++) {
		char inner[16];

		(void)snprintf(inner, sizeof(inner), "%u", (unsigned)r->ports[i].inner);
		table_add_row(t, (const char *const[]){ r->ports[i].at, inner,
							r->ports[i].is_kept ? "removed"
									    : "'forward' ends" });
	}
	table_format(t, out);
}

static void format_json(const struct op_port_list_result *r, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_open_array(&j, "ports");
	for (unsigned i = 0; i < r->count; i++) {
		json_open_object(&j, NULL);
		json_add_text(&j, "at", r->ports[i].at);
		json_add_number(&j, "port", r->ports[i].inner);
		json_add_bool(&j, "kept", r->ports[i].is_kept);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = {
		.usage = "port list NAME", .options = &options, .min = 1, .max = 1
	};
	CLEANUP(op_port_list_result_done) struct op_port_list_result result = { 0 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_port_list_args args;
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	if (op_port_list(context->ak, &args, &cli_events, &result, e) < 0)
		return -1;
	if (flags.is_json)
		format_json(&result, &out);
	else
		format_table(&result, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

static int change(const struct cli_context *context, char **argv, bool is_adding,
		  const struct words_rule *rule, int *ret_status, struct err *e)
{
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_port_change_args args = { .is_adding = is_adding };
	char *words[WORDS_MAX + 1];
	unsigned count = 0;

	if (words_read(rule, argv, NULL, &none, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	args.ports = words + 1;
	*ret_status = 0;
	return op_port_change(context->ak, &args, &cli_events, e);
}

static int run_add(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "port add NAME [ADDR:]PORT[:INNER]...",
					 .min = 2,
					 .max = WORDS_MAX };

	return change(context, argv, true, &rule, ret_status, e);
}

static int run_remove(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	const struct words_rule rule = { .usage = "port remove NAME PORT...",
					 .min = 2,
					 .max = WORDS_MAX };

	return change(context, argv, false, &rule, ret_status, e);
}

static int change_access(const struct cli_context *context, char **argv, bool is_public,
			 const char *usage, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = usage, .min = 2, .max = 2 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_port_access_args args = { .is_public = is_public };
	char *words[3];
	unsigned count = 0;
	uint64_t port = 0;

	if (words_read(&rule, argv, NULL, &none, words, &count, e) < 0 ||
	    parse_count(words[1], 1, UINT16_MAX, &port, e) < 0)
		return -1;
	args.name = words[0];
	args.port = (uint32_t)port;
	*ret_status = 0;
	return op_port_access(context->ak, &args, &cli_events, e);
}

static int run_public(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	return change_access(context, argv, true, "port public NAME PORT", ret_status, e);
}

static int run_private(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	return change_access(context, argv, false, "port private NAME PORT", ret_status, e);
}

const struct cli_command cmd_port_list = {
	.name = "port list",
	.summary = "where ports of a sandbox are reachable",
	.usage = "NAME",
	.options = &options,
	.run = run_list,
};

const struct cli_command cmd_port_add = {
	.name = "port add",
	.summary = "reach ports of a sandbox at ports of this machine, at once",
	.usage = "NAME [ADDR:]PORT[:INNER]...",
	.examples = examples,
	.run = run_add,
};

const struct cli_command cmd_port_remove = {
	.name = "port remove",
	.summary = "end that; open connections close",
	.usage = "NAME PORT...",
	.run = run_remove,
};

const struct cli_command cmd_port_public = {
	.name = "port public",
	.summary = "show a port's URL at 'agentkernel serve' to everybody, without a key",
	.usage = "NAME PORT",
	.run = run_public,
};

const struct cli_command cmd_port_private = {
	.name = "port private",
	.summary = "show it to those with a key or a link alone, as at first",
	.usage = "NAME PORT",
	.run = run_private,
};
