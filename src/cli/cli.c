/* cli - finds the command, prints its errors, gives its exit status; see cli.h. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/suggest.h"
#include "cli/commands.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct cli_command *const cli_commands[] = {
	&cmd_run, &cmd_policy_show, &cmd_doctor, &cmd_version, &cmd_help, &cmd_completion, NULL,
};

#define COMMANDS_MAX 64

/* Only faces turn codes into statuses. */
static const int exit_status[] = {
	[ERR_NONE] = 0,
	[ERR_INVALID] = CLI_EXIT_FAILED,
	[ERR_NOT_FOUND] = CLI_EXIT_FAILED,
	[ERR_EXISTS] = CLI_EXIT_FAILED,
	[ERR_BUSY] = CLI_EXIT_FAILED,
	[ERR_DENIED] = CLI_EXIT_FAILED,
	[ERR_LIMIT] = CLI_EXIT_FAILED,
	[ERR_TIMEOUT] = CLI_EXIT_FAILED,
	[ERR_UNSUPPORTED] = CLI_EXIT_FAILED,
	[ERR_REMOTE] = CLI_EXIT_FAILED,
	[ERR_CORRUPT] = CLI_EXIT_FAILED,
	[ERR_SYSTEM] = CLI_EXIT_FAILED,
	[ERR_COMMAND_NOT_FOUND] = CLI_EXIT_NOT_FOUND,
	[ERR_COMMAND_NOT_EXECUTABLE] = CLI_EXIT_NOT_EXECUTABLE,
};
static_assert(COUNT_OF(exit_status) == ERR_CODE_COUNT, "an error code has no exit status");

static int print_error(const struct err *e)
{
	char line[ERR_MESSAGE_MAX_BYTES + 32];
	int len = snprintf(line, sizeof(line), "agentkernel: %s\n", e->msg);

	/* one write, so that lines of several processes do not mix */
	(void)file_write_all(STDERR_FILENO, line, (size_t)len);
	return exit_status[e->code];
}

/* How many words of argv are the name of command `c`; 0: it is another. */
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

static const struct cli_command *find_command(char **argv, int *ret_words)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		*ret_words = match_name(*c, argv);
		if (*ret_words > 0)
			return *c;
	}
	return NULL;
}

static int unknown_command(const char *word, struct err *e)
{
	const char *names[COMMANDS_MAX];
	const char *nearest;
	size_t count = 0;

	for (const struct cli_command *const *c = cli_commands; *c; c++)
		names[count++] = (*c)->name;
	nearest = suggest_nearest(word, names, count);
	if (nearest)
		return err_set(e, ERR_INVALID, "unknown command '%s', did you mean '%s'?", word,
			       nearest);
	return err_set(e, ERR_INVALID, "unknown command '%s' (see agentkernel help)", word);
}

static bool asks_for_help(char **argv)
{
	return argv[0] && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
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
	const struct cli_command *c;
	cleanup_buf struct buf help;
	int words = 0;
	int status = 0;

	buf_init(&help, BUF_TEXT_MAX_BYTES);
	if (!argv[0] || asks_for_help(argv))
		return cmd_help.run(context, (char *[]){ NULL }, &status, e) < 0 ? -1 : status;
	if (strcmp(argv[0], "--version") == 0)
		return cmd_version.run(context, (char *[]){ NULL }, &status, e) < 0 ? -1 : status;
	c = find_command(argv, &words);
	if (!c)
		return unknown_command(argv[0], e);
	if (!asks_for_help(argv + words))
		return c->run(context, argv + words, &status, e) < 0 ? -1 : status;
	cli_format_help(c, &help);
	(void)file_write_all(STDOUT_FILENO, help.bytes, help.len);
	return 0;
}

int cli_main(char **argv, char **environ_list)
{
	const struct cli_context context = { .environ_list = environ_list };
	struct err e = { 0 };
	int status = run_command_line(&context, argv + (argv[0] != NULL), &e);

	return status < 0 ? print_error(&e) : status;
}
