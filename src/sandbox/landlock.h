#pragma once
/*
 * landlock - a second wall behind the mounts.
 *
 * A file is usable only if it lies beneath the sandbox's root (or is one of the three streams
 * that the caller passed), whatever descriptor or mount might still lead elsewhere; mounting is
 * over for good; and, where the kernel has the scopes (ABI 6), abstract sockets and signals do
 * not cross to processes outside.
 */
#include "base/err.h"

struct policy;

#define LANDLOCK_ABI_TRUNCATE 3 /* knows cutting off a file from not writing to it */

/* The ABI version of this kernel, 0 where Landlock is missing or switched off. */
int landlock_abi(void);

enum landlock_parts {
	LANDLOCK_FILES = 1 << 0,  /* files and mounts, by the policy and this process's streams */
	LANDLOCK_SCOPES = 1 << 1, /* signals and abstract sockets; needs no policy */
};

/*
 * Locks the calling thread in. After the pivot; no_new_privs must be set. Processes that share the
 * scopes, by having inherited them, may signal each other.
 */
ERR_CHECKED int landlock_restrict(const struct policy *p, unsigned parts, struct err *e);
