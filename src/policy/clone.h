#pragma once
/*
 * clone - --clone: the sandbox works on a private clone of a repository, not on the repository.
 *
 * The repository is shown read-only at CLONE_ORIGIN; at the workspace's own path lies a clone of it
 * that is the sandbox's and shares the objects. What came of it is taken from there, as a patch
 * (clone_format_diff()) or by fetching. Pure: shell texts that run inside.
 */
#include "policy/policy.h"

#define CLONE_ORIGIN "/var/lib/agentkernel/origin"
#define CLONE_BASE_REF "refs/agentkernel/base" /* where the clone began */

struct buf;

/* Makes the clone where there is none. */
void clone_format_init(const struct policy *p, struct buf *out);
/* Prints all that differs from where it began, new files included, as a patch. */
void clone_format_diff(const struct policy *p, struct buf *out);
