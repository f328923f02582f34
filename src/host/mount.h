#pragma once
/*
 * mount - the few mount operations that a sandbox's root is built from.
 *
 * Everything goes through descriptors (open_tree, fsopen, move_mount): a source is pinned before
 * use and the kernel resolves a target beneath the new root, so no name is looked up twice and no
 * symlink planted by an earlier sandbox can redirect a mount.
 *
 * Every mount is nosuid and nodev, except the binds of device nodes (sandbox/devices).
 */
#include "base/err.h"

#include <stdint.h>

enum mount_flags {
	MOUNT_READ_ONLY = 1 << 0,
	MOUNT_NO_EXEC = 1 << 1,
	MOUNT_RECURSIVE = 1 << 2,
	MOUNT_DEVICES = 1 << 3, /* device nodes work */
};

/*
 * Opens a detached copy of the tree at dir_fd/path; the caller closes it. The source must be in
 * this process's mount namespace. ERR_NOT_FOUND if it does not exist.
 */
ERR_CHECKED int mount_open_tree(int dir_fd, const char *path, unsigned flags, int *ret_fd,
				struct err *e);

/* Restricts a tree (MOUNT_*), with MOUNT_RECURSIVE all mounts below it, and makes it private. */
ERR_CHECKED int mount_restrict(int tree_fd, unsigned flags, struct err *e);

/* Makes the mount whose root is dir_fd writable again, but not the mounts below it. */
ERR_CHECKED int mount_make_writable(int dir_fd, struct err *e);

/* Owners on disk (uid, gid) appear as the ids mapped in userns_fd. */
ERR_CHECKED int mount_set_idmap(int tree_fd, int userns_fd, struct err *e);

/* Creates a new, detached file system. `options` are "key", "value" pairs ended by NULL. */
ERR_CHECKED int mount_new(const char *type, const char *const *options, unsigned flags, int *ret_fd,
			  struct err *e);
ERR_CHECKED int mount_new_tmpfs(uint64_t size_bytes, const char *mode, int *ret_fd, struct err *e);

/* Attaches a detached tree at target_fd itself. */
ERR_CHECKED int mount_attach(int tree_fd, int target_fd, const char *name, struct err *e);

/*
 * Like mount_attach(), at dir_fd/name, looked up without checks: only for directories that we have
 * just created and nobody else can have touched.
 */
ERR_CHECKED int mount_attach_own(int tree_fd, int dir_fd, const char *name, struct err *e);

/* Like mount_attach(), at root_fd/path, resolved beneath the root. */
ERR_CHECKED int mount_attach_at(int tree_fd, int root_fd, const char *path, struct err *e);

/*
 * Makes `new_root_fd` the root, with the old root still mounted over it; mount_drop_old_root() then
 * unmounts everything mounted before, which waits for RCU. Nothing but the new root itself may be
 * mounted over "/", and the working directory must not change in between.
 */
ERR_CHECKED int mount_pivot(int new_root_fd, struct err *e);
ERR_CHECKED int mount_drop_old_root(int new_root_fd, struct err *e);

/* Opens dir_fd/path beneath dir_fd. Returns -errno, -ELOOP if the path contains a symbolic link. */
int mount_open_plain(int dir_fd, const char *path, int flags);

/* Opens root_fd/path with symlinks resolved inside the root. Returns -errno. */
int mount_open_in_root(int root_fd, const char *path, int flags);
