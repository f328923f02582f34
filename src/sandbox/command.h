#pragma once
/*
 * command - the last steps of a process inside the sandbox, from our code to the user's program.
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
 * command_init() fills this in for the policy's own command; other commands of the same sandbox may
 * have another user, working directory, arguments and environment.
 */
struct command {
	const struct policy *policy; /* the sandbox's policy */
	char *const *argv;
	char *const *envp;
	const char *workdir;
	uint32_t uid, gid;
	const uint32_t *groups; /* supplementary groups */
	unsigned group_count;
	bool has_capabilities; /* limited to those of the policy's profile */
	int stdio_fd[3];       /* become 0, 1, 2 */
	bool has_tty;          /* the streams are a terminal: make it the controlling one */
	bool can_switch_ids;
	bool has_landlock; /* false only if the user accepted a kernel without Landlock */
	unsigned landlock_parts;
	unsigned rlimit_flags;
	unsigned seccomp_variant;
	int installed_filter; /* the variant that init installed and children inherit; -1: none */
};

void command_init(struct command *c, const struct policy *p);

/* Never returns. On failure it sends a report and exits. */
_Noreturn void command_exec(const struct command *c, int report_fd);
