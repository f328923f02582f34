/*
 * runtimecache - directories created once and mounted by many sandboxes; see runtimecache.h.
 *
 * If one is removed before it is mounted, the sandbox creates its own without an error. One that is
 * mounted as a directory must not be removed: an overlay whose layer of whiteouts disappears shows
 * what they hid. So its users lock it (runtimecache_hold()).
 */
#include "state/runtimecache.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "state/ak.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A holder has a shared lock, so one that is held cannot be locked for removal. */
static void remove_unheld(int kind_fd, const char *name)
{
	cleanup_fd int fd = openat(kind_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct err ignored;

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)!sweep_tree(kind_fd, name, &ignored);
}

static void empty_if_full(int kind_fd, unsigned max)
{
	int fd = openat(kind_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir && count > max) {
		rewinddir(dir);
		while ((entry = readdir(dir)))
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				remove_unheld(kind_fd, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	else
		cleanup_closep(&fd);
}

static bool make(int kind_fd, const struct runtimecache_dir *d)
{
	cleanup_fd int dir_fd = -1;
	char fresh[32];
	struct err ignored;
	bool is_made;

	(void)snprintf(fresh, sizeof(fresh), ".new-%d", (int)getpid());
	if (sweep_tree(kind_fd, fresh, &ignored) < 0 || mkdirat(kind_fd, fresh, 0755) < 0)
		return false;
	dir_fd = openat(kind_fd, fresh, O_PATH | O_DIRECTORY | O_CLOEXEC);
	is_made = dir_fd >= 0 && d->fill(dir_fd, d->context, &ignored) == 0 &&
		  (renameat(kind_fd, fresh, kind_fd, d->name) == 0 || errno == EEXIST ||
		   errno == ENOTEMPTY);
	(void)!sweep_tree(kind_fd, fresh, &ignored); /* lost the race, or incomplete */
	return is_made;
}

static bool make_in(const char *runtime, const struct runtimecache_dir *d)
{
	cleanup_free char *kind = mem_format("%s/%s", runtime, d->kind);
	mode_t mask = umask(0);
	cleanup_fd int kind_fd = -1;
	bool is_made = false;

	if (mkdir(kind, 0755) == 0 || errno == EEXIST)
		kind_fd = open(kind, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (kind_fd >= 0) {
		empty_if_full(kind_fd, d->max);
		is_made = make(kind_fd, d);
	}
	(void)umask(mask);
	return is_made;
}

/* Nobody else can have put anything there. XDG_RUNTIME_DIR may name a directory like /tmp. */
static bool is_ours(const char *runtime)
{
	struct stat st;

	return lstat(runtime, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

char *runtimecache_get(const struct ak *ak, const struct runtimecache_dir *d)
{
	const char *runtime = ak->runtime_dir;
	cleanup_free char *path = NULL;

	if (!runtime || file_make_dirs(runtime, 0700) < 0 || !is_ours(runtime))
		return NULL;
	path = mem_format("%s/%s/%s", runtime, d->kind, d->name);
	return access(path, X_OK) == 0 || make_in(runtime, d) ? take_ptr(path) : NULL;
}

char *runtimecache_hold(const struct ak *ak, const struct runtimecache_dir *d, int *ret_held_fd)
{
	/* it may be removed before it is locked: then it is made again, once */
	for (unsigned i = 0; i < 2; i++) {
		cleanup_free char *path = runtimecache_get(ak, d);
		cleanup_fd int fd =
			path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
		struct stat st;

		if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
			continue;
		*ret_held_fd = take_fd(&fd);
		return take_ptr(path);
	}
	return NULL;
}
