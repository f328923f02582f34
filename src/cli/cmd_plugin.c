/* cmd_plugin - agentkernel plugin install, remove, list: settings of coding agents. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/table.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "agents/plugin.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <assert.h>
#include <string.h>

#define ALL "all"

static const char *const install_examples[] = {
	"agentkernel plugin install claude",
	"in this project: .mcp.json, a skill, and the command /sandbox",
	"agentkernel plugin install codex --global",
	"for all of your projects, in ~/.codex and ~/.agents",
	"agentkernel plugin install codex --approve",
	"and codex does not ask before each call: what a sandbox may do was decided already",
	"agentkernel plugin install all --dry-run",
	"what would be written for every client, and nothing is",
	NULL,
};

struct flags {
	bool is_global, is_forced, is_dry, is_approved, is_json;
};

#define CHANGE_ROWS(force_help)                                                                    \
	{ "Options",                                                                               \
	  "global",                                                                                \
	  'g',                                                                                     \
	  NULL,                                                                                    \
	  "in your own settings, for all projects",                                                \
	  .kind = OPT_FLAG,                                                                        \
	  .offset = offsetof(struct flags, is_global) },                                           \
		{ NULL,                                                                            \
		  "force",                                                                         \
		  'f',                                                                             \
		  NULL,                                                                            \
		  force_help,                                                                      \
		  .kind = OPT_FLAG,                                                                \
		  .offset = offsetof(struct flags, is_forced) },                                   \
	{                                                                                          \
		NULL, "dry-run", 0, NULL, "only say what would be done",                           \
			.kind = OPT_FLAG, .offset = offsetof(struct flags, is_dry)                 \
	}

static const struct opt install_rows[] = {
	CHANGE_ROWS("replace what is there and differs"),
	{ NULL, "approve", 0, NULL, "let codex and gemini call the tools without asking each time",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_approved) },
};
static const struct opts_table install_options = { install_rows, COUNT_OF(install_rows) };

static const struct opt remove_rows[] = { CHANGE_ROWS("also what is not as it was installed") };
static const struct opts_table remove_options = { remove_rows, COUNT_OF(remove_rows) };

static const struct opt list_rows[] = {
	{ "Options", "json", 0, NULL, "print machine-readable output", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table list_options = { list_rows, COUNT_OF(list_rows) };

static const char *const change_words[] = {
	[PLUGIN_UNCHANGED] = "unchanged",
	[PLUGIN_CREATED] = "created",
	[PLUGIN_CHANGED] = "changed",
	[PLUGIN_REMOVED] = "removed",
	[PLUGIN_KEPT] = "kept (another client uses it)",
};
static_assert(COUNT_OF(change_words) == PLUGIN_CHANGE_COUNT, "a change has no word");

static const char *const state_words[] = {
	[PLUGIN_NOT_INSTALLED] = "not installed",
	[PLUGIN_INSTALLED] = "installed",
	[PLUGIN_DIFFERENT] = "changed",
	[PLUGIN_UNREADABLE] = "unreadable",
};
static_assert(COUNT_OF(state_words) == PLUGIN_STATE_COUNT, "a state has no word");

static const char *const scope_words[] = {
	[PLUGINTABLE_PROJECT] = "project",
	[PLUGINTABLE_GLOBAL] = "global",
};
static_assert(COUNT_OF(scope_words) == PLUGINTABLE_SCOPE_COUNT, "a scope has no word");

/* ---- which clients ---- */

static int unknown_client(const char *word, struct err *e)
{
	const char *names[PLUGINTABLE_CLIENT_COUNT + 1];
	const char *nearest;

	for (size_t i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++)
		names[i] = plugintable_clients[i].name;
	names[PLUGINTABLE_CLIENT_COUNT] = ALL;
	nearest = suggest_nearest(word, names, COUNT_OF(names));
	if (nearest)
		return err_set(e, ERR_INVALID, "no client '%s', did you mean '%s'?", word, nearest);
	return err_set(e, ERR_INVALID,
		       "no client '%s' (use claude, codex, gemini, opencode, mcp or all)", word);
}

static int read_client(const char *word, unsigned *clients, struct err *e)
{
	if (strcmp(word, ALL) == 0) {
		*clients |= (1u << PLUGINTABLE_CLIENT_COUNT) - 1;
		return 0;
	}
	for (size_t i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++) {
		if (strcmp(word, plugintable_clients[i].name) == 0) {
			*clients |= 1u << i;
			return 0;
		}
	}
	return unknown_client(word, e);
}

