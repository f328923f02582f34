/*
 * mount - mount operations by descriptor; see mount.h.
 *
 * musl and older C libraries have no wrappers for these calls, so we call them by number.
 */
#include "host/mount.h"

#include "base/cleanup.h"
#include "base/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TMPFS_BYTES_PER_INODE 4096u /* one page: tiny files use up both at about the same rate */
#define TMPFS_INODES_MIN 4096u
#define TMPFS_LIMITS 4  /* words at the start of the options that may be left out */
#define OPEN_RETRIES 16 /* openat2 fails with EAGAIN if something is renamed meanwhile */

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef MS_PRIVATE
#define MS_PRIVATE (1 << 18)
#endif

static uint64_t attributes(unsigned flags)
{
	uint64_t set = wall_stands(WALL_NOSUID) ? MOUNT_ATTR_NOSUID : 0;

	if (!(flags & MOUNT_DEVICES) && wall_stands(WALL_NODEV))
		set |= MOUNT_ATTR_NODEV;
	if (flags & MOUNT_READ_ONLY)
		set |= MOUNT_ATTR_RDONLY;
	if (flags & MOUNT_NO_EXEC)
		set |= MOUNT_ATTR_NOEXEC;
	return set;
}

static int set_attributes(int fd, unsigned at_flags, const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | at_flags, attr,
			    sizeof(*attr));
}

int mount_open_tree(int dir_fd, const char *path, unsigned flags, int *ret_fd, struct err *e)
{
	unsigned open_flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	int fd;

	if (path[0] == '\0')
		open_flags |= AT_EMPTY_PATH;
	if (flags & MOUNT_RECURSIVE)
		open_flags |= AT_RECURSIVE;
	fd = (int)syscall(SYS_open_tree, dir_fd, path, open_flags);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "'%s' does not exist", path);
	if (fd < 0)
		return err_sys(e, errno, "open '%s' as a mount", path);
	*ret_fd = fd;
	return 0;
}

int mount_restrict(int tree_fd, unsigned flags, struct err *e)
{
	const struct mount_attr attr = {
		.attr_set = attributes(flags),
		.propagation = wall_stands(WALL_PRIVATE_PROPAGATION) ? MS_PRIVATE : 0,
	};

	if (set_attributes(tree_fd, flags & MOUNT_RECURSIVE ? AT_RECURSIVE : 0, &attr) < 0)
		return err_sys(e, errno, "restrict a mount");
	return 0;
}

int mount_make_writable(int dir_fd, struct err *e)
{
	const struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	if (set_attributes(dir_fd, 0, &attr) < 0)
		return err_sys(e, errno, "make a mount writable");
	return 0;
}

int mount_set_idmap(int tree_fd, int userns_fd, struct err *e)
{
	const struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns_fd,
	};

	if (set_attributes(tree_fd, 0, &attr) < 0)
		return err_sys(e, errno, "map the owners of a mount");
	return 0;
}

int mount_new(const char *type, const char *const *options, unsigned flags, int *ret_fd,
	      struct err *e)
{
	cleanup_fd int context_fd = -1;
	int fd;

	context_fd = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (context_fd < 0)
		return err_sys(e, errno, "open file system type %s", type);
	for (; options && options[0]; options += 2)
		if (syscall(SYS_fsconfig, context_fd, FSCONFIG_SET_STRING, options[0], options[1],
			    0) < 0)
			return err_sys(e, errno, "set %s=%s of %s", options[0], options[1], type);
	if (syscall(SYS_fsconfig, context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, errno, "create a %s", type);
	fd = (int)syscall(SYS_fsmount, context_fd, FSMOUNT_CLOEXEC, attributes(flags));
	if (fd < 0)
		return err_sys(e, errno, "mount a %s", type);
	*ret_fd = fd;
	return 0;
}

int mount_new_tmpfs(uint64_t size_bytes, const char *mode, int *ret_fd, struct err *e)
{
	char size[32], inodes[32];
	uint64_t inode_count = size_bytes / TMPFS_BYTES_PER_INODE;
	const char *const options[] = {
		"size", size, "nr_inodes", inodes, "mode", mode, NULL,
	};

	if (inode_count < TMPFS_INODES_MIN)
		inode_count = TMPFS_INODES_MIN;
	(void)snprintf(size, sizeof(size), "%" PRIu64, size_bytes);
	(void)snprintf(inodes, sizeof(inodes), "%" PRIu64, inode_count);
	return mount_new("tmpfs", options + (wall_stands(WALL_DISK_LIMIT) ? 0 : TMPFS_LIMITS), 0,
			 ret_fd, e);
}

int mount_attach(int tree_fd, int target_fd, const char *name, struct err *e)
{
	if (syscall(SYS_move_mount, tree_fd, "", target_fd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, errno, "mount '%s'", name);
	return 0;
}

int mount_attach_own(int tree_fd, int dir_fd, const char *name, struct err *e)
{
	if (syscall(SYS_move_mount, tree_fd, "", dir_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, errno, "mount '%s'", name);
	return 0;
}

static int open_resolved(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};

	for (int attempt = 0; attempt < OPEN_RETRIES; attempt++) {
		int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

int mount_open_plain(int dir_fd, const char *path, int flags)
{
	return open_resolved(dir_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int mount_open_in_root(int root_fd, const char *path, int flags)
{
	if (!wall_stands(WALL_TARGETS_IN_ROOT)) {
		path += strspn(path, "/");
		return open_resolved(root_fd, *path ? path : ".", flags, 0);
	}
	return open_resolved(root_fd, path, flags, RESOLVE_IN_ROOT);
}

int mount_attach_at(int tree_fd, int root_fd, const char *path, struct err *e)
{
	cleanup_fd int target_fd = mount_open_in_root(root_fd, path, O_PATH);

	if (target_fd < 0)
		return err_sys(e, -target_fd, "find '%s' to mount over", path);
	return mount_attach(tree_fd, target_fd, path, e);
}

/*
 * If something was mounted over the old root, the pivot would have unmounted that instead. ".." of
 * the root crosses to whatever is mounted there, so it must be the root itself.
 */
static int check_alone(int new_root_fd, struct err *e)
{
	struct stat root, above;

	if (fstat(new_root_fd, &root) < 0 || stat("/..", &above) < 0)
		return err_sys(e, errno, "look at the new root");
	if (root.st_dev != above.st_dev || root.st_ino != above.st_ino)
		return err_set(e, ERR_SYSTEM, "the old root is still there");
	return 0;
}

int mount_pivot(int new_root_fd, struct err *e)
{
	if (fchdir(new_root_fd) < 0)
		return err_sys(e, errno, "enter the new root");
	/* the old root is stacked on the new one at the same place */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, errno, "pivot to the new root");
	return 0;
}

int mount_drop_old_root(int new_root_fd, struct err *e)
{
	if (wall_stands(WALL_OLD_ROOT_GONE) && syscall(SYS_umount2, ".", MNT_DETACH) < 0)
		return err_sys(e, errno, "let go of the old root");
	if (chdir("/") < 0)
		return err_sys(e, errno, "enter the new root");
	return wall_stands(WALL_OLD_ROOT_GONE) ? check_alone(new_root_fd, e) : 0;
}
