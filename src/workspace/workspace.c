/*
 * workspace - lists what to protect in a directory that a sandbox may write; see workspace.h.
 *
 * Theory of operation. The list of guards is built here, outside, before anything runs;
 * sandbox/rootfs makes the mounts, in the child. A guard is a name below the workspace, or below a
 * git directory outside that is shown with it. The parents of a protected name are pinned, because
 * a directory that can be moved can be replaced by another. At the end the list is sorted, so that
 * parents come before children, and duplicates are removed.
 *
 * Hostile: every name below, and other sandboxes that change them at this moment. What they make
 * between our look and the start is found by workspace/newnames, which looks again; the child looks
 * up every name again, in the mount itself.
 */
#include "workspace/workspace.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "tree/beneath.h"
#include "workspace/gitlinks.h"
#include "workspace/gitprotect.h"
#include "workspace/hostpath.h"
#include "workspace/masks.h"
#include "state/statedir.h"
#include "policy/clone.h"
#include "policy/credential.h"
#include "host/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_DEPTH_MAX 8u        /* nesting of directories searched for links in a protected one */
#define LINKS_LOOKED_AT_MAX 4096u /* names in one of these */
#define PINNED_LOOKED_AT 64u      /* guards searched backwards for a duplicate */

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

/* ---- the lists ---- */

/* Takes ownership of `name`. */
static int add_guard(struct workspace *w, enum rootspec_care care, const char *target, char *name,
		     struct err *e)
{
	if (w->guard_count == WORKSPACE_GUARDS_MAX) {
		free(name);
		return err_set(e, ERR_LIMIT, "'%s' has more than %u names to protect", w->path,
			       WORKSPACE_GUARDS_MAX);
	}
	if ((w->guard_count & (w->guard_count - 1)) == 0)
		w->guards = mem_grow(w->guards, w->guard_count ? w->guard_count * 2 : 1,
				     sizeof(*w->guards));
	w->guards[w->guard_count++] =
		(struct rootspec_guard){ .care = care, .target = target, .name = name };
	return 0;
}

static bool is_last(const struct workspace *w, const char *target, const char *name, size_t len)
{
	for (unsigned i = w->guard_count; i > 0 && i + PINNED_LOOKED_AT > w->guard_count; i--) {
		const struct rootspec_guard *g = &w->guards[i - 1];

		if (g->target == target && strncmp(g->name, name, len) == 0 && g->name[len] == '\0')
			return true;
	}
	return false;
}

/* Pins the parents of `name`; most have just been pinned for its neighbour. */
static int pin_parents(struct workspace *w, const char *target, const char *name, struct err *e)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
		if (!is_last(w, target, name, (size_t)(slash - name)) &&
		    add_guard(w, ROOTSPEC_PINNED, target,
			      mem_dup_bytes(name, (size_t)(slash - name)), e) < 0)
			return -1;
	return 0;
}

static int by_target_and_name(const void *a, const void *b)
{
	const struct rootspec_guard *x = a, *y = b;
	int order = strcmp(x->target, y->target);

	if (order == 0)
		order = strcmp(x->name, y->name);
	return order ? order : (int)y->care - (int)x->care; /* the strictest first */
}

static void sort_guards(struct workspace *w)
{
	unsigned count = 0;

	if (w->guard_count > 0)
		qsort(w->guards, w->guard_count, sizeof(*w->guards), by_target_and_name);
	for (unsigned i = 0; i < w->guard_count; i++) {
		struct rootspec_guard *last = count > 0 ? &w->guards[count - 1] : NULL;

		if (last && strcmp(last->target, w->guards[i].target) == 0 &&
		    strcmp(last->name, w->guards[i].name) == 0)
			free(w->guards[i].name);
		else
			w->guards[count++] = w->guards[i];
	}
	w->guard_count = count;
}

static int by_place_and_name(const void *a, const void *b)
{
	const struct workspace_absent *x = a, *y = b;

	return x->place_fd != y->place_fd ? x->place_fd - y->place_fd : strcmp(x->name, y->name);
}

