#pragma once
/*
 * command - the last steps of a process inside, from our code to the user's program.
 *
 * Runs in a child of init. The order is the design: streams and limits while everything is
 * still allowed, then ids and capabilities, then Landlock (needs no_new_privs), then seccomp
 * (forbids what the steps before needed), then exec.
 */
#include "base/err.h"

#include <stdbool.h>

struct policy;

struct command {
	const struct policy *policy;
	char *const *argv;
	char *const *envp;
	int stdio_fd[3]; /* become 0, 1, 2 */
	bool has_tty;    /* the streams are a terminal of the sandbox: make it controlling */
	bool can_switch_ids;
	bool has_landlock; /* false only where the user accepts that it is missing */
	unsigned rlimit_flags;
	unsigned seccomp_variant;
};

/* Never returns. A failure is reported and ends the process. */
_Noreturn void command_exec(const struct command *c, int report_fd);
