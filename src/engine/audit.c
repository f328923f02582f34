/*
 * audit - who did what to which sandbox; see audit.h.
 *
 * Rotation. A writer holds a shared lock on the file it has opened, and has made sure since that
 * it still bears the name; who moves it away holds the exclusive lock. So nobody writes into a
 * file that was moved, and of two that want to move it the second sees that it is done. Locks
 * are only tried: a process that was stopped while it held one must not stop all others. Whoever
 * does not get one in time writes anyway, at worst into the file that has just been moved.
 */
#include "engine/audit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/timestamp.h"
#include "engine/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define OPEN_TRIES 8
#define LOCK_TRIES 20
#define LOCK_WAIT_NS 1000000

/* A shell, an agent, a service. */
void audit_find_caller(struct audit_caller *ret)
{
	struct audit_actor *actor = &ret->actor;
	char path[32];

	*actor =
		(struct audit_actor){ .uid = getuid(), .pid = (uint32_t)getppid(), .program = "?" };
	(void)snprintf(path, sizeof(path), "/proc/%u/comm", actor->pid);
	if (actor->pid > 0 &&
	    file_read_line(AT_FDCWD, path, ret->program, sizeof(ret->program)) >= 0)
		actor->program = ret->program;
}

/* Who holds a lock does so for microseconds, or is stopped. */
static bool lock(int fd, int kind)
{
	static const struct timespec pause = { .tv_nsec = LOCK_WAIT_NS };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, kind | LOCK_NB) == 0)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static bool has_name(int fd, const char *path, struct stat *ret)
{
	struct stat named;

	return fstat(fd, ret) == 0 && stat(path, &named) == 0 && named.st_ino == ret->st_ino &&
	       named.st_dev == ret->st_dev;
}

/* The file to write into, locked; -errno. It is moved away first when it is full. */
static int open_file(const char *path, const char *old_path, size_t len)
{
	cleanup_fd int fd = -1;

	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat st;

		cleanup_closep(&fd);
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		(void)lock(fd, LOCK_SH); /* without, we write anyway */
		if (!has_name(fd, path, &st))
			continue;
		if ((uint64_t)st.st_size + len <= AUDIT_MAX_BYTES)
			break;
		/* waiting for it gives the shared one back, so that two who want it do not block */
		if (!lock(fd, LOCK_EX))
			break; /* then it grows */
		if (has_name(fd, path, &st) && rename(path, old_path) < 0)
			break;
	}
	return take_fd(&fd);
}

static int append(char *const *environ_list, const struct buf *line)
{
	cleanup_free char *path = NULL;
	cleanup_free char *old_path = NULL;
	cleanup_fd int fd = -1;
	struct err e = { 0 };
	ssize_t n;

	if (statedir_path(environ_list, AUDIT_FILE, &path, &e) < 0 ||
	    statedir_path(environ_list, AUDIT_OLD_FILE, &old_path, &e) < 0)
		return -ENOENT;
	fd = open_file(path, old_path, line->len);
	if (fd == -ENOENT) {
		cleanup_freep(&path);
		path = NULL;
		if (statedir_make_path(environ_list, AUDIT_FILE, &path, &e) < 0)
			return e.sys ? -e.sys : -ENOENT;
		fd = open_file(path, old_path, line->len);
	}
	if (fd < 0)
		return fd;
	n = write(fd, line->bytes, line->len);
	if (n < 0)
		return -errno;
	return (size_t)n == line->len ? 0 : -ENOSPC;
}

int audit_write(char *const *environ_list, const struct audit_event *event)
{
	const struct audit_actor *actor = event->actor;
	struct audit_caller caller;
	struct named_identity who = { 0 };
	cleanup_buf struct buf line;

	if (!actor) {
		audit_find_caller(&caller);
		actor = &caller.actor;
	}
	if (event->who)
		who = *event->who;
	else
		named_identify(environ_list, event->sandbox, &who);
	buf_init(&line, AUDITLINE_MAX_BYTES);
	auditline_format(
		&(struct auditline){ .time_ms = timestamp_now_ms(),
				     .uid = actor->uid,
				     .pid = actor->pid,
				     .program = actor->program,
				     .sandbox = event->sandbox,
				     .id = who.id[0] ? who.id : NULL,
				     .owner = who.owner[0] ? who.owner : NULL,
				     .type = event->type,
				     .what = event->what,
				     .argv = event->argv,
				     .result = event->result ? event->result : AUDITLINE_RESULT_OK,
				     .detail = event->detail },
		&line);
	return append(environ_list, &line);
}
