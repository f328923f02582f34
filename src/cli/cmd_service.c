/*
 * cmd_service - agentkernel service add, list, restart, remove, logs: commands that run as long as
 * a sandbox does.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const examples[] = {
	"agentkernel service add shop web --port 3000 -- npm start",
	"runs whenever sandbox 'shop' does; ready when port 3000 answers",
	"agentkernel service add shop worker --needs web -- npm run worker",
	"starts when 'web' is ready",
	"agentkernel service logs shop web -f",
	"what it prints, as it comes",
	NULL,
};

struct flags {
	bool is_json, follows;
	const char *port, *workdir;
	struct opts_list needs, env;
};

static const struct opt add_rows[] = {
	{ "Options", "port", 0, "N", "it is ready when this port answers, and reached on it",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, port) },
	{ "Options", "needs", 0, "SERVICE", "start it when that one is ready; repeatable",
	  .kind = OPT_LIST, .offset = offsetof(struct flags, needs) },
	{ "Options", "env", 'e', "NAME[=VALUE]",
	  "set a variable; without a value: your own, as it is now", .kind = OPT_LIST,
	  .offset = offsetof(struct flags, env) },
	{ "Options", "workdir", 'w', "DIR", "where it starts, inside", .kind = OPT_TEXT,
	  .offset = offsetof(struct flags, workdir) },
};
static const struct opts_table add_options = { add_rows, COUNT_OF(add_rows) };

static const struct opt list_rows[] = {
	{ "Options", "json", 0, NULL, "one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table list_options = { list_rows, COUNT_OF(list_rows) };

static const struct opt logs_rows[] = {
	{ "Options", "follow", 'f', NULL, "go on until it has ended", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, follows) },
};
static const struct opts_table logs_options = { logs_rows, COUNT_OF(logs_rows) };

/* ---- add ---- */

static int fill(struct service *s, const struct flags *f, char **words, char **command,
		struct err *e)
{
	uint64_t port = 0;

	if (strlen(words[1]) > SERVICE_NAME_MAX_BYTES)
		return err_set(e, ERR_INVALID, "the name of a service has at most %u characters",
			       SERVICE_NAME_MAX_BYTES);
	memcpy(s->name, words[1], strlen(words[1]));
	if (f->port && parse_count(f->port, 1, UINT16_MAX, &port, e) < 0)
		return err_wrap(e, "--port");
	s->port = (uint32_t)port;
	if (f->workdir && f->workdir[0] != '/')
		return err_set(e, ERR_INVALID, "--workdir: '%s' is not an absolute path",
			       f->workdir);
	s->workdir = f->workdir ? mem_dup(f->workdir) : NULL;
	for (unsigned i = 0; i < f->needs.count; i++)
		(void)keyrows_list_add(&s->needs, f->needs.texts[i]);
	for (unsigned i = 0; i < f->env.count; i++)
		(void)keyrows_list_add(&s->env, f->env.texts[i]);
	for (; *command; command++)
		(void)keyrows_list_add(&s->words, *command);
	return 0;
}

static int run_add(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = {
		.usage = "service add NAME SERVICE [--port N] -- COMMAND...",
		.options = &add_options,
		.min = 2,
		.max = 2
	};
	CLEANUP(settings_done) struct settings none = { 0 };
	CLEANUP(services_done_one) struct service s = { .port = 0 };
	char **command = words_cut_command(argv);
	char *words[3];
	struct op_service_add_args args = { .service = &s };
	struct flags flags = { 0 };
	unsigned count = 0;

	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0)
		return -1;
	if (!command)
		return err_set(e, ERR_INVALID,
			       "missing argument COMMAND, after '--': agentkernel %s", rule.usage);
	if (fill(&s, &flags, words, command, e) < 0)
		return -1;
	args.name = words[0];
	*ret_status = 0;
	return op_service_add(context->ak, &args, &cli_events, e);
}

/* ---- list ---- */

static const char *format_port(uint32_t port, char out[16])
{
	out[0] = '\0';
	if (port)
		(void)snprintf(out, 16, "%" PRIu32, port);
	return out;
}

