/* cli - finds the command, runs it, prints its error and returns its exit status; see cli.h. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/habits.h"
#include "ops/ending.h"
#include "ops/events.h"
#include "state/audit.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

const struct cli_command *const cli_commands[] = {
	&cmd_run,
	&cmd_sandbox_create,
	&cmd_sandbox_start,
	&cmd_sandbox_stop,
	&cmd_sandbox_restart,
	&cmd_sandbox_pause,
	&cmd_sandbox_resume,
	&cmd_sandbox_remove,
	&cmd_sandbox_list,
	&cmd_sandbox_info,
	&cmd_sandbox_update,
	&cmd_sandbox_fork,
	&cmd_sandbox_gc,
	&cmd_exec,
	&cmd_attach,
	&cmd_ps,
	&cmd_logs,
	&cmd_kill,
	&cmd_service_add,
	&cmd_service_list,
	&cmd_service_restart,
	&cmd_service_remove,
	&cmd_service_logs,
	&cmd_cp,
	&cmd_sandbox_diff,
	&cmd_stats,
	&cmd_checkpoint_create,
	&cmd_checkpoint_list,
	&cmd_checkpoint_restore,
	&cmd_checkpoint_remove,
	&cmd_checkpoint_export,
	&cmd_checkpoint_import,
	&cmd_image_pull,
	&cmd_image_list,
	&cmd_image_inspect,
	&cmd_image_remove,
	&cmd_image_prune,
	&cmd_image_import,
	&cmd_image_load,
	&cmd_image_save,
	&cmd_image_push,
	&cmd_build,
	&cmd_commit,
	&cmd_template_list,
	&cmd_template_build,
	&cmd_network_check,
	&cmd_network_show,
	&cmd_network_log,
	&cmd_network_allow,
	&cmd_network_block,
	&cmd_network_reset,
	&cmd_port_list,
	&cmd_port_add,
	&cmd_port_remove,
	&cmd_port_public,
	&cmd_port_private,
	&cmd_forward,
	&cmd_agent_list,
	&cmd_agent_run,
	&cmd_mcp_server,
	&cmd_serve,
	&cmd_daemon_start,
	&cmd_daemon_stop,
	&cmd_daemon_restart,
	&cmd_daemon_status,
	&cmd_daemon_prewarm,
	&cmd_plugin_install,
	&cmd_plugin_remove,
	&cmd_plugin_list,
	&cmd_init,
	&cmd_config_check,
	&cmd_config_trust,
	&cmd_config_distrust,
	&cmd_policy_show,
	&cmd_audit,
	&cmd_doctor,
	&cmd_version,
	&cmd_help,
	&cmd_completion,
	NULL,
};

#define COMMANDS_MAX 128

static void print_remark(void *context, const char *text)
{
	(void)context;
	say_text(text);
}

const struct op_events cli_events = { .remark = print_remark };

int cli_print(const struct buf *out, struct err *e)
{
	int r = file_write_all(STDOUT_FILENO, out->bytes, out->len);

	if (r < 0)
		return err_sys(e, -r, "write the output");
	return 0;
}

int cli_print_failure(int *ret_status, struct err *e)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	ending_format_failure(e, &out);
	*ret_status = errcode_exit_status(e->code);
	return cli_print(&out, e);
}

/* The number of words in argv that form the name of command `c`; 0: another command. */
static int match_name(const struct cli_command *c, char **argv)
{
	const char *name = c->name;
	int words = 0;

	while (*name) {
		size_t len = strcspn(name, " ");

		if (!argv[words] || strlen(argv[words]) != len ||
		    strncmp(argv[words], name, len) != 0)
			return 0;
		words++;
		name += len;
		name += *name == ' ';
	}
	return words;
}

const char *cli_short_name(const struct cli_command *c)
{
	static const char group[] = "sandbox ";

	return strncmp(c->name, group, sizeof(group) - 1) == 0 ? c->name + sizeof(group) - 1 : NULL;
}

static const struct cli_command *find_short(const char *word)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		if (cli_short_name(*c) && strcmp(cli_short_name(*c), word) == 0)
			return *c;
	return NULL;
}

const struct cli_command *cli_find_command(char **argv, int *ret_words)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		*ret_words = match_name(*c, argv);
		if (*ret_words > 0)
			return *c;
	}
	*ret_words = 1;
	return find_short(argv[0]);
}

