#pragma once
/*
 * helper - the programs in libexec that do what needs large libraries.
 *
 * They are found beside the program that runs: in ../libexec/agentkernel from an installation,
 * in its own directory from a build. A helper starts with default signals, exactly the descriptors
 * it is given, and /dev/null as those of 0, 1 and 2 that it is not; in a session of its own and
 * with an empty environment, unless the options say otherwise.
 *
 * Who executes one with other ids than the caller's opens it before it takes them: the directories
 * above an installation may be closed to everyone else (/root).
 */
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define HELPER_DESCRIPTORS_MAX 16u

struct helper_descriptor {
	int fd; /* ours; -1: /dev/null */
	int as; /* the helper's */
};

struct helper_options {
	char *const *environ_list; /* NULL: empty */
	bool is_in_session;        /* stays in the caller's: what the terminal sends reaches it */
};

/* The path is the caller's to free. */
ERR_CHECKED int helper_find(const char *name, char **ret_path, struct err *e);

struct helper {
	char *path;
	int fd; /* -1: it is executed by its path */
};

/* Finds and opens it. */
ERR_CHECKED int helper_open(const char *name, struct helper *ret, struct err *e);
void helper_done(struct helper *h); /* may run twice, and where helper_open() has failed */

/* Our child, to be waited for. A program that cannot be executed is an exit status of 127. */
ERR_CHECKED int helper_start(const struct helper *h, char *const *argv,
			     const struct helper_descriptor *descriptors, unsigned count,
			     const struct helper_options *options, pid_t *ret_pid, struct err *e);
