/*
 * quarantine - moves files away that a program outside would obey; see quarantine.h.
 *
 * Hostile input: the moved files. They may be a tree of any shape, change meanwhile, and belong to
 * an id of the caller's range: then a process that is root of that range moves them (tree/owner).
 */
#include "workspace/quarantine.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "tree/owner.h"
#include "state/statedir.h"
#include "tree/treecopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

void quarantine_init(struct quarantine *q, const struct ak *ak)
{
	*q = (struct quarantine){ .ak = ak, .dir_fd = -1 };
}

void quarantine_done(struct quarantine *q)
{
	quarantine_settle(q);
	free(q->waiting);
	q->waiting = NULL;
	cleanup_closep(&q->dir_fd);
	free(q->path);
	q->path = NULL;
}

static int make_dir(struct quarantine *q, struct err *e)
{
	cleanup_free char *all = NULL;
	cleanup_free char *path = NULL;
	char stamp[32] = "";
	uint32_t number = 0;
	time_t now = time(NULL);
	struct tm utc;

	if (q->dir_fd >= 0)
		return 0;
	if (statedir_make_path(q->ak, QUARANTINE_DIR, &all, e) < 0)
		return -1;
	if (mkdir(all, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", all);
	if (gmtime_r(&now, &utc))
		(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	(void)getrandom(&number, sizeof(number), GRND_NONBLOCK); /* for uniqueness, not a secret */
	path = mem_format("%s/%s-%08" PRIx32, all, stamp, number);
	if (mkdir(path, 0700) < 0)
		return err_sys(e, errno, "create '%s'", path);
	q->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (q->dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	q->path = take_ptr(path);
	return 0;
}

static int rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	return syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

struct taking {
	int dir_fd, to_fd; /* to_fd -1: no space for a quarantine */
	const char *name;
	const char *aside;                  /* a name in the same directory that no program obeys */
	enum { TAKEN, ASIDE, REMOVED } how; /* set by the child */
};

/* ---- across file systems ---- */

static int copy_file(int from_dir_fd, const char *from, int to_dir_fd, const char *to)
{
	cleanup_fd int from_fd = openat(from_dir_fd, from,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_fd int to_fd = -1;
	struct stat st;

	if (from_fd < 0 || fstat(from_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	to_fd = openat(to_dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to_fd < 0)
		return -errno;
	return file_copy(from_fd, to_fd, QUARANTINE_COPY_MAX_BYTES);
}

static int copy_link(int from_dir_fd, const char *from, int to_dir_fd, const char *to)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir_fd, from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_dir_fd, to) < 0 ? -errno : 0;
}

static int copy_dir(int from_dir_fd, const char *from, int to_dir_fd, const char *to, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct treecopy_limits limits = treecopy_default_limits();
	cleanup_fd int from_fd = openat(from_dir_fd, from, flags);
	cleanup_fd int to_fd = -1;
	struct treecopy_result result;

	if (from_fd < 0 || mkdirat(to_dir_fd, to, 0700) < 0)
		return err_sys(e, errno, "copy '%s'", from);
	to_fd = openat(to_dir_fd, to, flags);
	if (to_fd < 0)
		return err_sys(e, errno, "copy '%s'", from);
	limits.bytes = QUARANTINE_COPY_MAX_BYTES;
	limits.entries = QUARANTINE_COPY_ENTRIES_MAX;
	return treecopy_run(from_fd, to_fd, 0, &limits, &result, e);
}

static int copy_any(int from_dir_fd, const char *from, int to_dir_fd, const char *to, struct err *e)
{
	struct stat st;
	int r;

	if (fstatat(from_dir_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at '%s'", from);
	if (S_ISDIR(st.st_mode))
		return copy_dir(from_dir_fd, from, to_dir_fd, to, e);
	r = S_ISLNK(st.st_mode) ? copy_link(from_dir_fd, from, to_dir_fd, to)
				: copy_file(from_dir_fd, from, to_dir_fd, to);
	return r < 0 ? err_sys(e, -r, "copy '%s'", from) : 0;
}

/* ---- moving ---- */

/*
 * Moves it to the quarantine; if that is full or on another file system, to another name in the
 * same directory, from where quarantine_settle() moves it later; if that fails too, removes it.
 */
static int take(void *context, struct err *e)
{
	struct taking *t = context;
	int r = t->to_fd < 0 ? -ENOSPC : rename_new(t->dir_fd, t->name, t->to_fd, t->name);

	t->how = TAKEN;
	if (r == -EXDEV || r == -ENOSPC || r == -EDQUOT) {
		t->how = ASIDE;
		r = rename_new(t->dir_fd, t->name, t->dir_fd, t->aside);
	}
	if (r == -ENOSPC || r == -EDQUOT) {
		t->how = REMOVED;
		return sweep_tree(t->dir_fd, t->name, e);
	}
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "'%s' is not there any more", t->name);
	return r < 0 ? err_sys(e, -r, "move '%s' away", t->name) : 0;
}

/* Creates a directory for one entry; -1 if there is no space. */
static int make_place(struct quarantine *q, struct err *e)
{
	char number[16];

	if (make_dir(q, e) < 0)
		return -1;
	(void)snprintf(number, sizeof(number), "%u", q->count);
	if (mkdirat(q->dir_fd, number, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s/%s'", q->path, number);
	return openat(q->dir_fd, number, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Records that it has another name until no process of the sandbox runs. */
static void add_waiting(struct quarantine *q, const struct taking *t)
{
	int fd = fcntl(t->dir_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return; /* it stays under that name, which is harmless */
	q->waiting = mem_grow(q->waiting, q->waiting_count + 1, sizeof(*q->waiting));
	q->waiting[q->waiting_count++] = (struct quarantine_waiting){ .dir_fd = fd,
								      .aside = mem_dup(t->aside),
								      .name = mem_dup(t->name),
								      .number = q->count };
}

int quarantine_take(struct quarantine *q, int dir_fd, const char *name, char **ret_path,
		    struct err *e)
{
	struct taking t = { .dir_fd = dir_fd, .name = name };
	cleanup_free char *aside = NULL;
	cleanup_fd int to_fd = -1;
	struct err ignored = { 0 };
	uint32_t random = 0;

	q->count++;
	to_fd = make_place(q, &ignored);
	(void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
	t.aside = aside = mem_format("%.200s.quarantined-%08" PRIx32, name, random);
	t.to_fd = to_fd;
	if (take(&t, e) < 0 && ((e->sys != EACCES && e->sys != EPERM) ||
				owner_run(take, &t, &t.how, sizeof(t.how), e) < 0))
		return -1;
	if (t.how == ASIDE && q->waiting_count < QUARANTINE_WAITING_MAX)
		add_waiting(q, &t);
	*ret_path = t.how == REMOVED || !q->path
			    ? mem_format("nowhere, for lack of room: it %s",
					 t.how == REMOVED ? "was removed" : "has another name")
			    : mem_format("%s/%u/%s", q->path, q->count, name);
	return 0;
}

void quarantine_settle(struct quarantine *q)
{
	for (unsigned i = 0; i < q->waiting_count; i++) {
		struct quarantine_waiting *w = &q->waiting[i];
		cleanup_free char *place = mem_format("%u", w->number);
		cleanup_fd int to_fd = q->dir_fd < 0 ? -1
						     : openat(q->dir_fd, place,
							      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct err ignored;

		if (to_fd >= 0 && copy_any(w->dir_fd, w->aside, to_fd, w->name, &ignored) == 0)
			(void)!sweep_tree(w->dir_fd, w->aside, &ignored);
		cleanup_closep(&w->dir_fd);
		free(w->aside);
		free(w->name);
	}
	q->waiting_count = 0;
}

/* ---- old ones ---- */

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int quarantine_prune(const struct ak *ak, unsigned flags, unsigned *ret_count, struct err *e)
{
	cleanup_free char *path = NULL;
	CLEANUP(close_dir) DIR *dir = NULL;
	struct dirent *entry;

	*ret_count = 0;
	if (statedir_path(ak, QUARANTINE_DIR, &path, e) < 0)
		return -1;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : err_sys(e, errno, "list '%s'", path);
	while ((entry = readdir(dir))) {
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_mtim.tv_sec + (time_t)QUARANTINE_KEEP_S > time(NULL))
			continue;
		(*ret_count)++;
		if (!(flags & QUARANTINE_DRY) && owner_sweep(dirfd(dir), entry->d_name, e) < 0)
			return -1;
	}
	return 0;
}
