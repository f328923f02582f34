/*
 * workspace - what needs care in a directory that a sandbox may write to; see workspace.h.
 *
 * Theory of operation. The list of guards is made here, outside, before anything runs; the mounts
 * are made by sandbox/rootfs, in the child. A guard is a name below the workspace. What is above a
 * protected name is pinned, since a directory that can be moved aside can be replaced by another.
 *
 * Standing in. It is made, or another sandbox's is shared, then a shared lock; at the end whoever
 * gets the lock alone removes it. One that was removed between the two is made again.
 *
 * Hostile: every name below, and other sandboxes that change them at this moment. A link is
 * followed only to keep a name free, and only to what lies in the workspace; the child looks up
 * every name again, in the mount itself.
 */
#include "engine/workspace.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "engine/gitlinks.h"
#include "engine/hostpath.h"
#include "policy/clone.h"
#include "policy/credential.h"
#include "sandbox/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
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

int workspace_open_dir(const char *path, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (hostpath_open(path, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID,
			       "'%s' is not a directory (--mount shows a single file)", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- the list ---- */

static bool has_guard(const struct workspace *w, const char *target, const char *name)
{
	for (unsigned i = 0; i < w->guard_count; i++)
		if (strcmp(w->guards[i].target, target) == 0 &&
		    strcmp(w->guards[i].name, name) == 0)
			return true;
	return false;
}

/* Takes `name`. */
static int add_guard(struct workspace *w, enum rootfs_care care, const char *target, char *name,
		     struct err *e)
{
	if (w->guard_count == WORKSPACE_GUARDS_MAX) {
		free(name);
		return err_set(e, ERR_LIMIT, "'%s' has more than %u names to protect", w->path,
			       WORKSPACE_GUARDS_MAX);
	}
	w->guards = mem_grow(w->guards, w->guard_count + 1, sizeof(*w->guards));
	w->guards[w->guard_count++] =
		(struct rootfs_guard){ .care = care, .target = target, .name = name };
	return 0;
}

/* What is above `name`, highest first. */
static int pin_parents(struct workspace *w, const char *target, const char *name, struct err *e)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *parent = mem_dup_bytes(name, (size_t)(slash - name));

		if (has_guard(w, target, parent))
			free(parent);
		else if (add_guard(w, ROOTFS_PINNED, target, parent, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- names that are kept free ---- */

/*
 * No one else makes a file or an empty directory like this, which not even its owner may write to.
 * A group that comes from the directory above is no difference.
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

static void standin_done(struct workspace_standin *s)
{
	/* only the last one who needs it gets the lock */
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

/* Could somebody inside do what we could not? The owner can give himself the right. */
static bool is_out_of_reach(int parent_fd, int error)
{
	struct stat st;

	if (error == -EROFS || error == -EPERM)
		return true;
	/* only where nobody but the owner may write, and the owner is root: no sandbox has its ids
	 */
	return error == -EACCES && fstat(parent_fd, &st) == 0 && st.st_uid == 0 && geteuid() != 0;
}

/* Whoever has it alone is about to remove it; a sandbox that holds on to it keeps nobody waiting.
 */
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

/* 1: it stands in; 0: somebody's own file is there, or nobody inside can make one; -errno. */
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

static bool is_below(int base_fd, int fd)
{
	char links[2][32], paths[2][PATH_MAX];
	const int fds[] = { base_fd, fd };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		ssize_t n;

		(void)snprintf(links[i], sizeof(links[i]), "/proc/self/fd/%d", fds[i]);
		n = readlink(links[i], paths[i], sizeof(paths[i]) - 1);
		if (n < 0)
			return false;
		paths[i][n] = '\0';
	}
	return path_is_within(paths[1], paths[0]);
}

/* The directory that base_fd/name would lie in, or -errno. A link that leads elsewhere: -ELOOP. */
static int open_parent(int base_fd, const char *name)
{
	const char *slash = strrchr(name, '/');
	cleanup_free char *parent = slash ? mem_dup_bytes(name, (size_t)(slash - name)) : NULL;
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	cleanup_fd int linked_fd = -1;
	int fd = mount_open_plain(base_fd, parent ? parent : ".", flags);

	if (fd == -ELOOP) {
		linked_fd = openat(base_fd, parent ? parent : ".", flags);
		if (linked_fd < 0)
			return -errno;
		fd = is_below(base_fd, linked_fd) ? take_fd(&linked_fd) : -ELOOP;
	}
	return fd;
}

/* By what it is, not by its mode: a sandbox can give that to any directory of the workspace. */
static bool is_ours(const struct workspace *w, int fd)
{
	struct stat st, own;

	if (fstat(fd, &st) < 0)
		return false;
	for (unsigned i = 0; i < w->standin_count; i++)
		if (fstat(w->standins[i].fd, &own) == 0 && own.st_dev == st.st_dev &&
		    own.st_ino == st.st_ino)
			return true;
	return false;
}

/* 1: it stands in, and nothing inside may be written; 0: it is there, or cannot be; -1 failed. */
static int keep_free(struct workspace *w, int base_fd, const char *name, const char *text,
		     struct err *e)
{
	cleanup_fd int parent_fd = open_parent(base_fd, name);
	const char *last = path_base_name(name);
	int fd = -1, r;

	if (parent_fd < 0 && !file_is_absence(parent_fd))
		return err_sys(e, -parent_fd, "keep the name '%s' free in '%s'", name, w->path);
	if (parent_fd < 0 || is_ours(w, parent_fd)) /* what is above is kept free itself */
		return 0;
	r = stand_in(parent_fd, last, text, &fd);
	if (r < 0)
		return err_sys(e, -r, "keep the name '%s' free in '%s'", name, w->path);
	if (r == 0)
		return 0;
	w->standins = mem_grow(w->standins, w->standin_count + 1, sizeof(*w->standins));
	w->standins[w->standin_count++] = (struct workspace_standin){
		.parent_fd = take_fd(&parent_fd), .fd = fd, .name = mem_dup(last), .text = text
	};
	return 1;
}

/* ---- what is protected ---- */

static bool is_listed(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

/* One row of the tables, for the directory `below` (relative, "" for the workspace itself). */
static int protect_one(struct workspace *w, const struct policy *p, int base_fd, const char *target,
		       const char *below, const struct credential_protected *row, struct err *e)
{
	cleanup_free char *name = mem_format("%s%s%s", below, below[0] ? "/" : "", row->path);
	int is_free;

	if (is_listed(p->unprotect, row->path) || is_listed(p->unprotect, name))
		return 0;
	is_free = row->is_kept_free ? keep_free(w, base_fd, name, row->text, e) : 0;
	if (is_free < 0)
		return -1;
	return add_guard(w, row->is_pinned_only && !is_free ? ROOTFS_PINNED : ROOTFS_PROTECTED,
			 target, take_ptr(name), e);
}

static int protect_dir(struct workspace *w, const struct policy *p, int base_fd, const char *below,
		       struct err *e)
{
	if (below[0]) {
		cleanup_free char *inside = mem_format("%s/.", below);

		if (pin_parents(w, w->path, inside, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < credential_protected_count; i++)
		if (protect_one(w, p, base_fd, w->path, below, &credential_protected[i], e) < 0)
			return -1;
	return 0;
}

/* What a linked worktree's own entry says about where things are. */
static int protect_admin(struct workspace *w, const struct policy *p, int base_fd,
			 const char *target, const char *git, char *const *admin, struct err *e)
{
	static const struct credential_protected files[] = {
		{ "commondir" },
		{ "gitdir" },
		{ "config.worktree", .is_kept_free = true, .text = "" },
	};

	for (; admin && *admin; admin++) {
		cleanup_free char *below = mem_format("%s%s", git, *admin);
		cleanup_free char *inside = mem_format("%s/.", below);

		if (pin_parents(w, target, inside, e) < 0)
			return -1;
		for (size_t i = 0; i < COUNT_OF(files); i++)
			if (protect_one(w, p, base_fd, target, below, &files[i], e) < 0)
				return -1;
	}
	return 0;
}

static int protect_outside(struct workspace *w, const struct policy *p,
			   const struct gitlinks *links, struct err *e)
{
	for (size_t i = 0; i < credential_git_count; i++)
		if (protect_one(w, p, w->git_fd, w->git_dir, "", &credential_git[i], e) < 0)
			return -1;
	return protect_admin(w, p, w->git_fd, w->git_dir, "", links->admin, e);
}

/* The first part of it that is missing. */
static int keep_path_free(struct workspace *w, int base_fd, const char *name, struct err *e)
{
	for (const char *end = strchrnul(name, '/');; end = strchrnul(end + 1, '/')) {
		cleanup_free char *part = mem_dup_bytes(name, (size_t)(end - name));
		int r = keep_free(w, base_fd, part, NULL, e);

		if (r > 0)
			return add_guard(w, ROOTFS_PROTECTED, w->path, take_ptr(part), e);
		if (r < 0 || *end == '\0')
			return r;
	}
}

static int protect_asked(struct workspace *w, const struct policy *p, int base_fd, struct err *e)
{
	for (char *const *name = p->protect; name && *name; name++)
		if (keep_path_free(w, base_fd, *name, e) < 0 ||
		    pin_parents(w, w->path, *name, e) < 0 ||
		    add_guard(w, ROOTFS_PROTECTED, w->path, mem_dup(*name), e) < 0)
			return -1;
	return 0;
}

/* ---- masks ---- */

struct search {
	struct workspace *workspace;
	const char *target; /* where it is inside */
	unsigned looked_at, found;
};

static int search_dir(struct search *s, int dir_fd, const char *below, const char *pattern,
		      unsigned depth, struct err *e);

static int found(struct search *s, const char *below, const char *name, struct err *e)
{
	if (++s->found > WORKSPACE_MASKED_MAX)
		return err_set(e, ERR_LIMIT, "masks match more than %u names",
			       WORKSPACE_MASKED_MAX);
	return add_guard(s->workspace, ROOTFS_MASKED, s->target,
			 mem_format("%s%s%s", below, below[0] ? "/" : "", name), e);
}

static int descend(struct search *s, int dir_fd, const char *below, const char *name,
		   const char *pattern, unsigned depth, struct err *e)
{
	cleanup_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_free char *path = mem_format("%s%s%s", below, below[0] ? "/" : "", name);

	if (fd < 0)
		return file_is_absence(-errno) ? 0 : err_sys(e, errno, "look into '%s'", path);
	if (depth == WORKSPACE_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "'%s' lies deeper than %u directories (say where)",
			       path, WORKSPACE_DEPTH_MAX);
	return search_dir(s, fd, path, pattern, depth + 1, e);
}

/* `first` is the pattern's first part, `rest` what follows it or NULL. */
static int match_name(struct search *s, int dir_fd, const char *below, const char *name,
		      const char *pattern, const char *first, const char *rest, unsigned depth,
		      struct err *e)
{
	if (++s->looked_at > WORKSPACE_LOOKED_AT_MAX)
		return err_set(e, ERR_LIMIT,
			       "a mask with ** would look at more than %u names (say where)",
			       WORKSPACE_LOOKED_AT_MAX);
	if (strcmp(first, "**") == 0) {
		if (strcmp(name, ".git") == 0)
			return 0;
		/* at the end it is all that is there */
		return rest ? descend(s, dir_fd, below, name, pattern, depth, e)
			    : found(s, below, name, e);
	}
	if (fnmatch(first, name, FNM_PERIOD * (first[0] != '.')) != 0)
		return 0;
	if (!rest)
		return found(s, below, name, e);
	return descend(s, dir_fd, below, name, rest, depth, e);
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static int search_dir(struct search *s, int dir_fd, const char *below, const char *pattern,
		      unsigned depth, struct err *e)
{
	size_t len = strcspn(pattern, "/");
	cleanup_free char *first = mem_dup_bytes(pattern, len);
	const char *rest = pattern[len] ? pattern + len + 1 : NULL;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close_dir) DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	/* what was not looked at would not be masked */
	if (!entries)
		return err_sys(e, errno, "look into '%s/%s'", s->target, below);
	/* "**" is also nothing at all */
	if (strcmp(first, "**") == 0 && rest && search_dir(s, dir_fd, below, rest, depth, e) < 0)
		return -1;
	while ((errno = 0, entry = readdir(entries))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (match_name(s, dir_fd, below, name, pattern, first, rest, depth, e) < 0)
			return -1;
	}
	return errno != 0 ? err_sys(e, errno, "look into '%s/%s'", s->target, below) : 0;
}

static int mask_asked(struct workspace *w, const struct policy *p, int base_fd, struct err *e)
{
	struct search s = { .workspace = w, .target = p->is_clone ? CLONE_ORIGIN : w->path };
	cleanup_fd int dir_fd = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (p->mask && dir_fd < 0)
		return err_sys(e, errno, "read '%s'", w->path);
	for (char *const *pattern = p->mask; pattern && *pattern; pattern++)
		if (search_dir(&s, dir_fd, "", *pattern, 0, e) < 0)
			return err_wrap(e, "%s '%s'", p->origin[POLICY_MASK], *pattern);
	return 0;
}

/* ---- beginning and end ---- */

static int check_repository(const struct workspace *w, int base_fd, struct err *e)
{
	struct stat st;

	if (fstatat(base_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%s' is not the root of a git repository, which --clone needs", w->path);
}

static int fill(struct workspace *w, const struct policy *p, int base_fd, struct err *e)
{
	CLEANUP(gitlinks_done) struct gitlinks links = { .outside_fd = -1 };

	if (gitlinks_read(base_fd, w->path, &links, e) < 0)
		return -1;
	w->git_dir = take_ptr(links.outside);
	w->git_fd = take_fd(&links.outside_fd);
	if (p->is_clone) /* read-only as a whole */
		return check_repository(w, base_fd, e) < 0 ? -1 : mask_asked(w, p, base_fd, e);
	if (protect_dir(w, p, base_fd, "", e) < 0)
		return -1;
	if (!w->git_dir && protect_admin(w, p, base_fd, w->path, ".git/", links.admin, e) < 0)
		return -1;
	for (char *const *dir = links.dirs; dir && *dir; dir++)
		if (protect_dir(w, p, base_fd, *dir, e) < 0)
			return -1;
	if (w->git_dir && protect_outside(w, p, &links, e) < 0)
		return -1;
	if (protect_asked(w, p, base_fd, e) < 0)
		return -1;
	return mask_asked(w, p, base_fd, e);
}

void workspace_init(struct workspace *w)
{
	*w = (struct workspace){ .git_fd = -1 };
}

int workspace_open(struct workspace *w, const struct policy *p, int dir_fd, struct err *e)
{
	workspace_init(w);
	w->path = mem_dup(p->workspace);
	if (fill(w, p, dir_fd, e) < 0) {
		workspace_done(w);
		return -1;
	}
	return 0;
}

void workspace_done(struct workspace *w)
{
	while (w->standin_count > 0)
		standin_done(&w->standins[--w->standin_count]);
	free(w->standins);
	for (unsigned i = 0; i < w->guard_count; i++)
		free(w->guards[i].name);
	free(w->guards);
	free(w->path);
	free(w->git_dir);
	cleanup_closep(&w->git_fd);
	workspace_init(w);
}
