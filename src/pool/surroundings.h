#pragma once
/*
 * surroundings - describes what a process inherits and passes on to its children, as one text.
 *
 * The daemon starts a pooled sandbox: it suits a client only if both would pass on the same:
 * resource limits, groups, namespaces, capabilities, processors, priorities, OOM score and security
 * label.
 *
 * The same holds for every cgroup above that limits something, by name, because usage must be
 * accounted there. Processes in the same cgroups need no such comparison, which is slower than all
 * the rest: so the names of the cgroups are a text of their own.
 */
#include "base/buf.h"

#include <stdbool.h>

/* Describes this process. False: it has a seccomp filter, which cannot be compared. */
bool surroundings_format(struct buf *out);

/* /proc/self/cgroup unchanged, or "" if unreadable. */
void surroundings_format_cgroups(struct buf *out);
/* Lists the limits of these cgroups. */
void surroundings_format_limits(const char *cgroups, struct buf *out);
