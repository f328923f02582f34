#pragma once
/*
 * mount - the few mount operations that a sandbox's root is built from.
 *
 * Everything goes through descriptors (open_tree, fsopen, move_mount): a source is pinned
 * before it is used and a target is found beneath the new root by the kernel, so no name is
 * looked up twice and no symlink planted by an earlier sandbox can redirect a mount.
 *
 * Every mount is nosuid and nodev, but the binds of device nodes (sandbox/devices) are not.
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
 * A detached copy of the tree at dir_fd/path, now the caller's to close. The source must be in
 * this process's mount namespace. ERR_NOT_FOUND when it does not exist.
 */
ERR_CHECKED int mount_open_tree(int dir_fd, const char *path, unsigned flags, int *ret_fd,
				struct err *e);

/* Restricts a tree (MOUNT_*) and makes it private. With MOUNT_RECURSIVE, all below it too. */
ERR_CHECKED int mount_restrict(int tree_fd, unsigned flags, struct err *e);

/* Makes the mount that dir_fd is the root of writable again; not what is below it. */
ERR_CHECKED int mount_make_writable(int dir_fd, struct err *e);

/* Owners on disk (uid, gid) appear as the ids mapped in userns_fd. */
ERR_CHECKED int mount_set_idmap(int tree_fd, int userns_fd, struct err *e);

/* A new file system, detached. `options` are "key", "value" pairs, ended by NULL. */
ERR_CHECKED int mount_new(const char *type, const char *const *options, unsigned flags, int *ret_fd,
			  struct err *e);
ERR_CHECKED int mount_new_tmpfs(uint64_t size_bytes, const char *mode, int *ret_fd, struct err *e);

/* Attaches a detached tree at target_fd itself. */
ERR_CHECKED int mount_attach(int tree_fd, int target_fd, const char *name, struct err *e);

/*
 * As above, at dir_fd/name, looked up plainly: only for directories that we have just made and
 * nobody else could have touched.
 */
ERR_CHECKED int mount_attach_own(int tree_fd, int dir_fd, const char *name, struct err *e);

/* As above, at root_fd/path, which is resolved beneath the root. */
ERR_CHECKED int mount_attach_at(int tree_fd, int root_fd, const char *path, struct err *e);

/*
 * Makes `new_root_fd` the root and lets go of everything that was mounted before. Nothing but the
 * new root itself may be mounted over "/".
 */
ERR_CHECKED int mount_pivot(int new_root_fd, struct err *e);

/* Opens dir_fd/path, which lies beneath it; -ELOOP when a symbolic link is on the way. */
int mount_open_plain(int dir_fd, const char *path, int flags);

/* Opens root_fd/path with symlinks resolved inside the root. Returns -errno. */
int mount_open_in_root(int root_fd, const char *path, int flags);
