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

/* The ABI version of this kernel, 0 where Landlock is missing or switched off. */
int landlock_abi(void);

/* Locks the calling thread in. After the pivot; no_new_privs must be set. */
ERR_CHECKED int landlock_restrict(const struct policy *p, struct err *e);
