#pragma once
/*
 * cli - the command line: finds the command, runs it, prints its error and returns its exit status.
 *
 * Each command is a file cmd_*.c with one struct cli_command; cli.c has the list. To add a command,
 * write such a file and name it in the list: help, man page and completion follow.
 */
#include "base/err.h"
#include "cli/opts.h"

struct ak;
struct op_events;
struct cli_context {
	struct ak *ak;
};

struct cli_command {
	const char *name; /* "run", "policy show" */
	const char *summary;
	const char *usage;                /* what follows the name */
	const char *text;                 /* a paragraph for --help and the man page; may be NULL */
	const char *const *examples;      /* pairs: command line, description; NULL-terminated */
	const struct opts_table *options; /* may be NULL */

	/*
	 * argv starts after the name. Sets *ret_status to the exit status; -1 and `e` is a failure
	 * of agentkernel itself.
	 */
	int (*run)(const struct cli_context *context, char **argv, int *ret_status, struct err *e);
};

int cli_main(char **argv, struct ak *ak);

/* All commands, NULL-terminated; for help, man page and completion. */
extern const struct cli_command *const cli_commands[];

/* "start" for "sandbox start": the group may be omitted. NULL: no such short form. */
const char *cli_short_name(const struct cli_command *c);

void cli_format_help(const struct cli_command *c, struct buf *out);

/* Writes the command's output to stdout; a full disk or a closed pipe is a failure. */
struct buf;
ERR_CHECKED int cli_print(const struct buf *out, struct err *e);
/* --json if nothing could be run: prints the failure in *e as an object, sets its exit status. */
ERR_CHECKED int cli_print_failure(int *ret_status, struct err *e);

/* Finds the command at the start of argv and the number of words in its name; NULL: none. */
const struct cli_command *cli_find_command(char **argv, int *ret_words);

/* Lists the commands of a group such as "image"; false: there is no such group. */
bool cli_format_group(const char *group, struct buf *out);

/* Prints remarks of operations on stderr. */
extern const struct op_events cli_events;
