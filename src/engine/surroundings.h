#pragma once
/*
 * surroundings - what a process inherits and hands on to what it starts, as one text.
 *
 * A sandbox that waited ready was started by the daemon: it is the caller's only if everything that
 * the caller would hand on is the same. Resource limits, groups, namespaces, capabilities,
 * processors, priorities, how eagerly the kernel kills it, its security label, and every cgroup
 * above it that limits something, by name: what is used there must be counted there.
 */
#include "base/buf.h"

#include <stdbool.h>

/* Of this process. False: it has something that cannot be compared (a filter of system calls). */
bool surroundings_format(struct buf *out);
