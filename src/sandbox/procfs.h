#pragma once
/*
 * procfs - the sandbox's /proc.
 *
 * A new instance that shows the sandbox's own processes. It is read-only as a whole: nothing
 * that a program needs is written there, and every knob of the kernel is. Files that tell
 * about the host's kernel and are readable by anyone are masked.
 */
#include "base/err.h"

/* In the sandbox's namespaces, before the pivot, between mask_begin(empty_fd) and mask_end(). */
ERR_CHECKED int procfs_mount(int root_fd, int empty_fd, struct err *e);