/* "policy shwo": the first word is a group of ours, the second is unknown. */
static const char *rest_of_group(const char *word)
{
	size_t len = strlen(word);

	for (const struct cli_command *const *c = cli_commands; *c; c++)
		if (strncmp((*c)->name, word, len) == 0 && (*c)->name[len] == ' ')
			return (*c)->name;
	return NULL;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool cli_format_group(const char *group, struct buf *out)
{
	size_t len = strlen(group);

	if (!rest_of_group(group))
		return false;
	buf_addf(out, "Commands of agentkernel %s:\n", group);
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		if (strncmp((*c)->name, group, len) == 0 && (*c)->name[len] == ' ')
			buf_addf(out, "  %-18s %s\n", (*c)->name, (*c)->summary);
	buf_addf(out, "\nMore about one of them: agentkernel help %s\n", rest_of_group(group));
	return true;
}

/* Never suggest a destructive command: suggestions are often typed without thinking. */
static bool is_destructive(const char *name)
{
	static const char *const words[] = { "stop",  "remove",  "kill",    "gc",      "prune",
					     "reset", "restore", "restart", "distrust" };
	const char *last = strrchr(name, ' ') ? strrchr(name, ' ') + 1 : name;

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (strcmp(last, words[i]) == 0)
			return true;
	return false;
}

static int unknown_command(char **argv, struct err *e)
{
	const char *names[COMMANDS_MAX];
	const char *group = rest_of_group(argv[0]), *nearest;
	size_t count = 0;

	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		if (is_destructive((*c)->name))
			continue;
		names[count++] = (*c)->name;
		if (cli_short_name(*c))
			names[count++] = cli_short_name(*c);
	}
	if (group && argv[1]) {
		cleanup_free char *typed = mem_format("%s %s", argv[0], argv[1]);

		nearest = suggest_nearest(typed, names, count);
		if (nearest)
			return err_set(e, ERR_INVALID, "unknown command '%s', did you mean '%s'?",
				       typed, nearest);
		return err_set(e, ERR_INVALID, "unknown command '%s' (see agentkernel help %s)",
			       typed, argv[0]);
	}
	nearest = suggest_nearest(argv[0], names, count);
	if (nearest)
		return err_set(e, ERR_INVALID, "unknown command '%s', did you mean '%s'?", argv[0],
			       nearest);
	return err_set(e, ERR_INVALID, "unknown command '%s' (see agentkernel help)", argv[0]);
}

void cli_format_help(const struct cli_command *c, struct buf *out)
{
	buf_addf(out, "agentkernel %s - %s\n\nUsage: agentkernel %s %s\n", c->name, c->summary,
		 c->name, c->usage);
	if (c->text)
		buf_addf(out, "\n%s\n", c->text);
	if (c->options) {
		buf_add_text(out, "\n");
		opts_format_help(c->options, out);
	}
	if (!c->examples)
		return;
	buf_add_text(out, "\nExamples:\n");
	for (const char *const *line = c->examples; line[0]; line += 2)
		buf_addf(out, "  %s\n      %s\n", line[0], line[1]);
}

static int run_command_line(const struct cli_context *context, char **argv, struct err *e)
{
	static char *no_arguments[] = { NULL };
	cleanup_free char **translated = NULL;
	const struct cli_command *c;
	cleanup_buf struct buf help;
	int words = 0;
	int status = 0;

	buf_init(&help, BUF_TEXT_MAX_BYTES);
	if (!argv[0] || is_help(argv[0]))
		return cmd_help.run(context, no_arguments, &status, e) < 0 ? -1 : status;
	if (strcmp(argv[0], "--version") == 0)
		return cmd_version.run(context, no_arguments, &status, e) < 0 ? -1 : status;
	c = cli_find_command(argv, &words);
	if (!c) {
		if (habits_translate(argv, &translated, e) < 0)
			return -1;
		argv = translated ? translated : argv;
		c = cli_find_command(argv, &words);
	}
	if (!c && (!argv[1] || is_help(argv[1])) && cli_format_group(argv[0], &help))
		return cli_print(&help, e);
	if (!c)
		return unknown_command(argv, e);
	if (!opts_ask_for_help(c->options, argv + words))
		return c->run(context, argv + words, &status, e) < 0 ? -1 : status;
	cli_format_help(c, &help);
	return cli_print(&help, e);
}

int cli_main(char **argv, struct ak *ak)
{
	const struct cli_context context = { .ak = ak };
	struct err e = { 0 };
	int status = run_command_line(&context, argv + (argv[0] != NULL), &e);

	if (status < 0)
		say("%s", e.msg);
	if (audit_lost_error())
		say("this is not in the audit log, which cannot be written: %s",
		    strerror(audit_lost_error()));
	return status < 0 ? errcode_exit_status(e.code) : status;
}