static void format_table(const struct op_service_list_result *r, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(5);

	if (r->services.count == 0)
		return;
	table_add_row(t,
		      (const char *const[]){ "SERVICE", "STATE", "PORT", "RESTARTS", "COMMAND" });
	for (unsigned i = 0; i < r->services.count; i++) {
		const struct service *s = &r->services.list[i];
		char port[16], restarts[16];
		cleanup_buf struct buf command;

		buf_init(&command, BUF_TEXT_MAX_BYTES);
		for (char *const *word = s->words; word && *word; word++)
			buf_addf(&command, "%s%s", command.len ? " " : "", *word);
		(void)snprintf(restarts, sizeof(restarts), "%" PRIu32,
			       r->shown ? r->shown[i].restarts : 0);
		table_add_row(t, (const char *const[]){ s->name, op_service_state_word(r, i),
							format_port(s->port, port), restarts,
							buf_text(&command) });
	}
	table_format(t, out);
}

static void format_json(const struct op_service_list_result *r, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	op_service_add_json(r, &j);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = {
		.usage = "service list NAME", .options = &list_options, .min = 1, .max = 1
	};
	CLEANUP(op_service_list_result_done) struct op_service_list_result result = { 0 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_service_list_args args;
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	if (op_service_list(context->ak, &args, &cli_events, &result, e) < 0)
		return -1;
	if (flags.is_json)
		format_json(&result, &out);
	else
		format_table(&result, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

/* ---- the rest ---- */

static int act(const struct cli_context *context, char **argv, const char *usage,
	       int (*op)(struct ak *, const struct op_service_args *, const struct op_events *,
			 struct err *),
	       int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = usage, .min = 2, .max = 2 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_service_args args;
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, NULL, &none, words, &count, e) < 0)
		return -1;
	args = (struct op_service_args){ .name = words[0], .service = words[1] };
	*ret_status = 0;
	return op(context->ak, &args, &cli_events, e);
}

static int run_restart(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	return act(context, argv, "service restart NAME SERVICE", op_service_restart, ret_status,
		   e);
}

static int run_remove(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	return act(context, argv, "service remove NAME SERVICE", op_service_remove, ret_status, e);
}

/* The log of its last start is that of a detached command. */
static int run_logs(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "service logs NAME SERVICE [-f]",
					 .options = &logs_options,
					 .min = 2,
					 .max = 2 };
	CLEANUP(op_service_list_result_done) struct op_service_list_result all = { 0 };
	CLEANUP(settings_done) struct settings none = { 0 };
	struct op_service_list_args args;
	struct flags flags = { 0 };
	char *words[3], id[16] = "";
	char *logs_argv[] = { NULL, id, NULL, NULL };
	unsigned count = 0;

	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0)
		return -1;
	args.name = logs_argv[0] = words[0];
	if (op_service_list(context->ak, &args, &cli_events, &all, e) < 0)
		return -1;
	for (unsigned i = 0; all.shown && i < all.services.count; i++)
		if (strcmp(all.services.list[i].name, words[1]) == 0 && all.shown[i].task_id)
			(void)snprintf(id, sizeof(id), "%08" PRIx32, all.shown[i].task_id);
	if (!services_find(&all.services, words[1]))
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no service named '%s'", words[0],
			       words[1]);
	if (!id[0])
		return err_set(e, ERR_NOT_FOUND, "service '%s' has not been started yet", words[1]);
	if (flags.follows)
		logs_argv[2] = (char *)(uintptr_t) "--follow";
	return cmd_logs.run(context, logs_argv, ret_status, e);
}

const struct cli_command cmd_service_add = {
	.name = "service add",
	.summary = "run a command whenever a sandbox runs",
	.usage = "NAME SERVICE [options] -- COMMAND...",
	.text = "It is started with the sandbox, and again, after a growing delay, when it ends. "
		"One "
		"of the\n"
		"same name is replaced. Services do not keep a sandbox with --idle-timeout awake.",
	.examples = examples,
	.options = &add_options,
	.run = run_add,
};

const struct cli_command cmd_service_list = {
	.name = "service list",
	.summary = "the services of a sandbox",
	.usage = "NAME",
	.options = &list_options,
	.run = run_list,
};

const struct cli_command cmd_service_restart = {
	.name = "service restart",
	.summary = "end a service's command and start it again",
	.usage = "NAME SERVICE",
	.run = run_restart,
};

const struct cli_command cmd_service_remove = {
	.name = "service remove",
	.summary = "end a service for good",
	.usage = "NAME SERVICE",
	.run = run_remove,
};

const struct cli_command cmd_service_logs = {
	.name = "service logs",
	.summary = "what a service has printed since its last start",
	.usage = "NAME SERVICE [-f]",
	.options = &logs_options,
	.run = run_logs,
};
