#pragma once
/*
 * landlock - a second layer of file protection behind the mounts.
 *
 * A process may use a file only if it lies beneath the sandbox's root (or is one of the three
 * streams that the caller passed), even if a descriptor or mount still leads elsewhere; mounting is
 * impossible from then on; and, where the kernel has scopes (ABI 6), the sandbox cannot reach
 * abstract sockets of processes outside nor signal them.
 */
#include "base/err.h"

struct policy;

#define LANDLOCK_ABI_TRUNCATE 3 /* the first ABI with a separate right for truncating files */

/* The ABI version of this kernel, 0 where Landlock is missing or switched off. */
int landlock_abi(void);

enum landlock_parts {
	LANDLOCK_FILES = 1 << 0,  /* files and mounts, by the policy and this process's streams */
	LANDLOCK_SCOPES = 1 << 1, /* signals and abstract sockets; needs no policy */
};

/*
 * Restricts the calling thread for good. Call it after the pivot, with no_new_privs set. Processes
 * that inherited the same scopes may signal each other.
 */
ERR_CHECKED int landlock_restrict(const struct policy *p, unsigned parts, struct err *e);
