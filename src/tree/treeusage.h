#pragma once
/* treeusage - how much of the disk trees occupy alone. */
#include "base/err.h"

#include <stdint.h>

/* Deeper directories are not counted. */
#define TREEUSAGE_DEPTH_MAX 200u

/*
 * The bytes that removing all these trees would free: of files whose every name is in one of them,
 * and of directories. Nobody changes the trees meanwhile.
 */
ERR_CHECKED int treeusage_count(const int *fds, unsigned count, uint64_t *ret_bytes, struct err *e);
