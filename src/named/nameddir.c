/*
 * nameddir - the directory of all named sandboxes; see nameddir.h.
 *
 * Theory of operation. A new sandbox is made and locked below .making, then renamed to its name,
 * which fails if that is taken. Removal renames it into .trash, where it is deleted at leisure: a
 * reader never meets half a sandbox. What a crash leaves in these two is swept, unless locked.
 */
#include "named/nameddir.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/nameddisk.h"
#include "named/namedfile.h"
#include "state/statedir.h"
#include "tree/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAKING_DIR ".making"
#define TRASH_DIR ".trash"
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* Opens without creating, which would fail on a full disk. *ret_fd is -1 if it does not exist. */
static int find_subdir(int all_fd, const char *name, int *ret_fd, struct err *e)
{
	int fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open '%s'", name);
	*ret_fd = fd;
	return 0;
}

int nameddir_find(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_path(ak, NAMED_DIR, &path, e) < 0)
		return -1;
	return find_subdir(AT_FDCWD, path, ret_fd, e);
}

static int open_all(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;
	int r;

	if (statedir_path(ak, NAMED_DIR, &path, e) < 0 ||
	    find_subdir(AT_FDCWD, path, ret_fd, e) < 0)
		return -1;
	if (*ret_fd >= 0)
		return 0;
	r = file_make_dirs(path, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", path);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s'", path) : 0;
}