static int read_request(const struct cli_context *context, const struct words_rule *rule,
			char **argv, struct plugin_request *ret, struct err *e)
{
	char *words[PLUGINTABLE_CLIENT_COUNT + 2];
	struct flags flags = { 0 };
	unsigned count = 0;

	if (words_read(rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	*ret = (struct plugin_request){
		.ak = context->ak,
		.scope = flags.is_global ? PLUGINTABLE_GLOBAL : PLUGINTABLE_PROJECT,
		.flags = (flags.is_forced ? PLUGIN_FORCE : 0u) | (flags.is_dry ? PLUGIN_DRY : 0u) |
			 (flags.is_approved ? PLUGIN_APPROVE : 0u),
	};
	for (unsigned i = 0; i < count; i++)
		if (read_client(words[i], &ret->clients, e) < 0)
			return -1;
	return 0;
}

/* ---- installing and removing ---- */

static void format_report(const struct plugin_report *report, const struct plugin_request *r,
			  struct buf *out)
{
	for (size_t i = 0; i < report->count; i++) {
		enum plugin_change change = report->steps[i].change;
		bool is_done = change == PLUGIN_UNCHANGED || change == PLUGIN_KEPT ||
			       !(r->flags & PLUGIN_DRY);

		buf_addf(out, "%s%s: %s\n", is_done ? "" : "would be ", change_words[change],
			 report->steps[i].path);
	}
}

/* Other clients have no known global file: prints settings to paste. */
static int add_snippet(const struct plugin_request *r, struct buf *out, struct err *e)
{
	cleanup_free char *snippet = NULL;

	if (r->scope != PLUGINTABLE_GLOBAL || !(r->clients & 1u << PLUGINTABLE_MCP))
		return 0;
	if (plugin_format_snippet(r->ak, &snippet, e) < 0)
		return -1;
	say("no file is read by all MCP clients: paste this into the settings of yours");
	buf_add_text(out, snippet);
	return 0;
}

static bool has_change(const struct plugin_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->steps[i].change != PLUGIN_UNCHANGED)
			return true;
	return false;
}

static bool can_approve(const struct plugintable_client_row *client)
{
	for (size_t i = 0; i < client->count; i++)
		if (client->files[i].can_approve)
			return true;
	return false;
}

/* Tells what the user must still do in each client. */
static void tell_notes(const struct plugin_request *r)
{
	for (size_t i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++) {
		const struct plugintable_client_row *client = &plugintable_clients[i];

		if (!(r->clients & 1u << i))
			continue;
		if (client->notes[r->scope])
			say("%s", client->notes[r->scope]);
		if (client->approval && !(r->flags & PLUGIN_APPROVE && can_approve(client)))
			say("%s", client->approval);
	}
}

static int run_install(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	static const struct words_rule rule = {
		.usage = "plugin install claude|codex|gemini|opencode|mcp|all [options]",
		.options = &install_options,
		.min = 1,
		.max = PLUGINTABLE_CLIENT_COUNT + 1,
	};
	CLEANUP(plugin_report_done) struct plugin_report report = { 0 };
	struct plugin_request request;
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (read_request(context, &rule, argv, &request, e) < 0 ||
	    plugin_install(&request, &report, e) < 0)
		return -1;
	format_report(&report, &request, &out);
	if (add_snippet(&request, &out, e) < 0)
		return -1;
	*ret_status = 0;
	if (cli_print(&out, e) < 0)
		return -1;
	if (has_change(&report) && !(request.flags & PLUGIN_DRY))
		tell_notes(&request);
	return 0;
}

static int run_remove(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	static const struct words_rule rule = {
		.usage = "plugin remove claude|codex|gemini|opencode|mcp|all [options]",
		.options = &remove_options,
		.min = 1,
		.max = PLUGINTABLE_CLIENT_COUNT + 1,
	};
	CLEANUP(plugin_report_done) struct plugin_report report = { 0 };
	struct plugin_request request;
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (read_request(context, &rule, argv, &request, e) < 0 ||
	    plugin_remove(&request, &report, e) < 0)
		return -1;
	if (report.count == 0)
		say("nothing of agentkernel's is there");
	format_report(&report, &request, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

/* ---- listing ---- */

/* Shortens a path in the home directory to "~/x". */
static void add_path(struct buf *out, const char *path, const char *home)
{
	size_t len = home ? strlen(home) : 0;

	if (len > 1 && path && strncmp(path, home, len) == 0 && path[len] == '/')
		buf_addf(out, "~%s", path + len);
	else
		buf_add_text(out, path ? path : "?");
}

static void add_row(struct table *t, unsigned client, unsigned scope,
		    const struct plugin_status *status, const char *home)
{
	cleanup_buf struct buf files;

	buf_init(&files, BUF_TEXT_MAX_BYTES);
	for (size_t i = 0; i < status->count; i++) {
		buf_add_text(&files, i > 0 ? ", " : "");
		add_path(&files, status->files[i].path, home);
	}
	table_add_row(t,
		      (const char *const[]){ plugintable_clients[client].name, scope_words[scope],
					     state_words[status->state], buf_text(&files) });
	for (size_t i = 0; i < status->count; i++)
		if (status->files[i].trouble[0])
			say("%s", status->files[i].trouble);
}

static void add_object(struct json *j, unsigned client, unsigned scope,
		       const struct plugin_status *status)
{
	json_open_object(j, NULL);
	json_add_text(j, "client", plugintable_clients[client].name);
	json_add_text(j, "scope", scope_words[scope]);
	json_add_text(j, "state", state_words[status->state]);
	json_open_array(j, "files");
	for (size_t i = 0; i < status->count; i++) {
		const struct plugin_file_status *f = &status->files[i];

		json_open_object(j, NULL);
		json_add_text(j, "path", f->path);
		json_add_text(j, "state", state_words[f->state]);
		json_add_text(j, "error", f->trouble[0] ? f->trouble : NULL);
		json_close_object(j);
	}
	json_close_array(j);
	json_close_object(j);
}

static void format_list(const struct ak *ak, const struct flags *flags, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(4);
	struct json j;

	json_init(&j, out);
	if (flags->is_json)
		json_open_array(&j, NULL);
	table_add_row(t, (const char *const[]){ "CLIENT", "SCOPE", "STATE", "FILES" });
	for (unsigned i = 0; i < PLUGINTABLE_CLIENT_COUNT * PLUGINTABLE_SCOPE_COUNT; i++) {
		unsigned client = i / PLUGINTABLE_SCOPE_COUNT, scope = i % PLUGINTABLE_SCOPE_COUNT;
		CLEANUP(plugin_status_done) struct plugin_status status = { 0 };

		plugin_look(ak, client, scope, &status);
		if (status.count == 0)
			continue;
		if (flags->is_json)
			add_object(&j, client, scope, &status);
		else
			add_row(t, client, scope, &status,
				environment_get(ak->caller.environ_list, "HOME"));
	}
	if (flags->is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	} else {
		table_format(t, out);
	}
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	static const struct words_rule rule = { .usage = "plugin list", .options = &list_options };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[1];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	format_list(context->ak, &flags, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_plugin_install = {
	.name = "plugin install",
	.summary = "make agentkernel a tool of coding agents",
	.usage = "claude|codex|gemini|opencode|mcp|all... [options]",
	.text = "Adds an MCP server that runs `agentkernel mcp server` to the settings of the "
		"named\n"
		"clients, and gives them a skill that says when and how to use it, and a command\n"
		"/sandbox. Without --global this is done in the working directory, which is taken "
		"for\n"
		"the project; no symbolic link in it is followed. Whatever else is in the settings "
		"stays\n"
		"as it is, comments included. All files are checked first: if one cannot be read, "
		"or\n"
		"has something else where ours would go, nothing is written. mcp is any other "
		"client:\n"
		".mcp.json in a project; with --global the settings are printed, to be pasted.\n"
		"Claude Code, Codex and Gemini CLI use a project's settings once the project is "
		"trusted\n"
		"or the server approved in them, and ask before each call; what to do in each is "
		"said at\n"
		"the end. With --approve codex and gemini do not ask: calls are then held by the "
		"server's\n"
		"options and your configuration alone, and by default sandboxes have the public "
		"internet.",
	.examples = install_examples,
	.options = &install_options,
	.run = run_install,
};

const struct cli_command cmd_plugin_remove = {
	.name = "plugin remove",
	.summary = "remove agentkernel from coding agents",
	.usage = "claude|codex|gemini|opencode|mcp|all... [options]",
	.text = "What several clients read stays as long as one of the others uses it.",
	.options = &remove_options,
	.run = run_remove,
};

const struct cli_command cmd_plugin_list = {
	.name = "plugin list",
	.summary = "show which coding agents have agentkernel, and where",
	.usage = "[--json]",
	.text = "installed: all of it is there, as it would be installed now. changed: some of it "
		"is,\n"
		"or something else is in its place. unreadable: why is said on stderr.",
	.options = &list_options,
	.run = run_list,
};
