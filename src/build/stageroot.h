#pragma once
/*
 * stageroot - mounts what a stage consists of, for a process that copies files into or out of it.
 *
 * In a mount namespace of this process's own: nobody else sees the mounts, and they end with it.
 * Layers are named relative to the store's directory of layers, as they lie on disk; so root's have
 * the owners of the image, others those of the caller's user namespace, which the process has
 * entered (tree/owner).
 */
#include "base/err.h"

struct stageroot {
	int layers_fd;           /* the store's directory of layers */
	const char *layers_path; /* the same: a mount takes nothing from another mount namespace */
	const char *work;  /* "making/NAME" in it: "upper" and "work" are, or will be, below; ... */
	const char *lower; /* names in it, highest first, separated by ':' */
};

/* Once, before the mounts: leaves the mount namespace that others share. */
ERR_CHECKED int stageroot_enter(const struct stageroot *s, struct err *e);

/* The layers with "upper" on top, writable; the caller closes it. */
ERR_CHECKED int stageroot_mount(const struct stageroot *s, int *ret_fd, struct err *e);

/* The layers alone, read-only. */
ERR_CHECKED int stageroot_mount_lower(const struct stageroot *s, const char *lower, int *ret_fd,
				      struct err *e);
