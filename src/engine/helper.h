#pragma once
/*
 * helper - starts the programs in libexec that need large libraries.
 *
 * They are found relative to this program: in ../libexec/agentkernel of an installation, in its own
 * directory of a build. A helper starts with default signals, exactly the given descriptors, and
 * /dev/null for missing ones of 0, 1 and 2; in its own session and with an empty environment,
 * unless the options say otherwise.
 *
 * A process that will execute a helper with other ids opens it before it changes them: the
 * directories above an installation may be closed to others (/root).
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
	bool is_in_session;        /* stays in the caller's: gets signals of the terminal */
};

/* The caller frees the path. */
ERR_CHECKED int helper_find(const char *name, char **ret_path, struct err *e);

struct helper {
	char *path;
	int fd; /* -1: executed by its path */
};

/* Finds and opens it. */
ERR_CHECKED int helper_open(const char *name, struct helper *ret, struct err *e);
void helper_done(struct helper *h); /* may run twice, and after a failure of helper_open() */

/* Starts our child, which the caller reaps. A program that cannot be executed is an error. */
ERR_CHECKED int helper_start(const struct helper *h, char *const *argv,
			     const struct helper_descriptor *descriptors, unsigned count,
			     const struct helper_options *options, pid_t *ret_pid, struct err *e);
