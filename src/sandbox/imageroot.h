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

#include <stdbool.h>
#include <sys/types.h>

struct policy;
struct rootfs_options;

/* The host directories that a root is mounted from. */
enum imageroot_source {
	IMAGEROOT_LAYERS,      /* holds the image's layers */
	IMAGEROOT_CHECKPOINTS, /* holds checkpoints' layers */
	IMAGEROOT_DISK,        /* a named sandbox's own; "upper" and "work" are created in it */

	IMAGEROOT_SOURCE_COUNT
};

#define IMAGEROOT_LAYERS_MAX 192u /* of the image and of checkpoints together */

struct imageroot_dir {
	const char *path; /* NULL: not needed */
	dev_t device;     /* identity of that path when it was checked */
	ino_t inode;
	/*
	 * A root caller's detached copy of the directory; native.c maps its owners and passes it to
	 * the child. -1: the child opens the path.
	 */
	int tree_fd;
};

struct imageroot {
	struct imageroot_dir dirs[IMAGEROOT_SOURCE_COUNT];
	/* names in the first two directories, highest layer first, separated by ':'; may be NULL */
	const char *layers;
	const char *checkpoints;
};

void imageroot_init(struct imageroot *i); /* no directories, no layers */
bool imageroot_has_trees(const struct imageroot *i);

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
