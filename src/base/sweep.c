/*
 * sweep - removes a directory tree; see sweep.h.
 *
 * Theory of operation. The tree is walked from its top in passes. A pass descends LEVELS_MAX
 * directories, each held open by its descriptor, and removes what it finds; a deeper directory is
 * moved to the top, where this pass or the next one finds it. So no depth needs more descriptors or
 * stack, and no "..", which would lead out of the tree if somebody moved it. A pass that neither
 * removed nor moved anything is the last one: every removal makes the tree smaller, every move
 * makes it less deep.
 *
 * A directory that cannot be moved because the disk is full stays until other entries have been
 * removed.
 *
 * Hostile input: all names and modes. A move to an existing name either fails, and the next number
 * is tried, or replaces an empty directory of the same tree, which is to be removed anyway.
 */
#include "base/sweep.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LEVELS_MAX 32u
#define SHOWN_MAX_BYTES 200 /* of a name in a message */
#define OPEN_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Missing in some distributions' headers. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

struct sweep {
	int top_fd;
	uint64_t change_count; /* entries removed or moved */
	uint64_t moved_name;   /* number of the next moved directory */
	int move_error;        /* why a directory could not be moved, 0 if none */
};

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* The name is untrusted. */
static int fail(struct err *e, int sys, const char *what, const char *name)
{
	(void)err_sys(e, sys, "%s '%.*s'", what, SHOWN_MAX_BYTES, name);
	err_sanitize(e);
	return -1;
}

/* Changes the mode of a directory that cannot be opened, without following a link. */
static void permit_at(int dir_fd, const char *name)
{
	cleanup_fd int fd = -1;
	char path[64];

	if (syscall(SYS_fchmodat2, dir_fd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOSYS)
		return;
	fd = openat(dir_fd, name, O_PATH | OPEN_FLAGS);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		(void)chmod(path, 0700); /* the next attempt to open will show */
}

/* Opens a directory; changes a mode that locks us out, if we own it. */
static int open_directory(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | OPEN_FLAGS);
	struct stat st;

	if (fd < 0 && errno == EACCES) {
		permit_at(dir_fd, name);
		fd = openat(dir_fd, name, O_RDONLY | OPEN_FLAGS);
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* a failure shows in the next steps */
	return fd;
}

static bool is_name_taken(int error)
{
	return error == EEXIST || error == ENOTEMPTY || error == ENOTDIR;
}

/* Returns -errno. */
static int try_move(struct sweep *s, int dir_fd, const char *name)
{
	char moved[32];
	int r;

	do {
		(void)snprintf(moved, sizeof(moved), "swept-%" PRIu64, s->moved_name++);
		r = renameat(dir_fd, name, s->top_fd, moved) < 0 ? -errno : 0;
	} while (is_name_taken(-r));
	return r;
}

static int move_up(struct sweep *s, int dir_fd, const char *name, struct err *e)
{
	int r = try_move(s, dir_fd, name);

	if (r == -EACCES) { /* moving changes its "..", so it must be writable */
		cleanup_fd int fd = open_directory(dir_fd, name);

		if (fd >= 0)
			r = try_move(s, dir_fd, name);
	}
	if (r == -ENOSPC || r == -EDQUOT) {
		s->move_error = -r;
		return 0;
	}
	if (r < 0)
		return fail(e, -r, "move", name);
	s->change_count++;
	return 0;
}

static int sweep_inside(struct sweep *s, int fd, const char *name, unsigned level, struct err *e);

/* Handles an entry of a directory at depth `level`. */
static int sweep_entry(struct sweep *s, int dir_fd, const struct dirent *entry, unsigned level,
		       struct err *e)
{
	const char *name = entry->d_name;
	int fd;

	if (entry->d_type != DT_DIR && unlinkat(dir_fd, name, 0) == 0) {
		s->change_count++;
		return 0;
	}
	if (entry->d_type != DT_DIR && errno != EISDIR)
		return errno == ENOENT ? 0 : fail(e, errno, "remove", name);
	if (level == LEVELS_MAX)
		return move_up(s, dir_fd, name, e);
	fd = open_directory(dir_fd, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail(e, errno, "open", name);
	if (sweep_inside(s, fd, name, level + 1, e) < 0)
		return -1;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
		s->change_count++;
	else if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
		return fail(e, errno, "remove", name);
	return 0;
}

/* Takes ownership of fd. Entries that cannot be removed yet stay. */
static int sweep_inside(struct sweep *s, int fd, const char *name, unsigned level, struct err *e)
{
	CLEANUP(closedirp) DIR *dir = fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		int sys = errno;

		(void)close(fd);
		return fail(e, sys, "list", name);
	}
	while ((errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (sweep_entry(s, dirfd(dir), entry, level, e) < 0)
			return -1;
	}
	return errno != 0 ? fail(e, errno, "list", name) : 0;
}

static int sweep_directory(int dir_fd, const char *name, struct err *e)
{
	cleanup_fd int top_fd = open_directory(dir_fd, name);
	struct sweep s = { .top_fd = top_fd };

	if (top_fd < 0)
		return errno == ENOENT ? 0 : fail(e, errno, "open", name);
	for (;;) {
		uint64_t before = s.change_count;
		int fd = openat(top_fd, ".", O_RDONLY | OPEN_FLAGS);

		if (fd < 0)
			return fail(e, errno, "open", name);
		s.move_error = 0;
		if (sweep_inside(&s, fd, name, 1, e) < 0)
			return -1;
		if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if ((errno != ENOTEMPTY && errno != EEXIST) || s.change_count == before)
			return fail(e, s.move_error ? s.move_error : errno, "remove", name);
	}
}

int sweep_tree(int dir_fd, const char *name, struct err *e)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return fail(e, errno, "remove", name);
	return sweep_directory(dir_fd, name, e);
}
