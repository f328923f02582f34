#pragma once
/*
 * surroundings - what a process inherits and hands on to what it starts, as one text.
 *
 * A sandbox that waited ready was started by the daemon: it is the caller's only if everything that
 * the caller would hand on is the same. Resource limits, groups, namespaces, capabilities,
 * processors, priorities, how eagerly the kernel kills it, its security label.
 *
 * And every cgroup above it that limits something, by name: what is used there must be counted
 * there. Two processes of the same cgroups need no such look, and looking takes longer than all the
 * rest: so the names of the cgroups are a text of their own.
 */
#include "base/buf.h"

#include <stdbool.h>

/* Of this process. False: it has something that cannot be compared (a filter of system calls). */
bool surroundings_format(struct buf *out);

/* /proc/self/cgroup as it is, or "" where it cannot be read. */
void surroundings_format_cgroups(struct buf *out);
/* What limits processes of such cgroups, and where. */
void surroundings_format_limits(const char *cgroups, struct buf *out);
