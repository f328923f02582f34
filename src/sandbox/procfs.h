#pragma once
/*
 * procfs - the sandbox's /proc.
 *
 * A new instance that shows the sandbox's own processes. Knobs of the kernel are read-only: those
 * of the machine belong to the host's root, who nobody inside is, but /proc/sys also has some that
 * belong to the sandbox's namespaces, and anyone may register a trigger in /proc/pressure. A
 * process may write what is its own (comm, oom_score_adj upwards, its debuggee's mem); under a
 * policy that forbids tracing the whole of /proc is read-only, since mem would be a way to trace.
 * Files that tell about the host's kernel and are readable by anyone are masked.
 */
#include "base/err.h"

struct policy;

/* In the sandbox's namespaces, before the pivot, between mask_begin(empty_fd) and mask_end(). */
ERR_CHECKED int procfs_mount(int root_fd, int empty_fd, const struct policy *p, struct err *e);
