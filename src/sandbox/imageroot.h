#pragma once
/*
 * imageroot - a root that is an overlay: an OCI image, or a sandbox that stays.
 *
 * Below, read-only and shared: a named sandbox's checkpoints, then the image's layers or, for the
 * host image, a small base made for this start. On top a directory that takes what is written: of
 * a tmpfs with a size, or of the named sandbox's disk. /dev and the files about names are ours.
 * Everything in the layers is foreign: names are followed inside the root only.
 */
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct policy;
struct rootfs_options;

/* The directories outside that a root is mounted from. */
enum imageroot_source {
	IMAGEROOT_LAYERS,      /* holds the image's layers */
	IMAGEROOT_CHECKPOINTS, /* holds checkpoints' layers */
	IMAGEROOT_DISK,        /* a named sandbox's own: "upper" and "work" are made in it */

	IMAGEROOT_SOURCE_COUNT
};

#define IMAGEROOT_LAYERS_MAX 192u /* of the image and of checkpoints together */

struct imageroot_dir {
	const char *path; /* NULL: not needed */
	dev_t device;     /* what that path was when it was checked */
	ino_t inode;
	/*
	 * A root caller's detached copy of that directory, opened outside; native.c maps its owners
	 * and hands it in. -1: the child opens the path.
	 */
	int tree_fd;
};

struct imageroot {
	struct imageroot_dir dirs[IMAGEROOT_SOURCE_COUNT];
	/* names in the first two directories, highest first, separated by ':'; may be NULL */
	const char *layers;
	const char *checkpoints;
};

void imageroot_init(struct imageroot *i); /* "nothing" */
bool imageroot_has_trees(const struct imageroot *i);

/*
 * In the child, before the pivot. staging_fd is an empty tmpfs, attached. *ret_root_fd is the
 * overlay's root, attached below it and writable; the caller's to close.
 */
ERR_CHECKED int imageroot_mount(int staging_fd, const struct rootfs_options *o, int *ret_root_fd,
				struct err *e);

/*
 * Could it be mounted here? In a user and mount namespace of its own, as their root. e->sys is
 * EOPNOTSUPP where it could, but this kernel's tmpfs has no user.* attributes (before 6.6): then a
 * directory of the image that is removed cannot be made again.
 */
ERR_CHECKED int imageroot_try(struct err *e);

/* Then: the directories every sandbox has, and the files about names. */
ERR_CHECKED int imageroot_fill(int root_fd, const struct rootfs_options *o, struct err *e);

/* Puts staging_fd/dev over the image's own. */
ERR_CHECKED int imageroot_cover_dev(int staging_fd, int root_fd, struct err *e);
