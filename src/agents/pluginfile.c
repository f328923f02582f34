/*
 * pluginfile - changes files of a project or a home directory together; see pluginfile.h.
 *
 * Directories are opened component by component, each below the one before, and created if missing.
 * In a project the kernel refuses every link (openat2), and the new file is renamed within a
 * directory that we hold open, so a concurrent rename cannot redirect us.
 *
 * A crash leaves at most a temporary file beside the old one.
 */
#include "agents/pluginfile.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>

#define DIR_MODE 0755
#define PERMISSIONS 0777 /* bits of the mode that are preserved */

enum place {
	PLACE_OF_NAME,   /* directory of the path */
	PLACE_OF_TARGET, /* directory of the link's target */
};

static int open_at(const struct pluginfile *f, int dir_fd, const char *path, unsigned flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = f->project_fd >= 0 ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS : 0,
	};

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

static int top_fd(const struct pluginfile *f)
{
	return f->project_fd >= 0 ? f->project_fd : AT_FDCWD;
}

/* ---- reading ---- */

/* Names the link in the path that the kernel refused to follow. */
static int refuse_link(const struct pluginfile *f, struct err *e)
{
	cleanup_free char *part = mem_dup(f->path);
	struct stat st;

	for (char *p = part; *p; p++) {
		char kept = p[1];

		if (kept != '/' && kept != '\0')
			continue;
		p[1] = '\0';
		if (fstatat(f->project_fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode))
			break;
		p[1] = kept;
	}
	return err_set(e, ERR_DENIED,
		       "'%s' is a symbolic link, and links in a project are not followed", part);
}

static int refuse(const struct pluginfile *f, int error, struct err *e)
{
	if (error == ELOOP && f->project_fd >= 0)
		return refuse_link(f, e);
	if (error == ENOTDIR)
		return err_set(e, ERR_INVALID, "'%s': a file is where a directory should be",
			       f->path);
	return err_sys(e, error, "open '%s'", f->path);
}

