#pragma once
/*
 * hostroot - the base of the root for the host image.
 *
 * The host's programs bound read-only, a filtered /etc, and a skeleton of empty directories. Built
 * in two steps: first the files and bind targets, then the bind mounts. For a fresh sandbox both go
 * to one tmpfs; for a named one the first step fills the lowest layer of its overlay.
 */
#include "base/err.h"

struct rootfs_options;

/* Both steps, before the pivot: read-only bind mounts in the empty, writable tmpfs root_fd. */
ERR_CHECKED int hostroot_fill(int root_fd, const struct rootfs_options *o, struct err *e);

/* The first step only. */
ERR_CHECKED int hostroot_make(int base_fd, const struct rootfs_options *o, struct err *e);

/*
 * The second step, over a root whose lowest layer hostroot_make() filled. The sandbox wrote the
 * upper layers, so a bind target that is no longer a plain directory is an error, and links are
 * never followed.
 */
ERR_CHECKED int hostroot_bind(int root_fd, int staging_fd, const struct rootfs_options *o,
			      struct err *e);
