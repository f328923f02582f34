/* hostfiles - the files of this machine that a sandbox will see; see hostfiles.h. */
#include "engine/hostfiles.h"

#include "base/cleanup.h"
#include "sandbox/idmap.h"
#include "sandbox/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A detached copy whose owner is the sandbox's user. Files of other owners keep an id that
 * nobody inside has.
 */
static int open_mapped(struct rootfs_mount *m, const struct stat *st, const struct idmap *map,
		       struct err *e)
{
	cleanup_fd int tree_fd = -1;
	cleanup_fd int userns_fd = -1;

	if (mount_open_tree(AT_FDCWD, m->source, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	if (idmap_open_owner_ns(map, st->st_uid, st->st_gid, &userns_fd, e) < 0)
		return -1;
	if (mount_set_idmap(tree_fd, userns_fd, e) < 0) {
		/* read-only, world-readable files serve without it; a writer would find no owner */
		if (!m->is_read_only)
			return err_set(e, ERR_UNSUPPORTED,
				       "'%s' lies on a file system that cannot map owners, which "
				       "root's sandboxes need to write there (add :ro, or call as an "
				       "ordinary user)",
				       m->source);
	}
	m->tree_fd = take_fd(&tree_fd);
	return 0;
}

static int add(struct hostfiles *h, const char *source, const char *target, bool is_read_only,
	       const char *origin, const struct idmap *map, struct err *e)
{
	struct rootfs_mount *m = &h->mounts[h->count];
	struct stat st;

	if (stat(source, &st) < 0) {
		if (errno == ENOENT)
			return err_set(e, ERR_NOT_FOUND, "%s: '%s' does not exist", origin, source);
		return err_sys(e, errno, "%s: look at '%s'", origin, source);
	}
	if (access(source, R_OK | (S_ISDIR(st.st_mode) ? X_OK : 0)) < 0)
		return err_sys(e, errno, "%s: read '%s'", origin, source);
	*m = (struct rootfs_mount){
		.source = source,
		.target = target,
		.tree_fd = -1,
		.is_dir = S_ISDIR(st.st_mode),
		.is_read_only = is_read_only,
	};
	h->count++;
	if (map->is_range && open_mapped(m, &st, map, e) < 0)
		return err_wrap(e, "%s", origin);
	return 0;
}

static int by_target(const void *a, const void *b)
{
	return strcmp(((const struct rootfs_mount *)a)->target,
		      ((const struct rootfs_mount *)b)->target);
}

int hostfiles_open(struct hostfiles *h, const struct policy *p, const struct idmap *map,
		   struct err *e)
{
	h->count = 0;
	if (p->home && add(h, p->home, p->home, true, "home", map, e) < 0)
		return -1;
	if (p->workspace && add(h, p->workspace, p->workspace, false, "workspace", map, e) < 0)
		return -1;
	for (unsigned i = 0; i < p->mount_count; i++)
		if (add(h, p->mounts[i].source, p->mounts[i].target, p->mounts[i].is_read_only,
			"--mount", map, e) < 0)
			return -1;
	/* a parent's name is the beginning of its children's and sorts before them */
	qsort(h->mounts, h->count, sizeof(h->mounts[0]), by_target);
	return 0;
}

void hostfiles_done(struct hostfiles *h)
{
	for (unsigned i = 0; i < h->count; i++)
		cleanup_closep(&h->mounts[i].tree_fd);
	h->count = 0;
}
