#pragma once
/*
 * helper - the programs in libexec that do what needs large libraries.
 *
 * They are found beside the program that runs: in ../libexec/agentkernel from an installation,
 * in its own directory from a build. A helper starts in a session of its own, with an empty
 * environment, default signals, 0, 1 and 2 on /dev/null, and exactly the descriptors it is given.
 */
#include "base/err.h"

#include <sys/types.h>

#define HELPER_DESCRIPTORS_MAX 16u

struct helper_descriptor {
	int fd; /* ours; -1: /dev/null */
	int as; /* the helper's */
};

/* The path is the caller's to free. */
ERR_CHECKED int helper_find(const char *name, char **ret_path, struct err *e);

/* Our child, to be waited for. A program that cannot be executed is an exit status of 127. */
ERR_CHECKED int helper_start(const char *path, char *const *argv,
			     const struct helper_descriptor *descriptors, unsigned count,
			     pid_t *ret_pid, struct err *e);
