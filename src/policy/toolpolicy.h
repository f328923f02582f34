#pragma once
/*
 * toolpolicy - restricts programs that call us (over MCP or HTTP): tools, commands, call rates.
 *
 * A command is judged by the programs it executes: the program's base name and, for a shell with -c
 * or a program that starts another (env, sudo, timeout, xargs, ...), the words in command position,
 * also in $(...) and `...`. This catches direct and careless calls. It is not a security boundary:
 * a shell can build any name at run time, and any language can start any program. With an
 * allowlist, a name that is only known at run time is refused, but an allowed program can still
 * start others. The sandbox is the boundary.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define TOOLPOLICY_NAMES_MAX 256u
#define TOOLPOLICY_CALLS_MAX 10000u
#define TOOLPOLICY_WINDOW_MIN_MS 1000u
#define TOOLPOLICY_WINDOW_MAX_MS (24u * 3600 * 1000)
#define TOOLPOLICY_DEPTH_MAX 8u                /* nesting of commands */
#define TOOLPOLICY_TEXT_MAX_BYTES (128u << 10) /* of a shell script: the kernel's limit too */

struct toolpolicy {
	char **tools;            /* tools that may be called; NULL: all */
	char **blocked_tools;    /* NULL: none */
	char **commands;         /* programs that may be started; NULL: all */
	char **blocked_commands; /* NULL: none */
	uint64_t rate_calls;     /* of one caller to one tool in a window; 0: no limit */
	uint64_t rate_window_ms;
};

void toolpolicy_done(struct toolpolicy *t); /* may run twice, and on a zeroed struct */

/* ERR_DENIED, with the rule in the message. */
ERR_CHECKED int toolpolicy_check_tool(const struct toolpolicy *t, const char *tool, struct err *e);
ERR_CHECKED int toolpolicy_check_command(const struct toolpolicy *t, const char *const *argv,
					 struct err *e);
