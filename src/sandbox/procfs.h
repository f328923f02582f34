#pragma once
/*
 * procfs - the sandbox's /proc.
 *
 * A new instance that shows only the sandbox's processes. Kernel settings are read-only: the
 * machine's belong to the host's root anyway, but some in /proc/sys belong to the sandbox's
 * namespaces, and anyone may register a trigger in /proc/pressure. A process may write its own
 * files (comm, oom_score_adj upwards, its debuggee's mem); if the policy forbids tracing, all of
 * /proc is read-only, because writing mem is a way to trace. World-readable files about the host's
 * kernel are masked.
 */
#include "base/err.h"

struct policy;

/* In the sandbox's namespaces, before the pivot, between mask_begin(empty_fd) and mask_end(). */
ERR_CHECKED int procfs_mount(int root_fd, int empty_fd, const struct policy *p, struct err *e);
