#pragma once
/*
 * runtimecache - directories created once and mounted by many sandboxes.
 *
 * They lie in the runtime directory (state/statedir), by kind, named after everything that their
 * content depends on. A directory is complete or absent: it is made under another name and renamed,
 * and who comes second uses the first one's. Where there is no runtime directory, or others could
 * write to it, nothing is kept, and each sandbox makes its own, which takes longer.
 */
#include "base/err.h"

struct ak;

struct runtimecache_dir {
	const char *kind; /* name of the parent directory */
	const char *name;
	unsigned max; /* per kind; beyond that all that nobody holds are removed, and created again
		       * when needed */
	int (*fill)(int dir_fd, const void *context, struct err *e);
	const void *context;
};

/* Its path, made if need be; the caller's to free. NULL: there is none. */
char *runtimecache_get(const struct ak *ak, const struct runtimecache_dir *d);
/*
 * The same for one that stays mounted as a directory: it is not removed before the descriptor
 * *ret_held_fd is closed, in all processes that have inherited it.
 */
char *runtimecache_hold(const struct ak *ak, const struct runtimecache_dir *d, int *ret_held_fd);
