#pragma once
/*
 * clone - --clone: the sandbox works on a private clone of the repository.
 *
 * The repository is mounted read-only at CLONE_ORIGIN; at the workspace's path is the sandbox's own
 * clone of it, which shares the objects. Users get the result as a patch (clone_format_diff()) or
 * by fetching. This file only writes shell scripts, which run inside.
 */
#include "policy/policy.h"

#define CLONE_ORIGIN "/var/lib/agentkernel/origin"
#define CLONE_BASE_REF "refs/agentkernel/base" /* the commit that the clone started from */

struct buf;

/* A script that creates the clone unless it exists. */
void clone_format_init(const struct policy *p, struct buf *out);
/* A script that prints all changes since the start, including new files, as a patch. */
void clone_format_diff(const struct policy *p, struct buf *out);
