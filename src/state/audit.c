/*
 * audit - the log of actions on sandboxes; see audit.h.
 *
 * Rotation. A writer takes a shared lock on the opened file and then checks that the file still has
 * its name; the process that renames it takes the exclusive lock. So nobody writes into a renamed
 * file, and of two processes that want to rename it the second sees that it is done. Locks are
 * never waited for without limit, because a process that was stopped while it holds one must not
 * stop all others. A process that does not get the lock in time writes anyway, at worst into the
 * renamed file.
 */
#include "state/audit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/timestamp.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define OPEN_TRIES 8
#define RESERVE_BYTES 65536
#define LOCK_TRIES 20
#define LOCK_WAIT_NS 1000000

static int lost_error;                 /* errno of a line that could not be written */
static struct audit_caller worked_for; /* .actor.program NULL: the parent of this process */

static void set_caller(uint32_t uid, uint32_t pid, struct audit_caller *ret)
{
	struct audit_actor *actor = &ret->actor;
	char path[32];

	*actor = (struct audit_actor){ .uid = uid, .pid = pid, .program = "?" };
	(void)snprintf(path, sizeof(path), "/proc/%u/comm", actor->pid);
	if (actor->pid > 0 &&
	    file_read_line(AT_FDCWD, path, ret->program, sizeof(ret->program)) >= 0)
		actor->program = ret->program;
}

/* The parent process: a shell, an agent, a service. */
void audit_find_caller(struct audit_caller *ret)
{
	set_caller(getuid(), (uint32_t)getppid(), ret);
}

void audit_find_caller_of(uint32_t uid, uint32_t pid, struct audit_caller *ret)
{
	char path[32], line[512];
	unsigned parent = 0;
	const char *end;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	/* "PID (NAME) STATE PARENT": the name may contain any character */
	if (file_read_line(AT_FDCWD, path, line, sizeof(line)) >= 0 && (end = strrchr(line, ')')))
		(void)!sscanf(end, ") %*c %u", &parent);
	set_caller(uid, parent, ret);
}

void audit_work_for(const struct audit_caller *caller)
{
	worked_for = *caller;
	if (caller->actor.program == caller->program)
		worked_for.actor.program = worked_for.program;
}

const char *audit_format_end(int wait_status, char out[AUDIT_END_MAX_BYTES])
{
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
		return NULL;
	if (WIFEXITED(wait_status))
		(void)snprintf(out, AUDIT_END_MAX_BYTES, "exit status %d",
			       WEXITSTATUS(wait_status));
	else
		(void)snprintf(out, AUDIT_END_MAX_BYTES, "killed by signal %d",
			       WTERMSIG(wait_status));
	return out;
}

/* Tries for a short time: a holder needs microseconds, unless it is stopped. */
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

/*
 * Allocates space in advance, so that a full disk does not end the log at once; failure is ignored.
 */
static void reserve(int fd, uint64_t size, size_t len)
{
	if (size % RESERVE_BYTES < len)
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, 2 * RESERVE_BYTES);
}

/* Opens the file to append to, locked; renames it first if it is full. Returns -errno. */
static int open_file(const char *path, const char *old_path, size_t len)
{
	cleanup_fd int fd = -1;

	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat st;

		cleanup_closep(&fd);
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		(void)lock(fd, LOCK_SH); /* on failure we write anyway */
		if (!has_name(fd, path, &st))
			continue;
		if ((uint64_t)st.st_size + len <= AUDIT_MAX_BYTES) {
			reserve(fd, (uint64_t)st.st_size, len);
			break;
		}
		/* converting drops the shared lock first, so two processes do not deadlock */
		if (!lock(fd, LOCK_EX))
			break; /* let the file grow */
		if (has_name(fd, path, &st) && rename(path, old_path) < 0)
			break;
	}
	return take_fd(&fd);
}

static int append(const struct ak *ak, const struct buf *line)
{
	cleanup_free char *path = NULL;
	cleanup_free char *old_path = NULL;
	cleanup_fd int fd = -1;
	struct err e = { 0 };
	ssize_t n;

	if (statedir_path(ak, AUDIT_FILE, &path, &e) < 0 ||
	    statedir_path(ak, AUDIT_OLD_FILE, &old_path, &e) < 0)
		return -ENOENT;
	fd = open_file(path, old_path, line->len);
	if (fd == -ENOENT) {
		cleanup_freep(&path);
		path = NULL;
		if (statedir_make_path(ak, AUDIT_FILE, &path, &e) < 0)
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

static void identify_nothing(const struct ak *ak, const char *name, struct audit_identity *ret)
{
	(void)ak;
	(void)name;
	*ret = (struct audit_identity){ 0 };
}

static audit_identify_fn *identify = identify_nothing;

void audit_identify_by(audit_identify_fn *by)
{
	identify = by;
}

void audit_set_identity(struct audit_identity *ret, const char *id, const char *owner)
{
	(void)snprintf(ret->id, sizeof(ret->id), "%s", id ? id : "");
	(void)snprintf(ret->owner, sizeof(ret->owner), "%s", owner ? owner : "");
}

int audit_write(const struct ak *ak, const struct audit_event *event)
{
	const struct audit_actor *actor = event->actor;
	struct audit_caller caller;
	struct audit_identity who = { 0 };
	cleanup_buf struct buf line;
	int r;

	if (!actor && worked_for.actor.program) {
		actor = &worked_for.actor;
	} else if (!actor) {
		audit_find_caller(&caller);
		actor = &caller.actor;
	}
	if (event->who)
		who = *event->who;
	else
		identify(ak, event->sandbox, &who);
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
	r = append(ak, &line);
	if (r < 0)
		lost_error = -r;
	return r;
}

int audit_lost_error(void)
{
	return lost_error;
}