/* Groups names of one directory and removes duplicates. */
static void sort_absent(struct workspace *w)
{
	unsigned count = 0;

	if (w->absent_count > 0)
		qsort(w->absent, w->absent_count, sizeof(*w->absent), by_place_and_name);
	for (unsigned i = 0; i < w->absent_count; i++) {
		if (count > 0 && by_place_and_name(&w->absent[count - 1], &w->absent[i]) == 0)
			free(w->absent[i].name);
		else
			w->absent[count++] = w->absent[i];
	}
	w->absent_count = count;
}

struct workspace_repository *workspace_add_repository(struct workspace *w,
						      const struct workspace_place *place,
						      const char *path, dev_t device, ino_t inode)
{
	if ((w->repository_count & (w->repository_count - 1)) == 0)
		w->repositories =
			mem_grow(w->repositories, w->repository_count ? w->repository_count * 2 : 1,
				 sizeof(*w->repositories));
	w->repositories[w->repository_count] = (struct workspace_repository){
		.place_fd = place->fd, .path = mem_dup(path), .device = device, .inode = inode
	};
	return &w->repositories[w->repository_count++];
}

/* ---- protected names ---- */

/* Refuses a dangling link whose target could be created inside. */
static int check_dangling(const struct workspace_place *place, const char *link, const char *name,
			  struct err *e)
{
	cleanup_free char *dir = mem_format("%s/%s", place->target, link);
	cleanup_free char *to = NULL;
	char text[PATH_MAX];
	ssize_t n = readlinkat(place->fd, link, text, sizeof(text) - 1);

	if (n < 0)
		return err_sys(e, errno, "read the link '%s'", dir);
	text[n] = '\0';
	*strrchr(dir, '/') = '\0';
	to = path_absolute(dir, text);
	if (!to || !path_is_within(to, place->target))
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%s' in '%s' is a link to '%.100s', which is missing and could be made "
		       "inside (remove the link, or add --unprotect %s)",
		       link, place->target, text, name);
}

/*
 * Finds how much of the name exists: returns 1 with the length, which ends before a '/', in
 * *ret_len; 0 if nobody inside can create the name, because a link leads elsewhere or a user's link
 * or file is in the way (sandbox/rootfs handles it); -1 on failure.
 */
static int find_existing(const struct workspace_place *place, const char *name, size_t *ret_len,
			 struct err *e)
{
	cleanup_free char *missing = mem_dup(name); /* the name up to its first missing component */
	cleanup_fd int dir_fd = -1;
	struct stat st;
	char *slash;

