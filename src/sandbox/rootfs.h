#pragma once
/*
 * rootfs - the file system that a sandbox sees, for the host image.
 *
 * A tmpfs with a size, this machine's programs bound read-only into it, a filtered /etc, an
 * own /dev and /proc, and the directories of the host that the policy shows. Runs in the child,
 * in its new namespaces, and ends with the pivot: after it the host's files have no name.
 */
#include "base/err.h"

#include <stdbool.h>

struct policy;

/* A file or directory of the host that the policy makes visible. */
struct rootfs_mount {
	const char *source; /* host path; borrowed */
	const char *target; /* absolute, inside; borrowed */
	int tree_fd;	    /* detached tree made by a root caller; -1: open `source` here */
	bool is_dir;
	bool is_read_only;
};

struct rootfs_options {
	const struct policy *policy;
	const struct rootfs_mount *mounts; /* parents before children */
	unsigned mount_count;
};

ERR_CHECKED int rootfs_enter(const struct rootfs_options *o, struct err *e);
