/*
 * runclean - what each start of a sandbox leaves in its upper directory; see runclean.h.
 *
 * Hostile input: the directory, which commands wrote. No link is followed in it.
 */
#include "build/runclean.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "host/mount.h"
#include "image/record.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- the layers below ---- */

struct lower {
	int fds[RECORD_LAYERS_MAX + 1];
	unsigned count;
};

static void lower_done(struct lower *l)
{
	for (unsigned i = 0; i < l->count; i++)
		cleanup_closep(&l->fds[i]);
}

static int open_lower(int layers_fd, const char *names, struct lower *ret, struct err *e)
{
	for (const char *at = names; *at; at += *at == ':') {
		size_t len = strcspn(at, ":");
		cleanup_free char *name = mem_dup_bytes(at, len);
		int fd;

		if (ret->count == COUNT_OF(ret->fds))
			return err_set(e, ERR_LIMIT, "the stage has too many layers");
		fd = openat(layers_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, errno, "open a layer");
		ret->fds[ret->count++] = fd;
		at += len;
	}
	return 0;
}

static bool is_opaque(int fd)
{
	char value;

	return fgetxattr(fd, "user.overlay.opaque", &value, sizeof(value)) > 0;
}

/* Does this layer hide what those below have of the path? */
static bool hides(int layer_fd, const char *path)
{
	cleanup_free char *part = mem_dup(path);

	for (char *at = part;;) {
		char *slash = strchr(at, '/');
		cleanup_fd int fd = -1;

		if (slash)
			*slash = '\0';
		fd = mount_open_plain(layer_fd, part, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return fd != -ENOENT; /* a file, a link or a whiteout */
		if (is_opaque(fd))
			return true;
		if (!slash)
			return false;
		*slash = '/';
		at = slash + 1;
	}
}

/* The entry as the layers show it; `path` has no slash in front. */
static bool find_lower(const struct lower *l, const char *path, struct stat *ret)
{
	for (unsigned i = 0; i < l->count; i++) {
		cleanup_fd int fd = mount_open_plain(l->fds[i], path, O_PATH | O_NOFOLLOW);

		if (fd >= 0 && fstat(fd, ret) == 0)
			return !S_ISCHR(ret->st_mode);
		if (hides(l->fds[i], path))
			return false;
	}
	return false;
}

/* ---- what a start leaves in the upper directory ---- */

static const char *const written[] = { "etc/hosts", "etc/hostname", "etc/resolv.conf",
				       "etc/machine-id", NULL };
/* children before parents */
static const char *const made[] = { "proc", "sys", "dev", "tmp", "var/tmp",
				    "var",  "run", "etc", NULL };

struct cleaning {
	int upper_fd;
	const struct lower *lower;
	const char *const *paths;
	unsigned flags;
};

static void remove_written(const struct cleaning *c)
{
	for (const char *const *path = written; *path; path++) {
		bool is_id = strcmp(*path, "etc/machine-id") == 0;
		const char *name = path_base_name(*path);
		cleanup_free char *dir = mem_dup_bytes(*path, (size_t)(name - *path));
		cleanup_fd int fd = mount_open_plain(c->upper_fd, dir, O_RDONLY | O_DIRECTORY);

		if (fd >= 0 && (!is_id || (c->flags & RUNCLEAN_MACHINE_ID)))
			(void)unlinkat(fd, name, 0); /* a directory is the image's own */
	}
}

/* Removes it if it is an empty thing that the layers lack, or only a copy of what they have. */
static void remove_empty(const struct cleaning *c, const char *path)
{
	const char *name = path_base_name(path);
	cleanup_free char *dir = mem_dup_bytes(path, (size_t)(name - path));
	cleanup_fd int dir_fd =
		mount_open_plain(c->upper_fd, dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY);
	cleanup_fd int fd = -1;
	struct stat st, below;
	bool is_below;

	if (dir_fd < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	is_below = find_lower(c->lower, path, &below);
	if (S_ISREG(st.st_mode) && st.st_size == 0 && !is_below)
		(void)unlinkat(dir_fd, name, 0);
	if (!S_ISDIR(st.st_mode))
		return;
	if (is_below) {
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || is_opaque(fd) || !S_ISDIR(below.st_mode) ||
		    below.st_mode != st.st_mode || below.st_uid != st.st_uid ||
		    below.st_gid != st.st_gid)
			return;
	}
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR); /* not if there is something in it */
}

/* A mount point and the parents that were made for it. */
static void remove_chain(const struct cleaning *c, const char *path)
{
	cleanup_free char *part = mem_dup(path + strspn(path, "/"));

	while (part[0]) {
		char *slash = strrchr(part, '/');

		remove_empty(c, part);
		if (!slash)
			return;
		*slash = '\0';
	}
}

static int clean(void *context, struct err *e)
{
	const struct cleaning *c = context;

	(void)e;
	remove_written(c);
	for (const char *const *path = c->paths; *path; path++)
		remove_chain(c, *path);
	for (const char *const *path = made; *path; path++)
		remove_empty(c, *path);
	return 0;
}

int runclean_upper(int layers_fd, const char *lower, const char *upper, const char *const *paths,
		   unsigned flags, struct err *e)
{
	CLEANUP(lower_done) struct lower layers = { .count = 0 };
	cleanup_fd int upper_fd = -1;
	struct cleaning c = { .lower = &layers, .paths = paths, .flags = flags };

	if (open_lower(layers_fd, lower, &layers, e) < 0)
		return -1;
	upper_fd = openat(layers_fd, upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (upper_fd < 0)
		return err_sys(e, errno, "open what was changed");
	c.upper_fd = upper_fd;
	return owner_run(clean, &c, NULL, 0, e);
}
