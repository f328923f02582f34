/* sweep - removes a whole tree; see sweep.h. */
#include "base/sweep.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 900 /* a descriptor each; deeper than image/layer makes them */

static int sweep_at(int dir_fd, const char *name, unsigned depth, struct err *e);

static int sweep_inside(int fd, const char *name, unsigned depth, struct err *e)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = err_sys(e, errno, "list '%s'", name);
		(void)close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = sweep_at(dirfd(dir), entry->d_name, depth + 1, e);
	(void)closedir(dir);
	return r;
}

static int sweep_at(int dir_fd, const char *name, unsigned depth, struct err *e)
{
	cleanup_fd int fd = -1;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, errno, "remove '%s'", name);
	if (depth > DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "'%s' lies too deep", name);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", name);
	if (sweep_inside(take_fd(&fd), name, depth, e) < 0)
		return -1;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "remove '%s'", name);
	return 0;
}

int sweep_tree(int dir_fd, const char *name, struct err *e)
{
	return sweep_at(dir_fd, name, 0, e);
}
