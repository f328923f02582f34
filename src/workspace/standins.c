/*
 * standins - placeholders for protected names that do not exist; see standins.h.
 *
 * Theory of operation. We create a placeholder, or share another sandbox's, then take a shared
 * lock; at the end the sandbox that gets the exclusive lock removes it. If it was removed between
 * creation and lock, it is created again. Its mode distinguishes it from other files.
 *
 * Hostile input: every name in the directory, and other sandboxes that change them at this moment.
 */
#include "workspace/standins.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STANDIN_DIR_MODE 01555
#define STANDIN_FILE_MODE 01444
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 5000000l
#define STANDIN_TRIES 8

/*
 * Nobody else creates a file or empty directory with this mode, which not even its owner may write.
 * The set-group-id bit may be inherited from the parent directory and is ignored.
 */
static bool is_standin(int fd, const char *text)
{
	mode_t type = text ? S_IFREG : S_IFDIR;
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & (S_IFMT | 05222)) == (type | S_ISVTX) &&
	       st.st_uid == geteuid() && (!text || (size_t)st.st_size <= strlen(text));
}

static bool is_still_there(int parent_fd, const char *name, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(parent_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void take_away(struct standin *s)
{
	/* only the last sandbox that uses it gets the lock */
	if (s->fd >= 0 && flock(s->fd, LOCK_EX | LOCK_NB) == 0 &&
	    is_still_there(s->parent_fd, s->name, s->fd))
		(void)unlinkat(s->parent_fd, s->name, s->text ? 0 : AT_REMOVEDIR);
	cleanup_closep(&s->fd);
	cleanup_closep(&s->parent_fd);
	free(s->name);
	s->name = NULL;
}

/* Returns -errno. */
static int make_standin(int parent_fd, const char *name, const char *text)
{
	cleanup_fd int fd = -1;

	if (!text)
		return mkdirat(parent_fd, name, STANDIN_DIR_MODE) < 0 ? -errno : 0;
	fd = openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, STANDIN_FILE_MODE);
	if (fd < 0)
		return -errno;
	return file_write_all(fd, text, strlen(text));
}

/* Is a process inside unable to create the name as well? An owner could change the mode. */
static bool is_out_of_reach(int parent_fd, int error)
{
	struct stat st;

	if (error == -EROFS || error == -EPERM)
		return true;
	/* a directory of root's that the caller may not write: no sandbox has root's id */
	return error == -EACCES && fstat(parent_fd, &st) == 0 && st.st_uid == 0 && geteuid() != 0;
}

/* The exclusive holder is about to remove it. Limited tries, as a sandbox may keep the lock. */
static int lock_shared(int fd)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		(void)nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

/* 1: placeholder created; 0: real file present, or nobody inside can create it; -errno. */
static int stand_in(int parent_fd, const char *name, const char *text, int *ret_fd)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

	for (unsigned i = 0; i < STANDIN_TRIES; i++) {
		int r = make_standin(parent_fd, name, text);
		cleanup_fd int fd = -1;

		if (r < 0 && r != -EEXIST)
			return is_out_of_reach(parent_fd, r) ? 0 : r;
		fd = openat(parent_fd, name, flags | (text ? 0 : O_DIRECTORY));
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return file_is_absence(-errno) ? 0 : -errno;
		if (!is_standin(fd, text))
			return 0;
		r = lock_shared(fd);
		if (r < 0)
			return r;
		if (!is_still_there(parent_fd, name, fd))
			continue;
		*ret_fd = take_fd(&fd);
		return 1;
	}
	return -EBUSY;
}

/* Compares inodes, not the mode: a sandbox can give any directory the same mode. */
static bool is_ours(const struct standins *s, int fd)
{
	struct stat st, own;

	if (fstat(fd, &st) < 0)
		return false;
	for (unsigned i = 0; i < s->count; i++)
		if (fstat(s->rows[i].fd, &own) == 0 && own.st_dev == st.st_dev &&
		    own.st_ino == st.st_ino)
			return true;
	return false;
}

int standins_add(struct standins *s, int base_fd, const char *base, const char *name,
		 const char *text, struct err *e)
{
	cleanup_fd int parent_fd = beneath_open_parent(base_fd, name);
	const char *last = path_base_name(name);
	int fd = -1, r;

	if (parent_fd < 0 && !file_is_absence(parent_fd))
		return err_sys(e, -parent_fd, "keep the name '%s' free in '%s'", name, base);
	if (parent_fd < 0 || is_ours(s, parent_fd)) /* the parent is a placeholder itself */
		return 0;
	r = stand_in(parent_fd, last, text, &fd);
	if (r < 0)
		return err_sys(e, -r, "keep the name '%s' free in '%s'", name, base);
	if (r == 0)
		return 0;
	s->rows = mem_grow(s->rows, s->count + 1, sizeof(*s->rows));
	s->rows[s->count++] = (struct standin){
		.parent_fd = take_fd(&parent_fd), .fd = fd, .name = mem_dup(last), .text = text
	};
	return 1;
}

void standins_done(struct standins *s)
{
	while (s->count > 0)
		take_away(&s->rows[--s->count]);
	free(s->rows);
	s->rows = NULL;
}
