/* hostpath - opens a host path without following a sandbox's links; see hostpath.h. */
#include "workspace/hostpath.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16u /* links followed in one path */

/* Can no sandbox have created the entries of directory `dir` (dir_fd)? */
static bool is_roots_own(int dir_fd, const char *dir)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	return geteuid() != 0 || strcmp(dir, "/") == 0 || strcmp(dir, "/var") == 0;
}

/* path[0..end) is the link link_fd: returns the path with the link replaced by its target. */
static int replace_link(int link_fd, const char *path, size_t end, char **ret, struct err *e)
{
	cleanup_free char *dir = mem_dup_bytes(path, end);
	cleanup_free char *start = NULL;
	cleanup_free char *joined = NULL;
	cleanup_free char *whole = NULL;
	char text[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", text, sizeof(text) - 1);

	if (n < 0)
		return err_sys(e, errno, "read the link '%s'", dir);
	text[n] = '\0';
	*strrchr(dir, '/') = '\0';
	start = path_absolute(dir[0] ? dir : "/", text);
	joined = start ? mem_format("%s%s", start, path + end) : NULL;
	whole = joined ? path_absolute("/", joined) : NULL;
	if (!whole)
		return err_set(e, ERR_INVALID, "the link '%.*s' leads above the root", (int)end,
			       path);
	*ret = take_ptr(whole);
	return 0;
}

static int refuse_link(const char *path, size_t end, struct err *e)
{
	if (!path[end])
		return err_set(e, ERR_INVALID,
			       "'%s' is a symbolic link (name the place that it leads to)", path);
	return err_set(e, ERR_INVALID,
		       "'%s' leads through the symbolic link '%.*s' (name the place that it leads "
		       "to)",
		       path, (int)end, path);
}

/* Follows the first link of the path if only root can have created it. */
static int follow_first_link(const char *path, char **ret, struct err *e)
{
	cleanup_fd int dir_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t at = 0; dir_fd >= 0 && path[at];) {
		size_t end = at + 1 + strcspn(path + at + 1, "/");
		cleanup_free char *part = mem_dup_bytes(path + at + 1, end - at - 1);
		cleanup_free char *dir = mem_dup_bytes(path, at ? at : 1);
		cleanup_fd int fd = openat(dir_fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			return errno == ENOENT
				       ? err_set(e, ERR_NOT_FOUND, "'%s' does not exist", path)
				       : err_sys(e, errno, "open '%s'", path);
		if (S_ISLNK(st.st_mode) && is_roots_own(dir_fd, dir))
			return replace_link(fd, path, end, ret, e);
		if (S_ISLNK(st.st_mode))
			return refuse_link(path, end, e);
		(void)close(dir_fd);
		dir_fd = take_fd(&fd);
		at = end;
	}
	/* the link has vanished meanwhile: another process is changing the path */
	return dir_fd < 0 ? err_sys(e, errno, "open /")
			  : err_set(e, ERR_BUSY, "'%s' was replaced meanwhile", path);
}

int hostpath_open(const char *path, int *ret_fd, struct err *e)
{
	cleanup_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *current = mem_dup(path);

	if (root_fd < 0)
		return err_sys(e, errno, "open /");
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		const char *below = current + strspn(current, "/");
		int fd = mount_open_plain(root_fd, *below ? below : ".", O_PATH);
		char *next = NULL;

		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		if (fd == -ENOENT)
			return err_set(e, ERR_NOT_FOUND, "'%s' does not exist", path);
		if (fd != -ELOOP)
			return err_sys(e, -fd, "open '%s'", path);
		if (follow_first_link(current, &next, e) < 0)
			return -1;
		free(current);
		current = next;
	}
	return err_set(e, ERR_INVALID, "'%s' leads through more than %u links", path, LINKS_MAX);
}

char *hostpath_of(int fd)
{
	char link[32], real[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n < 0)
		return NULL;
	real[n] = '\0';
	return mem_dup(real);
}

char *hostpath_find_real(const char *path)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? NULL : hostpath_of(fd);
}
