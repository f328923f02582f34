#pragma once
/*
 * hostroot - the base of the root for the host image.
 *
 * This machine's programs bound read-only, a filtered /etc, and a skeleton of empty directories,
 * all in one tmpfs.
 */
#include "base/err.h"

struct policy;

/* Before the pivot; root_fd is the empty tmpfs. Its binds are read-only, it itself is writable. */
ERR_CHECKED int hostroot_fill(int root_fd, const struct policy *p, const char *resolv_conf,
			      struct err *e);