/* 1: a regular file that may be opened, 0: nothing is there. */
static int look(struct pluginfile *f, struct err *e)
{
	cleanup_fd int fd = open_at(f, top_fd(f), f->path, O_PATH);
	int error = fd < 0 ? errno : 0;

	if (f->project_fd < 0 && fstatat(AT_FDCWD, f->path, &f->stat, AT_SYMLINK_NOFOLLOW) == 0)
		f->is_link = S_ISLNK(f->stat.st_mode);
	if (error == ENOENT && f->is_link)
		return err_set(e, ERR_NOT_FOUND, "'%s' is a link to something that is not there",
			       f->path);
	if (error == ENOENT)
		return 0;
	if (error)
		return refuse(f, error, e);
	if (fstat(fd, &f->stat) < 0)
		return err_sys(e, errno, "look at '%s'", f->path);
	if (!S_ISREG(f->stat.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a regular file", f->path);
	if (f->stat.st_size > (off_t)PLUGINFILE_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "'%s' is larger than %u MiB", f->path,
			       PLUGINFILE_MAX_BYTES >> 20);
	return 1;
}

static int read_text(struct pluginfile *f, struct err *e)
{
	/* it may have been replaced: neither wait for a pipe nor acquire a terminal */
	cleanup_fd int fd = open_at(f, top_fd(f), f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return refuse(f, errno, e);
	if (fstat(fd, &f->stat) < 0)
		return err_sys(e, errno, "look at '%s'", f->path);
	if (!S_ISREG(f->stat.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a regular file", f->path);
	r = file_read_fd(fd, PLUGINFILE_MAX_BYTES, &f->text, &f->len);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", f->path);
	return 0;
}

int pluginfile_read(int project_fd, const char *path, size_t root_len, struct pluginfile *ret,
		    struct err *e)
{
	CLEANUP(pluginfile_done)
	struct pluginfile f = { .project_fd = project_fd, .root_len = root_len, .dir_fd = -1 };
	int r;

	f.path = mem_dup(path);
	r = look(&f, e);
	if (r < 0)
		return -1;
	f.is_there = r == 1;
	if (f.is_there && read_text(&f, e) < 0)
		return -1;
	if (!f.is_there)
		f.text = mem_dup("");
	*ret = f;
	f = (struct pluginfile){ .dir_fd = -1 };
	return 0;
}

void pluginfile_done(struct pluginfile *f)
{
	if (f->name) /* then dir_fd is open */
		(void)close(f->dir_fd);
	free(f->path);
	free(f->text);
	free(f->name);
	*f = (struct pluginfile){ .project_fd = -1, .dir_fd = -1 };
}

/* ---- directories ---- */

/* Replaces *dir_fd by its subdirectory `name`, creating that if missing. */
static int enter(struct pluginfile *f, int *dir_fd, const char *name, struct err *e)
{
	int fd = open_at(f, *dir_fd, name, O_PATH | O_DIRECTORY);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(*dir_fd, name, DIR_MODE) < 0)
			return err_sys(e, errno, "make directory '%s' for '%s'", name, f->path);
		f->made++;
		fd = open_at(f, *dir_fd, name, O_PATH | O_DIRECTORY);
	}
	if (fd < 0)
		return refuse(f, errno, e);
	if (*dir_fd >= 0)
		(void)close(*dir_fd);
	*dir_fd = fd;
	return 0;
}

/* Opens the directory of the file and sets its name. */
static int open_place(struct pluginfile *f, enum place place, struct err *e)
{
	cleanup_free char *real = NULL;
	cleanup_free char *part = NULL;
	cleanup_fd int dir_fd = -1;
	char *rest, *slash;

	if (f->is_link && place == PLACE_OF_TARGET) {
		real = realpath(f->path, NULL);
		if (!real)
			return err_sys(e, errno, "follow '%s'", f->path);
	}
	part = mem_dup(real ? real : f->path);
	dir_fd = f->project_fd >= 0 ? open_at(f, f->project_fd, ".", O_PATH | O_DIRECTORY)
				    : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return refuse(f, errno, e);
	rest = part + strspn(part, "/");
	while ((slash = strchr(rest, '/'))) {
		*slash = '\0';
		if (enter(f, &dir_fd, rest, e) < 0)
			return -1;
		rest = slash + 1 + strspn(slash + 1, "/");
	}
	f->name = mem_dup(rest);
	f->dir_fd = take_fd(&dir_fd);
	return 0;
}

/* Removes empty directories from the file upward, at most `count` and none above `root_len`. */
static void remove_dirs(const struct pluginfile *f, unsigned count, size_t root_len)
{
	cleanup_free char *part = mem_dup(f->path);
	char *slash;

	while (count > 0 && (slash = strrchr(part, '/')) && slash > part + root_len) {
		*slash = '\0';
		/* fails if it was not created yet, or if it is not empty */
		if (unlinkat(top_fd(f), part, AT_REMOVEDIR) == 0)
			count--;
	}
}

/* ---- changing ---- */

static int keep_owner_and_mode(const struct pluginfile *f, int fd, struct err *e)
{
	struct stat own;

	if (fstat(fd, &own) < 0)
		return err_sys(e, errno, "look at a new file for '%s'", f->path);
	if ((own.st_uid != f->stat.st_uid || own.st_gid != f->stat.st_gid) &&
	    fchown(fd, f->stat.st_uid, f->stat.st_gid) < 0)
		return err_sys(e, errno, "keep the owner of '%s'", f->path);
	if (fchmod(fd, f->stat.st_mode & PERMISSIONS) < 0)
		return err_sys(e, errno, "keep the mode of '%s'", f->path);
	return 0;
}

static int write_temp(struct pluginfile *f, const char *text, size_t len, mode_t mode,
		      struct err *e)
{
	char temp[PLUGINFILE_TEMP_MAX_BYTES];
	cleanup_fd int fd = -1;
	uint64_t number = 0;
	int r;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_sys(e, errno, "choose a name for a new '%s'", f->path);
	(void)snprintf(temp, sizeof(temp), ".agentkernel-%016llx.tmp", (unsigned long long)number);
	fd = openat(f->dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    f->is_there ? S_IRUSR | S_IWUSR : mode);
	if (fd < 0)
		return err_sys(e, errno, "write '%s'", f->path);
	memcpy(f->temp, temp, sizeof(temp));
	r = file_write_all(fd, text, len);
	if (r < 0)
		return err_sys(e, -r, "write '%s'", f->path);
	if (f->is_there && keep_owner_and_mode(f, fd, e) < 0)
		return -1;
	if (fsync(fd) < 0)
		return err_sys(e, errno, "write '%s'", f->path);
	return 0;
}

int pluginfile_stage(struct pluginfile *f, const char *text, size_t len, mode_t mode, struct err *e)
{
	if (open_place(f, PLACE_OF_TARGET, e) < 0)
		return -1;
	return write_temp(f, text, len, mode, e);
}

int pluginfile_stage_removal(struct pluginfile *f, struct err *e)
{
	f->is_removal = true;
	return open_place(f, PLACE_OF_NAME, e);
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int pluginfile_check(const struct pluginfile *f, struct err *e)
{
	int follow = f->project_fd >= 0 ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat now;
	bool is_there = fstatat(f->dir_fd, f->name, &now, follow) == 0;

	if (is_there != f->is_there || (is_there && !is_unchanged(&now, &f->stat)))
		return err_set(e, ERR_BUSY,
			       "'%s' was changed by somebody else meanwhile: try again", f->path);
	return 0;
}

/* Makes the rename durable; without it, a crash may bring back the old file. */
static void sync_dir(const struct pluginfile *f)
{
	cleanup_fd int fd = openat(f->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)fsync(fd);
}

int pluginfile_commit(struct pluginfile *f, struct err *e)
{
	if (f->is_removal) {
		if (unlinkat(f->dir_fd, f->name, 0) < 0)
			return err_sys(e, errno, "remove '%s'", f->path);
		remove_dirs(f, UINT_MAX, f->root_len);
		return 0;
	}
	if (renameat(f->dir_fd, f->temp, f->dir_fd, f->name) < 0)
		return err_sys(e, errno, "write '%s'", f->path);
	f->temp[0] = '\0';
	f->made = 0;
	sync_dir(f);
	return 0;
}

void pluginfile_undo(struct pluginfile *f)
{
	if (f->temp[0])
		(void)unlinkat(f->dir_fd, f->temp, 0);
	f->temp[0] = '\0';
	remove_dirs(f, f->made, 0);
	f->made = 0;
}
