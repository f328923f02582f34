/* gitrepos - finds the git repositories in a directory; see gitrepos.h. */
#include "workspace/gitrepos.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LINKS_OF_A_LEAF 2 /* its name and its own "." */
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

struct walk {
	int top_fd;
	gitrepos_fn *fn;
	void *context;
	const char *skipped; /* path of a directory to skip; NULL: none */
	struct gitrepos_result result;
	unsigned dir_count;
	bool has_link_counts; /* on the top's file system st_nlink counts subdirectories */
	dev_t device;         /* that file system */
	char path[PATH_MAX];  /* of the current directory */
	size_t path_len;
};

/* Which of git's names a directory contains. */
struct signs {
	bool has_head, has_objects, has_refs, has_commondir, has_git;
	unsigned char git_type;
};

static unsigned char type_of(int dir_fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISLNK(st.st_mode) ? DT_LNK : DT_REG;
}

static void look_at(struct signs *s, int dir_fd, const struct dirent *entry)
{
	const char *name = entry->d_name;

	s->has_head |= strcmp(name, "HEAD") == 0;
	s->has_objects |= strcmp(name, "objects") == 0;
	s->has_refs |= strcmp(name, "refs") == 0;
	s->has_commondir |= strcmp(name, "commondir") == 0;
	if (strcmp(name, ".git") == 0) {
		s->has_git = true;
		s->git_type = type_of(dir_fd, entry);
	}
}

static bool exists(int dir_fd, const char *name, const char *below)
{
	char path[NAME_MAX + 16];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", name, below);
	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/*
 * Most directories have no subdirectories. Such a leaf is a working tree if it has ".git" (a file
 * or a link), and a repository if it has "commondir"; checking this takes three calls, opening and
 * listing it takes eight.
 */
static bool is_plain_leaf(const struct walk *w, int dir_fd, const char *name)
{
	struct stat st;

	return w->has_link_counts && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_dev == w->device && st.st_nlink == LINKS_OF_A_LEAF &&
	       !exists(dir_fd, name, ".git") && !exists(dir_fd, name, "commondir");
}

/* Collects the NUL-terminated names of directories, and notes the other entries in `signs`. */
static int read_names(struct walk *w, DIR *dir, struct signs *signs, struct buf *dirs,
		      struct err *e)
{
	struct dirent *entry;

	while ((errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		look_at(signs, dirfd(dir), entry);
		if (type_of(dirfd(dir), entry) == DT_DIR &&
		    (strcmp(entry->d_name, ".git") == 0 ||
		     !is_plain_leaf(w, dirfd(dir), entry->d_name)))
			buf_add(dirs, entry->d_name, strlen(entry->d_name) + 1);
	}
	w->result.is_cut |= dirs->is_cut;
	return errno != 0 ? err_sys(e, errno, "list '%s' to find git repositories", w->path) : 0;
}

static int tell(const struct walk *w, enum gitrepos_kind kind, int dir_fd, unsigned char type,
		struct err *e)
{
	const struct gitrepos_entry entry = {
		.kind = kind, .path = w->path, .dir_fd = dir_fd, .type = type
	};

	return w->fn(w->context, &entry, e);
}

static int walk_dir(struct walk *w, const char *name, struct err *e);

static int walk_below(struct walk *w, const char *name, struct err *e)
{
	size_t outer_len = w->path_len, len = outer_len, name_len = strlen(name);
	int r = 0;

	if (len + name_len + 2 > sizeof(w->path))
		return 0;
	if (len > 0)
		w->path[len++] = '/';
	memcpy(w->path + len, name, name_len + 1);
	w->path_len = len + name_len;
	if (!w->skipped || strcmp(w->path, w->skipped) != 0)
		r = walk_dir(w, name, e);
	w->path_len = outer_len;
	w->path[outer_len] = '\0';
	return r;
}

/* Reports what the open directory is, and appends the names of its subdirectories to `dirs`. */
static int look_into(struct walk *w, DIR *dir, const char *name, struct buf *dirs, struct err *e)
{
	struct signs s = { 0 };

	if (read_names(w, dir, &s, dirs, e) < 0)
		return -1;
	if (s.has_git && tell(w, GITREPOS_TREE, dirfd(dir), s.git_type, e) < 0)
		return -1;
	/* a ".git" that is not a repository yet may become one */
	if ((s.has_head && (s.has_commondir || (s.has_objects && s.has_refs))) ||
	    strcmp(name, ".git") == 0)
		return tell(w, GITREPOS_REPOSITORY, dirfd(dir), 0, e);
	return 0;
}

/* Opens each directory by its path from the top, so any depth needs just one descriptor. */
static int walk_dir(struct walk *w, const char *name, struct err *e)
{
	cleanup_buf struct buf dirs;
	int fd, r;
	DIR *dir;

	buf_init(&dirs, GITREPOS_NAMES_MAX_BYTES);
	w->result.is_cut |= w->dir_count == GITREPOS_DIRS_MAX;
	if (w->result.is_cut)
		return 0;
	w->dir_count++;
	fd = mount_open_plain(w->top_fd, w->path_len ? w->path : ".", OPEN_FLAGS);
	if (fd < 0) {
		w->result.was_denied |= fd == -EACCES || fd == -EPERM;
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM
			       ? err_sys(e, -fd, "look for git repositories")
			       : 0;
	}
	dir = fdopendir(fd);
	if (!dir) {
		r = err_sys(e, errno, "look for git repositories");
		(void)close(fd);
		return r;
	}
	r = look_into(w, dir, name, &dirs, e);
	(void)closedir(dir);
	for (size_t at = 0; r == 0 && at < dirs.len; at += strlen(dirs.bytes + at) + 1)
		r = walk_below(w, dirs.bytes + at, e);
	return r;
}

/* On other file systems st_nlink is 1 or 2 whatever a directory contains. */
static void find_link_counts(struct walk *w)
{
	static const long kinds[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC };
	struct statfs fs;
	struct stat st;

	if (fstatfs(w->top_fd, &fs) < 0 || fstat(w->top_fd, &st) < 0)
		return;
	w->device = st.st_dev;
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		w->has_link_counts |= (long)fs.f_type == kinds[i];
}

int gitrepos_find(int dir_fd, const char *skipped, gitrepos_fn *fn, void *context,
		  struct gitrepos_result *ret, struct err *e)
{
	struct walk w = { .top_fd = dir_fd, .fn = fn, .context = context, .skipped = skipped };

	find_link_counts(&w);
	if (walk_dir(&w, "", e) < 0)
		return -1;
	*ret = w.result;
	return 0;
}
