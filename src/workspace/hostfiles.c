/* hostfiles - prepares the mounts that a policy puts into a sandbox's root; see hostfiles.h. */
#include "workspace/hostfiles.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "workspace/hostpath.h"
#include "state/ak.h"
#include "state/statedir.h"
#include "policy/clone.h"
#include "policy/environment.h"
#include "host/idmap.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN_BYTES 4096u /* size of the tmpfs that hides our own directory */

/*
 * Opens a detached copy whose owner is mapped to the sandbox's user. Files that a sandbox gave to
 * another of its users belong to that user (IDMAP_FOREIGN_ID); files of other owners, and file
 * systems mounted below, keep ids that do not exist inside.
 */
static int open_mapped(struct rootspec_place *place, int source_fd, const struct stat *st,
		       const struct idmap *map, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	cleanup_fd int userns_fd = -1;
	struct err mapping = { 0 };

	if (mount_open_tree(source_fd, "", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	if (idmap_open_owner_ns(map, st->st_uid, st->st_gid, &userns_fd, e) < 0)
		return -1;
	if (mount_set_idmap(tree_fd, userns_fd, &mapping) < 0) {
		if (mapping.sys != EINVAL) {
			*e = mapping;
			return -1;
		}
		/* world-readable files work without a map; a writer would have no valid owner */
		if (!place->is_read_only)
			return err_set(
				e, ERR_UNSUPPORTED,
				"'%s' lies on a file system that cannot map owners, which "
				"root's sandboxes need to write there (add :ro, or call as an "
				"ordinary user)",
				place->source);
	}
	place->tree_fd = take_fd(&tree_fd);
	return 0;
}

/* ---- real paths ---- */

static int find_real_path(const char *source, int fd, char ret[PATH_MAX], struct err *e)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return err_sys(e, errno, "find out where '%s' lies", source);
	ret[n] = '\0';
	return 0;
}

/* "SOURCE\nPATH": the name, and the real path of the opened file. */
static int format_note(const char *source, int fd, char **ret, struct err *e)
{
	char path[PATH_MAX];

	if (find_real_path(source, fd, path, e) < 0)
		return -1;
	*ret = mem_format("%s\n%s", source, path);
	return 0;
}

static bool is_noted(char *const *places, const char *source)
{
	size_t len = strlen(source);

	for (; places && *places; places++)
		if (strncmp(*places, source, len) == 0 && (*places)[len] == '\n')
			return true;
	return false;
}

typedef int open_fn(const char *path, int *ret_fd, struct err *e);

static int note_one(const char *source, open_fn *open_source, char ***places, struct err *e)
{
	cleanup_fd int fd = -1;
	cleanup_free char *note = NULL;

	if (!source || is_noted(*places, source))
		return 0;
	if (open_source(source, &fd, e) < 0 || format_note(source, fd, &note, e) < 0)
		return -1;
	if (!keyrows_list_add(places, note))
		return err_set(e, ERR_LIMIT, "too many directories are shown");
	return 0;
}

int hostfiles_note(const struct policy *p, char ***places, struct err *e)
{
	if (note_one(p->home, hostpath_open, places, e) < 0)
		return err_wrap(e, "home (%s)", p->origin[POLICY_HOME].text);
	if (note_one(p->workspace, workspace_open_dir, places, e) < 0)
		return err_wrap(e, "workspace (%s)", p->origin[POLICY_WORKSPACE].text);
	for (unsigned i = 0; i < p->mount_count; i++)
		if (note_one(p->mounts[i].source, hostpath_open, places, e) < 0)
			return err_wrap(e, "%s", p->origin[POLICY_MOUNT].text);
	return 0;
}

/* Is the real path still the one recorded when the sandbox was created? */
static int check_note(char *const *places, const char *source, int fd, struct err *e)
{
	cleanup_free char *note = NULL;

	if (format_note(source, fd, &note, e) < 0)
		return -1;
	for (; *places; places++)
		if (strcmp(*places, note) == 0)
			return 0;
	return err_set(e, ERR_DENIED,
		       "'%s' leads to '%s' now, and did not when the sandbox was created (make a "
		       "new sandbox if that is meant)",
		       source, note + strlen(source) + 1);
}

/* ---- opening ---- */

static int check_source(const struct rootspec_place *place, char *const *places, int fd,
			struct stat *ret_st, struct err *e)
{
	if (places && check_note(places, place->source, fd, e) < 0)
		return -1;
	if (fstat(fd, ret_st) < 0)
		return err_sys(e, errno, "open '%s'", place->source);
	/* by system call number: musl's faccessat() has no empty path */
	if (syscall(SYS_faccessat2, fd, "", R_OK | (S_ISDIR(ret_st->st_mode) ? X_OK : 0),
		    AT_EMPTY_PATH) < 0)
		return err_sys(e, errno, "read '%s'", place->source);
	return 0;
}

/*
 * Completes `place`, which has its source, target and is_read_only. The source was opened once, as
 * source_fd; its name is not looked up again.
 */
static int add_opened(struct hostfiles *h, struct rootspec_place place, int source_fd,
		      char *const *places, const struct idmap *map, struct err *e)
{
	char real_path[PATH_MAX];
	struct stat st = { 0 };

	place.kind = ROOTSPEC_HOST;
	place.tree_fd = -1;
	if (check_source(&place, places, source_fd, &st, e) < 0)
		return -1;
	if (find_real_path(place.source, source_fd, real_path, e) < 0)
		return -1;
	place.device = st.st_dev;
	place.inode = st.st_ino;
	place.is_dir = S_ISDIR(st.st_mode);
	if (map->kind == IDMAP_PRIVATE && open_mapped(&place, source_fd, &st, map, e) < 0)
		return -1;
	place.real_path = mem_dup(real_path);
	h->places[h->count++] = place;
	return 0;
}

static int add_host(struct hostfiles *h, struct rootspec_place place, char *const *places,
		    const struct idmap *map, struct err *e)
{
	cleanup_fd int source_fd = -1;

	if (hostpath_open(place.source, &source_fd, e) < 0)
		return -1;
	return add_opened(h, place, source_fd, places, map, e);
}

/* The policy has compared the names; links may lead from one to the other. */
static int refuse_home(const struct rootspec_place *workspace, const struct ak *ak, struct err *e)
{
	const char *home = ak ? environment_get(ak->caller.environ_list, "HOME") : NULL;
	cleanup_fd int fd = home ? open(home, O_PATH | O_CLOEXEC) : -1;
	char path[PATH_MAX];

	if (fd < 0)
		return 0;
	if (find_real_path(home, fd, path, e) < 0)
		return -1;
	if (path_is_within(path, workspace->real_path))
		return err_set(e, ERR_INVALID,
			       "a workspace cannot hold your home directory and the keys in it");
	return 0;
}

/* The repository of a linked worktree, without which git does not work in it. */
static int add_git_dir(struct hostfiles *h, const struct policy *p, const struct idmap *map,
		       struct err *e)
{
	const char *path = h->workspace.git_dir;
	const struct rootspec_place place = { .source = path,
					      .target = path,
					      .is_read_only = p->is_clone };

	return path ? add_opened(h, place, h->workspace.git_fd, NULL, map, e) : 0;
}

static int add_workspace(struct hostfiles *h, const struct policy *p, const struct ak *ak,
			 const struct idmap *map, struct err *e)
{
	const struct rootspec_place place = { .source = p->workspace,
					      .target = p->is_clone ? CLONE_ORIGIN : p->workspace,
					      .is_read_only = p->is_clone };

	cleanup_fd int dir_fd = -1;

	if (workspace_open_dir(p->workspace, &dir_fd, e) < 0 ||
	    workspace_open(&h->workspace, p, dir_fd, ak, e) < 0 ||
	    add_opened(h, place, dir_fd, p->places, map, e) < 0 ||
	    refuse_home(&h->places[h->count - 1], ak, e) < 0)
		return -1;
	return add_git_dir(h, p, map, e);
}

static int add_all(struct hostfiles *h, const struct policy *p, const struct ak *ak,
		   const struct idmap *map, struct err *e)
{
	const struct rootspec_place home = { .source = p->home,
					     .target = p->home,
					     .is_read_only = true };

	if (p->home && add_host(h, home, p->places, map, e) < 0)
		return err_wrap(e, "home (%s)", p->origin[POLICY_HOME].text);
	if (p->workspace && add_workspace(h, p, ak, map, e) < 0)
		return err_wrap(e, "workspace (%s)", p->origin[POLICY_WORKSPACE].text);
	for (unsigned i = 0; i < p->mount_count; i++) {
		const struct policy_mount *m = &p->mounts[i];
		const struct rootspec_place mount = { .source = m->source,
						      .target = m->target,
						      .is_read_only = m->is_read_only,
						      .is_ours = m->is_ours };

		if (add_host(h, mount, p->places, map, e) < 0)
			return err_wrap(e, "%s", p->origin[POLICY_MOUNT].text);
	}
	for (unsigned i = 0; i < p->tmpfs_count; i++)
		h->places[h->count++] = (struct rootspec_place){
			.kind = ROOTSPEC_TMPFS,
			.target = p->tmpfs[i].target,
			.tree_fd = -1,
			.size_bytes =
				p->tmpfs[i].size_bytes ? p->tmpfs[i].size_bytes : p->disk_bytes,
		};
	return 0;
}

/* ---- our own directory ---- */

/*
 * Where the state directory really lies; made now, so that nobody inside can make it first. ""
 * where it is not there and cannot be: its file system is read-only.
 */
static int find_state(const struct ak *ak, char ret_path[PATH_MAX], struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;

	ret_path[0] = '\0';
	if (statedir_make_path(ak, ".", &path, e) < 0)
		return e->sys == EROFS ? 0 : -1;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	return find_real_path(path, fd, ret_path, e);
}

/*
 * The state directory holds policies, sockets and other sandboxes' disks: every place that would
 * show it, writable or not, shows an empty directory instead.
 */
static int hide_state(struct hostfiles *h, const struct ak *ak, struct err *e)
{
	unsigned count = h->count;
	char state[PATH_MAX];

	if (count == 0)
		return 0;
	if (find_state(ak, state, e) < 0)
		return -1;
	for (unsigned i = 0; i < count && state[0]; i++) {
		const struct rootspec_place *place = &h->places[i];

		if (place->kind != ROOTSPEC_HOST || place->is_ours)
			continue;
		if (path_is_within(place->real_path, state))
			return err_set(e, ERR_DENIED,
				       "'%s' lies in agentkernel's own directory '%s', which no "
				       "sandbox may see",
				       place->source, state);
		if (!path_is_within(state, place->real_path))
			continue;
		h->hidden[h->hidden_count] = mem_format(
			"%s%s", place->target,
			state + (strcmp(place->real_path, "/") == 0 ? 0
								    : strlen(place->real_path)));
		h->places[h->count++] = (struct rootspec_place){
			.kind = ROOTSPEC_TMPFS,
			.target = h->hidden[h->hidden_count++],
			.tree_fd = -1,
			.size_bytes = HIDDEN_BYTES,
		};
	}
	return 0;
}

static int by_target(const void *a, const void *b)
{
	return strcmp(((const struct rootspec_place *)a)->target,
		      ((const struct rootspec_place *)b)->target);
}

void hostfiles_init(struct hostfiles *h)
{
	h->count = h->hidden_count = 0;
	workspace_init(&h->workspace);
}

int hostfiles_open(struct hostfiles *h, const struct policy *p, const struct ak *ak,
		   const struct idmap *map, struct err *e)
{
	hostfiles_init(h);
	if (add_all(h, p, ak, map, e) < 0 || hide_state(h, ak, e) < 0)
		return -1;
	/* a parent's name is a prefix of its children's and sorts before them */
	qsort(h->places, h->count, sizeof(h->places[0]), by_target);
	for (unsigned i = 1; i < h->count; i++)
		if (strcmp(h->places[i - 1].target, h->places[i].target) == 0)
			return err_set(e, ERR_INVALID, "two things would be mounted at '%s'",
				       h->places[i].target);
	return 0;
}

void hostfiles_done(struct hostfiles *h)
{
	for (unsigned i = 0; i < h->count; i++)
		cleanup_closep(&h->places[i].tree_fd);
	for (unsigned i = 0; i < h->hidden_count; i++)
		free(h->hidden[i]);
	for (unsigned i = 0; i < h->count; i++)
		free(h->places[i].real_path);
	workspace_done(&h->workspace);
	h->count = h->hidden_count = 0;
}
