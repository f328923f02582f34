#pragma once
/*
 * owner - runs functions with access to files that a sandbox wrote.
 *
 * A root caller has full access. An ordinary caller's sandbox may have written files as ids of the
 * caller's range in /etc/subuid, or with modes that lock out their own owner: only root of a user
 * namespace with these ids may access them. So a child in such a namespace does the work.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int owner_fn(void *context, struct err *e);

/*
 * Runs `fn` with full access to the sandbox's files. It may run in a child: its changes to memory
 * and open descriptors can be lost. `shared`, if not NULL, is copied back: `size` bytes.
 */
ERR_CHECKED int owner_run(owner_fn *fn, void *context, void *shared, size_t size, struct err *e);

/* The same, always in a new namespace, even for root: for work on hostile archives. */
ERR_CHECKED int owner_run_apart(owner_fn *fn, void *context, void *shared, size_t size,
				struct err *e);

/*
 * The identity of a running sandbox's processes: ids in its user namespace.
 *
 * In the sandbox's mount namespace its mount points can be neither removed nor renamed; in another
 * namespace the kernel would allow it and drop the mount. But nothing may be executed there,
 * because the loader and the libraries would be the sandbox's.
 */
struct owner_identity {
	int userns_fd;
	int mntns_fd; /* -1: stay in ours */
	uint32_t uid, gid;
};
/* Runs `fn` in a child with that identity, which inherits all our descriptors. */
ERR_CHECKED int owner_run_as(const struct owner_identity *who, owner_fn *fn, void *context,
			     void *shared, size_t size, struct err *e);
/*
 * Starts `fn` like owner_run(), but always in a child, which ends with this process. A job that was
 * started is ended by owner_finish(), with its failure, or by owner_abort().
 */
struct owner_job {
	int pid; /* 0: none */
	int report_fd;
};
ERR_CHECKED int owner_start(owner_fn *fn, void *context, struct owner_job *ret, struct err *e);
ERR_CHECKED int owner_finish(struct owner_job *job, struct err *e);
void owner_abort(struct owner_job *job); /* may run twice */

/* For a child that we forked ourselves: takes that identity for good. */
ERR_CHECKED int owner_become(const struct owner_identity *who, struct err *e);

/* Do all files of this caller's sandboxes have the same owner? */
bool owner_is_one(void);

/* Removes dir_fd/name, whatever the owners of its files. */
ERR_CHECKED int owner_sweep(int dir_fd, const char *name, struct err *e);