static int open_subdir(int all_fd, const char *name, int *ret_fd, struct err *e)
{
	if (find_subdir(all_fd, name, ret_fd, e) < 0)
		return -1;
	if (*ret_fd >= 0)
		return 0;
	if (mkdirat(all_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", name);
	*ret_fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s'", name) : 0;
}

int nameddir_open_trash(const struct named *n, int *ret_fd, struct err *e)
{
	cleanup_fd int all_fd =
		openat(n->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (all_fd < 0)
		return err_sys(e, errno, "open the directory of sandboxes");
	return open_subdir(all_fd, TRASH_DIR, ret_fd, e);
}

static int make_files(struct named *n, const struct policy *p, struct err *e)
{
	char disk[NAMEDDISK_NAME_MAX_BYTES];

	nameddisk_format(n->disk_number, disk);
	if (named_lock_new(n, e) < 0 || named_save(n, e) < 0 || named_save_policy(n, p, e) < 0)
		return -1;
	if (mkdirat(n->dir_fd, disk, 0700) < 0 || mkdirat(n->dir_fd, "log", 0700) < 0)
		return err_sys(e, errno, "create the directories of sandbox '%s'", n->name);
	return 0;
}

static int appear(const struct ak *ak, int making_fd, int all_fd, const struct named *n,
		  struct err *e)
{
	if (syscall(SYS_renameat2, making_fd, n->id, all_fd, n->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST && named_owner(ak)) /* a key's caller must not learn whose it is */
		return err_set(e, ERR_EXISTS, "the name '%s' is taken", n->name);
	if (errno == EEXIST)
		return err_set(e, ERR_EXISTS,
			       "there is a sandbox '%s' already ('agentkernel remove %s' removes "
			       "it)",
			       n->name, n->name);
	return err_sys(e, errno, "name sandbox '%s'", n->name);
}

int nameddir_create(const struct ak *ak, struct named *n, const struct policy *p, struct err *e)
{
	cleanup_fd int all_fd = -1, making_fd = -1;
	struct err ignored;

	if (named_check_name(n->name, e) < 0 || open_all(ak, &all_fd, e) < 0 ||
	    open_subdir(all_fd, MAKING_DIR, &making_fd, e) < 0)
		return -1;
	/* nameddir_sweep_trash() takes it exclusively: no removal between mkdir and lock */
	if (flock(making_fd, LOCK_SH) < 0)
		return err_sys(e, errno, "lock '%s'", MAKING_DIR);
	if (!n->id[0])
		named_random_id(n->id);
	n->created_s = (uint64_t)time(NULL);
	if (mkdirat(making_fd, n->id, 0700) < 0)
		return err_sys(e, errno, "create sandbox '%s'", n->name);
	n->dir_fd = openat(making_fd, n->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (n->dir_fd < 0) {
		(void)err_sys(e, errno, "open sandbox '%s'", n->name);
	} else if (make_files(n, p, e) == 0 && appear(ak, making_fd, all_fd, n, e) == 0) {
		return 0;
	}
	(void)!owner_sweep(making_fd, n->id, &ignored);
	return -1;
}

int nameddir_trash(const struct ak *ak, const struct named *n, struct err *e)
{
	cleanup_fd int all_fd = -1, trash_fd = -1;

	if (nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	if (open_subdir(all_fd, TRASH_DIR, &trash_fd, e) < 0) {
		if (namedfile_is_full(
			    e->sys)) /* no space even for a directory entry: remove it in place */
			return owner_sweep(all_fd, n->name, e);
		return -1;
	}
	if (renameat(all_fd, n->name, trash_fd, n->id) == 0 || errno == ENOENT)
		return owner_sweep(trash_fd, n->id, e);
	if (namedfile_is_full(errno))
		return owner_sweep(all_fd, n->name, e);
	return err_sys(e, errno, "remove sandbox '%s'", n->name);
}

/* A process that works on a sandbox holds its lock. */
static bool is_worked_on(int dir_fd, const char *name)
{
	struct named n;
	bool is_locked;

	named_init(&n);
	n.dir_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	is_locked = n.dir_fd >= 0 ? named_is_locked(&n) : !file_is_absence(-errno);
	named_done(&n);
	return is_locked;
}

static int sweep_all(int all_fd, const char *name, unsigned *count, struct err *e)
{
	cleanup_fd int dir_fd = -1;
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (find_subdir(all_fd, name, &dir_fd, e) < 0)
		return -1;
	if (dir_fd < 0)
		return 0;
	dir = flock(dir_fd, LOCK_EX) < 0 ? NULL : fdopendir(dir_fd);
	if (!dir)
		return err_sys(e, errno, "list '%s'", name);
	dir_fd = -1;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || is_worked_on(dirfd(dir), entry->d_name))
			continue;
		r = owner_sweep(dirfd(dir), entry->d_name, e);
		*count += r == 0;
	}
	(void)closedir(dir);
	return r;
}

int nameddir_sweep_trash(const struct ak *ak, unsigned *ret_count, struct err *e)
{
	cleanup_fd int all_fd = -1;
	unsigned count = 0;

	*ret_count = 0;
	if (nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	if (sweep_all(all_fd, MAKING_DIR, &count, e) < 0 ||
	    sweep_all(all_fd, TRASH_DIR, &count, e) < 0)
		return -1;
	*ret_count = count;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int nameddir_list(const struct ak *ak, char ***ret, struct err *e)
{
	cleanup_fd int all_fd = -1;
	struct dirent *entry;
	char **list = NULL;
	size_t count = 0;
	DIR *dir;
	int sys;

	*ret = NULL;
	if (nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	dir = fdopendir(all_fd);
	if (!dir)
		return err_sys(e, errno, "list the sandboxes");
	all_fd = -1;
	while ((errno = 0, entry = readdir(dir))) {
		struct err ignored;

		if (named_check_name(entry->d_name, &ignored) < 0)
			continue;
		list = mem_grow(list, count + 2, sizeof(*list));
		list[count++] = mem_dup(entry->d_name);
		list[count] = NULL;
	}
	sys = errno;
	(void)closedir(dir);
	if (sys != 0) { /* fail: garbage collection would remove what a partial list omits */
		keyrows_list_free(&list);
		return err_sys(e, sys, "list the sandboxes");
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), by_text);
	*ret = list;
	return 0;
}
