#pragma once
/*
 * hostroot - the base of the root for the host image.
 *
 * This machine's programs bound read-only, a filtered /etc, and a skeleton of empty directories.
 * Made in two steps: what is written and the places to bind, then the binds. For a fresh sandbox
 * both go to one tmpfs; for a named one the first is the lowest layer of its overlay.
 */
#include "base/err.h"

struct rootfs_options;

/* Before the pivot: fills the empty tmpfs root_fd. Its binds are read-only, it itself is writable.
 */
ERR_CHECKED int hostroot_fill(int root_fd, const struct rootfs_options *o, struct err *e);

/* The first step alone. */
ERR_CHECKED int hostroot_make(int base_fd, const struct rootfs_options *o, struct err *e);

/*
 * The second, over a root whose lowest layer was made by the first. What lies on top of that is
 * foreign: a place that is something else now is an error, never followed.
 */
ERR_CHECKED int hostroot_bind(int root_fd, int staging_fd, const struct rootfs_options *o,
			      struct err *e);
