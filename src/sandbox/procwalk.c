/* procwalk - iterates over the processes in /proc, or the threads of one; see procwalk.h. */
#include "sandbox/procwalk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int procwalk_each(int at_fd, const char *path, procwalk_fn *fn, void *context)
{
	int fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int sys = errno;

		if (fd >= 0)
			(void)close(fd);
		return -sys;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !fn(dirfd(dir), entry->d_name, context))
			break;
	(void)closedir(dir);
	return 0;
}
