#pragma once
/*
 * runstep - does a RUN: one command in a sandbox whose root is a stage, with a directory on top
 * that stays and becomes the step's layer.
 *
 * Runs in a process of its own, which is the sandbox's supervisor. What each start writes into a
 * root, and mount points, are taken out of the layer afterwards.
 */
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>

struct ak;

#define RUNSTEP_MOUNTS_MAX 32u

struct runstep_mount {
	char *source; /* on the host; NULL: a tmpfs */
	char *target; /* absolute */
	bool is_file, is_read_only;
	uint64_t size_bytes; /* of a tmpfs; 0: as the disk limit */
};

struct runstep {
	const struct ak *ak;
	struct policy *policy; /* changed here: the process ends afterwards */
	const char *layers_path;
	int layers_fd;
	const char *work;  /* "making/NAME" there: "upper" will be below */
	const char *lower; /* names there, highest first, separated by ':' */
	char *const *argv;
	char *const *env; /* the image's and the build's variables */
	const char *user, *workdir;
	bool has_no_network;
	const struct runstep_mount *mounts;
	unsigned mount_count;
	int lifeline_fd; /* ends the command when its other end closes */
};

/* What became of the command; goes through a pipe. */
struct runstep_result {
	int exit_code;
	char words[ERR_MESSAGE_MAX_BYTES]; /* why, if it is not its own exit: "ran out of memory";
					      else "" */
};

ERR_CHECKED int runstep_run(const struct runstep *s, struct runstep_result *ret, struct err *e);
