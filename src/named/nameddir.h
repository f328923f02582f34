#pragma once
/*
 * nameddir - sandboxes/ in the state directory: named sandboxes appear in it, are listed, and
 * disappear from it, each by one rename.
 */
#include "named/named.h"

/* *ret_fd is the caller's to close; -1 if there is no such directory yet. */
ERR_CHECKED int nameddir_find(const struct ak *ak, int *ret_fd, struct err *e);

/*
 * Creates the sandbox described by *n; sets its time, and its id if empty. Afterwards it is open
 * and locked. ERR_EXISTS if the name is taken.
 */
ERR_CHECKED int nameddir_create(const struct ak *ak, struct named *n, const struct policy *p,
				struct err *e);

/*
 * Moves it to the trash and removes it there; the caller holds the lock. nameddir_sweep_trash()
 * removes leftovers. On a full disk without space for the move, it is removed in place; a crash
 * then leaves a damaged sandbox, which can be removed again.
 */
ERR_CHECKED int nameddir_trash(const struct ak *ak, const struct named *n, struct err *e);

/* Opens the trash beside the sandbox's directory. */
ERR_CHECKED int nameddir_open_trash(const struct named *n, int *ret_fd, struct err *e);

/* Removes leftovers in the trash and of interrupted creations, except locked ones. */
ERR_CHECKED int nameddir_sweep_trash(const struct ak *ak, unsigned *ret_count, struct err *e);

/* Names of all sandboxes, sorted; free with keyrows_list_free(). */
ERR_CHECKED int nameddir_list(const struct ak *ak, char ***ret, struct err *e);
