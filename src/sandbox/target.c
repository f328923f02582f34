/* target - mount points in the new root; see target.h. */
#include "sandbox/target.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creates root_fd/path unless it exists; its parent directory must exist. Returns -errno. */
static int make_entry(int root_fd, const char *path, mode_t type, mode_t mode)
{
	cleanup_fd int place_fd = mount_open_in_root(root_fd, path, O_PATH);
	cleanup_fd int parent_fd = -1;
	const char *name = path_base_name(path);
	char parent[PATH_MAX];

	if (place_fd >= 0)
		return 0;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	parent_fd = mount_open_in_root(root_fd, parent, O_PATH | O_DIRECTORY);
	if (parent_fd < 0)
		return parent_fd;
	if (type == S_IFDIR)
		return mkdirat(parent_fd, name, mode) < 0 ? -errno : 0;
	return mknodat(parent_fd, name, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

static int make(int root_fd, const char *target, mode_t type, mode_t mode, struct err *e)
{
	char partial[PATH_MAX];
	size_t len = strlen(target);

	if (len >= sizeof(partial))
		return err_set(e, ERR_INVALID, "target '%s' is too long", target);
	memcpy(partial, target, len + 1);
	for (size_t i = 1; i <= len; i++) {
		int r;

		if (target[i] != '/' && target[i] != '\0')
			continue;
		partial[i] = '\0';
		r = make_entry(root_fd, partial, i < len ? S_IFDIR : type, i < len ? 0755 : mode);
		partial[i] = target[i];
		if (r == -EROFS)
			return err_set(e, ERR_INVALID,
				       "'%s' cannot be made: it lies in a read-only directory of "
				       "this machine",
				       target);
		if (r < 0)
			return err_sys(e, -r, "make a place for '%s'", target);
	}
	return 0;
}

int target_make(int root_fd, const char *target, mode_t type, struct err *e)
{
	return make(root_fd, target, type, 0755, e);
}

int target_make_dir(int root_fd, const char *target, mode_t mode, struct err *e)
{
	return make(root_fd, target, S_IFDIR, mode, e);
}

int target_make_user_dir(int root_fd, const char *target, uid_t uid, gid_t gid, struct err *e)
{
	cleanup_fd int there_fd = mount_open_in_root(root_fd, target, O_PATH);
	cleanup_fd int dir_fd = -1;

	if (there_fd >= 0)
		return 0;
	if (target_make_dir(root_fd, target, 0755, e) < 0)
		return -1;
	dir_fd = mount_open_in_root(root_fd, target, O_PATH | O_DIRECTORY);
	/* with a single id the user owns everything already, and the call changes nothing */
	if (dir_fd < 0 || fchownat(dir_fd, "", uid, gid, AT_EMPTY_PATH) < 0)
		return err_sys(e, dir_fd < 0 ? -dir_fd : errno, "give '%s' to its user", target);
	return 0;
}
