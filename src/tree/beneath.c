/* beneath - opens directories below a shared one; see beneath.h. */
#include "tree/beneath.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_below(int base_fd, int fd)
{
	char links[2][32], paths[2][PATH_MAX];
	const int fds[] = { base_fd, fd };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		ssize_t n;

		(void)snprintf(links[i], sizeof(links[i]), "/proc/self/fd/%d", fds[i]);
		n = readlink(links[i], paths[i], sizeof(paths[i]) - 1);
		if (n < 0)
			return false;
		paths[i][n] = '\0';
	}
	return path_is_within(paths[1], paths[0]);
}

int beneath_open_parent(int base_fd, const char *name)
{
	const char *slash = strrchr(name, '/');
	cleanup_free char *parent = slash ? mem_dup_bytes(name, (size_t)(slash - name)) : NULL;
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	cleanup_fd int linked_fd = -1;
	int fd = mount_open_plain(base_fd, parent ? parent : ".", flags);

	if (fd == -ELOOP) {
		linked_fd = openat(base_fd, parent ? parent : ".", flags);
		if (linked_fd < 0)
			return -errno;
		fd = is_below(base_fd, linked_fd) ? take_fd(&linked_fd) : -ELOOP;
	}
	return fd;
}
