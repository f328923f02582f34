#pragma once
/*
 * owner - working on files that a sandbox has written.
 *
 * A root caller may do anything with them. An ordinary caller's sandbox may have written files as
 * ids of the caller's range in /etc/subuid, or with modes that keep their own owner out: only root
 * of a user namespace with these ids may touch them. So the work is done by a child in such a
 * namespace.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int owner_fn(void *context, struct err *e);

/*
 * Runs the function as someone who may do anything with the sandbox's files. It may run in a child:
 * what it changes in memory can be lost, what it leaves open too. `shared`, if not NULL, is memory
 * that comes back: `size` bytes.
 */
ERR_CHECKED int owner_run(owner_fn *fn, void *context, void *shared, size_t size, struct err *e);

/* The same, always in a namespace of its own, also for root: for work on hostile archives. */
ERR_CHECKED int owner_run_apart(owner_fn *fn, void *context, void *shared, size_t size,
				struct err *e);

/*
 * Who a sandbox's own processes are: ids inside the user namespace of a running one.
 *
 * In the sandbox's mount namespace its mount points can be neither removed nor renamed; from
 * another one the kernel would let us, and drop the mount. But nothing may be executed there: the
 * loader and the libraries would be the sandbox's.
 */
struct owner_identity {
	int userns_fd;
	int mntns_fd; /* -1: ours */
	uint32_t uid, gid;
};
/* In a child that is such a one; of the descriptors it has all that we have. */
ERR_CHECKED int owner_run_as(const struct owner_identity *who, owner_fn *fn, void *context,
			     void *shared, size_t size, struct err *e);
/* For a child that we have forked ourselves: becomes one, for good. */
ERR_CHECKED int owner_become(const struct owner_identity *who, struct err *e);

/* All files of this caller's sandboxes have one owner. */
bool owner_is_one(void);

/* Removes dir_fd/name, whoever owns what is in it. */
ERR_CHECKED int owner_sweep(int dir_fd, const char *name, struct err *e);