	while ((slash = strrchr(missing, '/'))) {
		dir_fd = beneath_open_parent(place->fd, missing);
		if (dir_fd != -ENOENT)
			break;
		*slash = '\0';
	}
	if (slash && dir_fd < 0)
		return file_is_absence(dir_fd) ? 0 : err_sys(e, -dir_fd, "look at '%s'", name);
	if (fstatat(slash ? dir_fd : place->fd, path_base_name(missing), &st,
		    AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISLNK(st.st_mode) ? check_dangling(place, missing, name, e) : 0;
	*ret_len = slash ? (size_t)(slash - missing) : 0;
	return 1;
}

/*
 * The caller has checked that the name does not exist. It is watched from its deepest existing
 * directory, whose parents are pinned.
 */
static int add_absent(struct workspace *w, const struct workspace_place *place, const char *name,
		      struct err *e)
{
	cleanup_free char *inside = NULL;
	size_t len = 0;
	int r = strchr(name, '/') ? find_existing(place, name, &len, e) : 1;

	if (r <= 0)
		return r;
	if (w->absent_count == WORKSPACE_ABSENT_MAX)
		return err_set(e, ERR_LIMIT, "'%s' has more than %u names to protect", w->path,
			       WORKSPACE_ABSENT_MAX);
	inside = mem_format("%.*s%s", (int)len, name, len ? "/" : "");
	if (pin_parents(w, place->target, inside, e) < 0)
		return -1;
	if ((w->absent_count & (w->absent_count - 1)) == 0)
		w->absent = mem_grow(w->absent, w->absent_count ? w->absent_count * 2 : 1,
				     sizeof(*w->absent));
	w->absent[w->absent_count++] = (struct workspace_absent){ .place_fd = place->fd,
								  .name = mem_dup(name),
								  .dir_len = len };
	return 0;
}

/*
 * --protect-new strict: the first missing component of the name gets a placeholder. 1: created; 0:
 * the name exists.
 */
static int add_standin(struct workspace *w, const struct workspace_place *place, const char *name,
		       const char *text, struct err *e)
{
	for (const char *end = strchrnul(name, '/');; end = strchrnul(end + 1, '/')) {
		cleanup_free char *part = mem_dup_bytes(name, (size_t)(end - name));
		int r = standins_add(&w->standins, place->fd, place->target, part,
				     *end ? NULL : text, e);

		if (r > 0)
			return pin_parents(w, place->target, part, e) < 0 ||
					       add_guard(w, ROOTSPEC_PROTECTED, place->target,
							 take_ptr(part), e) < 0
				       ? -1
				       : 1;
		if (r < 0 || *end == '\0')
			return r;
	}
}

static int protect_links(struct workspace *w, const struct workspace_place *place, const char *name,
			 unsigned depth, struct err *e);

/* Protects the target of a link in a protected directory, if it is in the workspace. */
static int protect_link(struct workspace *w, int dir_fd, const char *entry, struct err *e)
{
	cleanup_fd int fd = openat(dir_fd, entry, O_PATH | O_CLOEXEC);
	cleanup_free char *real = fd < 0 ? NULL : hostpath_of(fd);
	cleanup_free char *top = hostpath_of(w->dir_fd);
	const char *name;

	if (!real || !top || !path_is_within(real, top) || strcmp(real, top) == 0)
		return 0;
	name = real + strlen(top) + 1;
	return pin_parents(w, w->path, name, e) < 0
		       ? -1
		       : add_guard(w, ROOTSPEC_PROTECTED, w->path, mem_dup(name), e);
}

static int protect_entry(struct workspace *w, const struct workspace_place *place, const char *name,
			 int dir_fd, const struct dirent *entry, unsigned depth, struct err *e)
{
	cleanup_free char *below = NULL;
	struct stat st;

	if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return protect_link(w, dir_fd, entry->d_name, e);
	if (!S_ISDIR(st.st_mode) || depth == LINKS_DEPTH_MAX)
		return 0;
	below = mem_format("%s/%s", name, entry->d_name);
	return protect_links(w, place, below, depth + 1, e);
}

/* Hooks and settings are often links to files of the project. */
static int protect_links(struct workspace *w, const struct workspace_place *place, const char *name,
			 unsigned depth, struct err *e)
{
	int fd = mount_open_plain(place->fd, name, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;
	int r = 0;

	while (dir && r == 0 && count++ < LINKS_LOOKED_AT_MAX && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = protect_entry(w, place, name, dirfd(dir), entry, depth, e);
	if (dir)
		(void)closedir(dir);
	else if (fd >= 0)
		(void)close(fd);
	return r;
}

int workspace_protect(struct workspace *w, const struct policy *p,
		      const struct workspace_place *place, const char *name,
		      const struct credential_protected *row, struct err *e)
{
	struct stat st;

	if (keyrows_list_has(p->unprotect, row->path) || keyrows_list_has(p->unprotect, name))
		return 0;
	if (p->protects_strictly && row->is_kept_free) {
		/* also if another sandbox's placeholder exists already: it is shared */
		int r = add_standin(w, place, name, row->text, e);

		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	if (fstatat(place->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (pin_parents(w, place->target, name, e) < 0 ||
		    add_guard(w, row->is_pinned_only ? ROOTSPEC_PINNED : ROOTSPEC_PROTECTED,
			      place->target, mem_dup(name), e) < 0)
			return -1;
		return S_ISDIR(st.st_mode) && !row->is_pinned_only
			       ? protect_links(w, place, name, 0, e)
			       : 0;
	}
	if (!file_is_absence(-errno))
		return err_sys(e, errno, "look at '%s' in '%s' to protect it", name, place->target);
	return row->is_watched && !p->protects_strictly ? add_absent(w, place, name, e) : 0;
}

static int protect_top(struct workspace *w, const struct policy *p, struct err *e)
{
	const struct workspace_place place = { w->path, w->dir_fd };

	for (size_t i = 0; i < credential_protected_count; i++)
		if (workspace_protect(w, p, &place, credential_protected[i].path,
				      &credential_protected[i], e) < 0)
			return -1;
	return 0;
}

static int protect_asked(struct workspace *w, const struct policy *p, struct err *e)
{
	const struct workspace_place place = { w->path, w->dir_fd };

	for (char *const *name = p->protect; name && *name; name++) {
		const struct credential_protected row = { .path = *name,
							  .is_kept_free = true,
							  .is_watched = true };

		if (workspace_protect(w, p, &place, *name, &row, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- masks ---- */

struct masking {
	struct workspace *workspace;
	const char *target; /* path of the directory inside */
};

static int mask_one(void *context, const char *name, struct err *e)
{
	const struct masking *m = context;

	return add_guard(m->workspace, ROOTSPEC_MASKED, m->target, mem_dup(name), e);
}

static int mask_asked(struct workspace *w, const struct policy *p, struct err *e)
{
	struct masking m = { w, p->is_clone ? CLONE_ORIGIN : w->path };

	return masks_find(w->dir_fd, w->path, p, mask_one, &m, e);
}

/* ---- beginning and end ---- */

static int check_repository(const struct workspace *w, struct err *e)
{
	struct stat st;

	if (fstatat(w->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%s' is not the root of a git repository, which --clone needs", w->path);
}

/* Layers and disks in there may hold repositories of their own, which are no sandbox's to see. */
static char *find_own_state(const struct workspace *w, const struct ak *ak)
{
	cleanup_free char *state = NULL, *real = NULL, *top = NULL;
	struct err ignored;

	if (statedir_path(ak, ".", &state, &ignored) < 0)
		return NULL;
	real = hostpath_find_real(state);
	top = hostpath_of(w->dir_fd);
	if (!real || !top || !path_is_within(real, top) || strcmp(real, top) == 0)
		return NULL;
	return mem_dup(real + strlen(top) + 1);
}

static int fill(struct workspace *w, const struct policy *p, const struct ak *ak, struct err *e)
{
	w->own_state = find_own_state(w, ak);
	gitlinks_find_outside(w->dir_fd, w->path, &w->git_dir, &w->git_fd);
	if (p->is_clone) /* the whole workspace is read-only */
		return check_repository(w, e) < 0 ? -1 : mask_asked(w, p, e);
	if (protect_top(w, p, e) < 0 || gitprotect_run(w, p, ak, e) < 0 ||
	    protect_asked(w, p, e) < 0)
		return -1;
	return mask_asked(w, p, e);
}

void workspace_init(struct workspace *w)
{
	*w = (struct workspace){ .dir_fd = -1, .git_fd = -1 };
}

int workspace_open(struct workspace *w, const struct policy *p, int dir_fd, const struct ak *ak,
		   struct err *e)
{
	workspace_init(w);
	w->path = mem_dup(p->workspace);
	w->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (w->dir_fd < 0)
		return err_sys(e, errno, "open '%s'", w->path);
	if (fill(w, p, ak, e) < 0) {
		workspace_done(w);
		return -1;
	}
	sort_guards(w);
	sort_absent(w);
	return 0;
}

void workspace_done(struct workspace *w)
{
	standins_done(&w->standins);
	for (unsigned i = 0; i < w->guard_count; i++)
		free(w->guards[i].name);
	free(w->guards);
	for (unsigned i = 0; i < w->absent_count; i++)
		free(w->absent[i].name);
	free(w->absent);
	for (unsigned i = 0; i < w->repository_count; i++) {
		free(w->repositories[i].path);
		keyrows_list_free(&w->repositories[i].settings);
	}
	free(w->repositories);
	free(w->path);
	free(w->git_dir);
	free(w->own_state);
	cleanup_closep(&w->dir_fd);
	cleanup_closep(&w->git_fd);
	workspace_init(w);
}
