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
#include <stdint.h>

struct policy;

/*
 * command_init() says what a policy's own command is; others of the same sandbox may differ in
 * who, where and what.
 */
struct command {
	const struct policy *policy; /* its walls */
	char *const *argv;
	char *const *envp;
	const char *workdir;
	uint32_t uid, gid;
	const uint32_t *groups; /* besides gid */
	unsigned group_count;
	bool has_capabilities; /* as far as the policy's profile has any */
	int stdio_fd[3];       /* become 0, 1, 2 */
	bool has_tty;          /* the streams are a terminal of the sandbox: make it controlling */
	bool can_switch_ids;
	bool has_landlock; /* false only where the user accepts that it is missing */
	unsigned landlock_parts;
	unsigned rlimit_flags;
	unsigned seccomp_variant;
	int installed_filter; /* the variant that init has, and so its children; -1: none */
};

void command_init(struct command *c, const struct policy *p);

/* Never returns. A failure is reported and ends the process. */
_Noreturn void command_exec(const struct command *c, int report_fd);
