#pragma once
/*
 * cli - people's face: finds the command, prints its errors, gives its exit status.
 *
 * Each command is a file cmd_*.c with one struct cli_command; cli.c has the list. To add a
 * command, write such a file and name it in the list: help, man page and completion follow.
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
	const char *const *examples;      /* pairs: command line, what it does; ended by NULL */
	const struct opts_table *options; /* may be NULL */

	/*
	 * argv starts after the name. The exit status goes to *ret_status; -1 and `e` is a
	 * failure of ours.
	 */
	int (*run)(const struct cli_context *context, char **argv, int *ret_status, struct err *e);
};

int cli_main(char **argv, struct ak *ak);

/* All commands, ended by NULL; for help, man page and completion. */
extern const struct cli_command *const cli_commands[];

/* "start" for "sandbox start": the group may be left out. NULL: it has no such form. */
const char *cli_short_name(const struct cli_command *c);

void cli_format_help(const struct cli_command *c, struct buf *out);

/* The command's output, to stdout; a full disk or a closed pipe is a failure like any other. */
struct buf;
ERR_CHECKED int cli_print(const struct buf *out, struct err *e);
/* --json where nothing could be run: the failure in *e as an object, and its exit status. */
ERR_CHECKED int cli_print_failure(int *ret_status, struct err *e);

/* The command that the words begin with, and how many of them are its name; NULL: none. */
const struct cli_command *cli_find_command(char **argv, int *ret_words);

/* "image": what there is in that group of commands; false: there is no such group. */
bool cli_format_group(const char *group, struct buf *out);

/* Remarks of operations, on stderr. */
extern const struct op_events cli_events;
