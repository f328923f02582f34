#pragma once
/*
 * imageroot - a root that is an overlay: an OCI image or a named sandbox.
 *
 * The lower layers are read-only and shared: a named sandbox's checkpoints, then the image's layers
 * or, for the host image, a small base created for this start. The upper directory takes all
 * writes: in a tmpfs with a size limit, or on the named sandbox's disk. /dev and the files about
 * host names are ours. The layers' content is hostile, so names are resolved inside the root only.
 */
#include "base/err.h"
#include "protocol/rootspec.h"

#include <stdbool.h>

struct policy;
struct rootfs_options;

bool imageroot_has_trees(const struct rootspec_image *i);

/*
 * Mounts the overlay in the child, before the pivot. staging_fd is an empty, attached tmpfs.
 * *ret_root_fd is the overlay's root, writable and attached below staging_fd; the caller closes it.
 */
ERR_CHECKED int imageroot_mount(int staging_fd, const struct rootfs_options *o, int *ret_root_fd,
				struct err *e);

/*
 * Tests whether the overlay can be mounted on this host; runs as root of a user and mount namespace
 * of its own. e->sys is EOPNOTSUPP if mounting works but this kernel's tmpfs has no user.*
 * attributes (before 6.6): then a removed directory of the image cannot be created again.
 */
ERR_CHECKED int imageroot_try(struct err *e);

/* After that: creates the directories every sandbox has and the files about host names. */
ERR_CHECKED int imageroot_fill(int root_fd, const struct rootfs_options *o, struct err *e);

/* Mounts staging_fd/dev over the image's /dev. */
ERR_CHECKED int imageroot_cover_dev(int staging_fd, int root_fd, struct err *e);
