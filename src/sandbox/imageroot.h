#pragma once
/*
 * imageroot - the base of the root for an OCI image.
 *
 * An overlay: the image's layers below, read-only and shared by every sandbox; on top a directory
 * of a tmpfs with a size. /dev and the three files about names are ours. Everything in the layers
 * is foreign: names are followed inside the root only.
 */
#include "base/err.h"

#include <sys/types.h>

struct policy;

struct imageroot {
	const char *layers_path; /* the directory that holds the layers */
	dev_t device;            /* what that path was when it was checked */
	ino_t inode;
	const char *lower; /* names in it, highest first, separated by ':' */
	/*
	 * A root caller's detached copy of that directory, opened outside; native.c maps its owners
	 * and hands it in. -1: the child opens the path.
	 */
	int tree_fd;
};

/*
 * In the child, before the pivot. staging_fd is an empty tmpfs, attached. *ret_root_fd is the
 * overlay's root, attached below it and writable; the caller's to close.
 */
ERR_CHECKED int imageroot_mount(int staging_fd, const struct imageroot *image, int *ret_root_fd,
				struct err *e);

/*
 * Could it be mounted here? In a user and mount namespace of its own, as their root. e->sys is
 * EOPNOTSUPP where it could, but this kernel's tmpfs has no user.* attributes (before 6.6): then a
 * directory of the image that is removed cannot be made again.
 */
ERR_CHECKED int imageroot_try(struct err *e);

/* Then: the directories every sandbox has, and the files about names. resolv_conf may be NULL. */
ERR_CHECKED int imageroot_fill(int root_fd, const struct policy *p, const char *resolv_conf,
			       struct err *e);

/* Puts staging_fd/dev over the image's own. */
ERR_CHECKED int imageroot_cover_dev(int staging_fd, int root_fd, struct err *e);
