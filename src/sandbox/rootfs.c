/*
 * rootfs - the file system that a sandbox sees; see rootfs.h.
 *
 * Theory of operation. For the host image the new root is a tmpfs that is laid over "/" of the
 * child's mount namespace: path names still find the host's files underneath (a walk starts at the
 * process's root, not at what covers it), descriptors reach the new tree. For another image the
 * tmpfs is a staging area, laid over some other directory, and the new root is the overlay in it.
 * Order matters:
 *
 *   1. the base                                     written, bound, restricted
 *   2. for a read-only root, its writable places    binds of the root's own directories
 *   3. /dev, /proc, then what the policy shows      parents before children
 *   4. masks and protected paths                    on top of all that
 *   5. for a read-only root, the root itself; pivot
 *
 * One tmpfs and few calls keep this at a few hundred microseconds.
 */
#include "sandbox/rootfs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "sandbox/devices.h"
#include "sandbox/hostroot.h"
#include "sandbox/mask.h"
#include "sandbox/mount.h"
#include "sandbox/procfs.h"
#include "sandbox/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const rootfs_always_writable[] = { "/tmp", "/var/tmp", "/dev/shm", "/run", NULL };

/* The nearest place before `index` that holds its target; NULL: the root itself does. */
static const struct rootfs_place *place_around(const struct rootfs_options *o, unsigned index)
{
	const struct rootfs_place *nearest = NULL;

	/* sorted: of the places that hold the target, the last is the innermost */
	for (unsigned i = 0; i < index; i++)
		if (path_is_within(o->places[index].target, o->places[i].target))
			nearest = &o->places[i];
	return nearest;
}

/*
 * By its name the target lies in the root. An image's links may lead it into a directory of the
 * host that is shown already, where nothing may be made.
 */
static int check_makeable(int root_fd, const char *target, struct err *e)
{
	cleanup_free char *path = mem_dup(target);
	struct stat root, st;

	for (;;) {
		cleanup_fd int fd = mount_open_in_root(root_fd, path[0] ? path : "/", O_PATH);
		char *slash = strrchr(path, '/');

		if (fd >= 0 || !slash) {
			if (fstat(root_fd, &root) < 0 || fd < 0 || fstat(fd, &st) < 0)
				return err_sys(e, fd < 0 ? -fd : errno, "look at '%s'", target);
			break;
		}
		*slash = '\0';
	}
	if (st.st_dev != root.st_dev && strlen(path) < strlen(target))
		return err_set(
			e, ERR_NOT_FOUND,
			"'%s' leads into another directory that is shown: create it there to "
			"mount over it",
			target);
	return 0;
}

/* Where the target lies in a directory of the host it must exist: we leave nothing behind. */
static int prepare_target(int root_fd, const struct rootfs_options *o, unsigned index,
			  struct err *e)
{
	const struct rootfs_place *place = &o->places[index];
	const struct rootfs_place *around = place_around(o, index);
	bool is_dir = place->kind == ROOTFS_TMPFS || place->is_dir;
	cleanup_fd int place_fd = -1;

	if (!around && o->image && check_makeable(root_fd, place->target, e) < 0)
		return -1;
	if (!around || around->kind == ROOTFS_TMPFS)
		return target_make(root_fd, place->target, is_dir ? S_IFDIR : S_IFREG, e);
	place_fd = mount_open_in_root(root_fd, place->target, O_PATH);
	if (place_fd < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "'%s' does not exist in '%s': create it there to mount over it",
			       place->target, around->source);
	return 0;
}

/*
 * The policy keeps targets out of /proc and /dev by name. An image's links may lead one there all
 * the same, and init counts processes and memory by what it reads in /proc.
 */
static int check_target(int root_fd, const char *target, struct err *e)
{
	static const char *const kept[] = { "proc", "dev" };
	cleanup_fd int target_fd = mount_open_in_root(root_fd, target, O_PATH);
	struct stat st, own;

	if (target_fd < 0 || fstat(target_fd, &st) < 0)
		return err_sys(e, target_fd < 0 ? -target_fd : errno, "find '%s' to mount over",
			       target);
	for (size_t i = 0; i < COUNT_OF(kept); i++) {
		size_t len = strlen(kept[i]);
		bool is_named = strncmp(target + 1, kept[i], len) == 0 &&
				(target[len + 1] == '/' || target[len + 1] == '\0');

		if (!is_named && fstatat(root_fd, kept[i], &own, AT_SYMLINK_NOFOLLOW) == 0 &&
		    own.st_dev == st.st_dev)
			return err_set(e, ERR_INVALID, "'%s' leads to /%s in this image", target,
				       kept[i]);
	}
	return 0;
}

/* The path was checked in another mount namespace: what it names now must be the same file. */
static int open_source(const struct rootfs_place *place, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	struct stat st;

	if (mount_open_tree(AT_FDCWD, place->source, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	if (fstat(tree_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", place->source);
	if (st.st_dev != place->device || st.st_ino != place->inode)
		return err_set(e, ERR_BUSY, "'%s' was replaced while the sandbox started",
			       place->source);
	*ret_fd = take_fd(&tree_fd);
	return 0;
}

static int open_place(const struct rootfs_place *place, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	unsigned flags = MOUNT_RECURSIVE | (place->is_read_only ? MOUNT_READ_ONLY : 0);

	if (place->kind == ROOTFS_TMPFS)
		return mount_new_tmpfs(place->size_bytes, "1777", ret_fd, e);
	if (place->tree_fd >= 0)
		tree_fd = fcntl(place->tree_fd, F_DUPFD_CLOEXEC, 0);
	else if (open_source(place, &tree_fd, e) < 0)
		return -1;
	if (tree_fd < 0)
		return err_sys(e, errno, "duplicate the mount of '%s'", place->source);
	if (mount_restrict(tree_fd, flags, e) < 0)
		return err_wrap(e, "'%s'", place->source);
	*ret_fd = take_fd(&tree_fd);
	return 0;
}

static int show(int root_fd, const struct rootfs_options *o, unsigned index, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (open_place(&o->places[index], &tree_fd, e) < 0)
		return -1;
	if (prepare_target(root_fd, o, index, e) < 0)
		return -1;
	if (o->image && check_target(root_fd, o->places[index].target, e) < 0)
		return -1;
	return mount_attach_at(tree_fd, root_fd, o->places[index].target, e);
}

static int mask_credentials(int root_fd, const char *home, struct err *e)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < credential_home_count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", home, credential_home[i]) >=
		    (int)sizeof(path))
			return err_set(e, ERR_INVALID, "home '%s' is too long a path", home);
		if (mask_path(root_fd, path, e) < 0)
			return -1;
	}
	return 0;
}

/* Mounts root_fd/path over itself. A mount can be neither renamed nor removed. */
static int pin(int root_fd, const char *path, unsigned flags, struct err *e)
{
	cleanup_fd int place_fd = mount_open_in_root(root_fd, path, O_PATH);
	cleanup_fd int tree_fd = -1;
	struct stat st;

	if (place_fd == -ENOENT || place_fd == -ENOTDIR)
		return 0;
	if (place_fd < 0)
		return err_sys(e, -place_fd, "find '%s' to protect it", path);
	if (fstat(place_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s' to protect it", path);
	if (!S_ISDIR(st.st_mode))
		flags |= MOUNT_READ_ONLY; /* a worktree's .git: what it says is what git obeys */
	if (mount_open_tree(place_fd, "", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return err_wrap(e, "protect '%s'", path);
	if (mount_restrict(tree_fd, MOUNT_RECURSIVE | flags, e) < 0)
		return -1;
	return mount_attach(tree_fd, place_fd, path, e);
}

/*
 * What would run later on the host is read-only inside, and its directory stays where it is. A
 * path that does not exist yet is not covered.
 */
static int protect_workspace(int root_fd, const char *workspace, struct err *e)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < credential_protected_count; i++) {
		const char *name = credential_protected[i].path;
		unsigned flags = credential_protected[i].is_pinned_only ? 0 : MOUNT_READ_ONLY;

		if (snprintf(path, sizeof(path), "%s/%s", workspace, name) >= (int)sizeof(path))
			return err_set(e, ERR_INVALID, "workspace '%s' is too long a path",
				       workspace);
		if (pin(root_fd, path, flags, e) < 0)
			return -1;
	}
	return 0;
}

static int show_places(int root_fd, const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	for (unsigned i = 0; i < o->place_count; i++)
		if (show(root_fd, o, i, e) < 0)
			return -1;
	if (p->home && mask_credentials(root_fd, p->home, e) < 0)
		return -1;
	if (p->workspace && protect_workspace(root_fd, p->workspace, e) < 0)
		return -1;
	return 0;
}

static bool is_same_file(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* An image's own links decide where the path leads, inside the root. */
static int keep_writable(int root_fd, const char *path, struct err *e)
{
	cleanup_fd int place_fd = mount_open_in_root(root_fd, path, O_PATH | O_DIRECTORY);
	cleanup_fd int tree_fd = -1;

	if (place_fd < 0)
		return err_sys(e, -place_fd, "find '%s' to keep it writable", path);
	if (is_same_file(place_fd, root_fd))
		return 0; /* a home directory "/" does not undo a read-only root */
	if (mount_open_tree(place_fd, "", 0, &tree_fd, e) < 0)
		return err_wrap(e, "'%s'", path);
	return mount_attach(tree_fd, place_fd, path, e);
}

/* Binds of the root's own directories, so that one size limit covers all. */
static int keep_places_writable(int root_fd, const struct policy *p, struct err *e)
{
	for (const char *const *path = rootfs_always_writable; *path; path++)
		if (keep_writable(root_fd, *path, e) < 0)
			return -1;
	return p->home ? 0 : keep_writable(root_fd, p->home_dir, e);
}

/* Everything above the base. */
static int fill_root(int root_fd, const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	if (p->is_read_only && keep_places_writable(root_fd, p, e) < 0)
		return -1;
	if (mask_begin(root_fd, e) < 0)
		return -1;
	if (procfs_mount(root_fd, e) < 0)
		return -1;
	if (show_places(root_fd, o, e) < 0)
		return -1;
	if (mask_end(root_fd, e) < 0)
		return -1;
	return p->is_read_only ? mount_restrict(root_fd, MOUNT_READ_ONLY, e) : 0;
}

static int build_host(int root_fd, const struct rootfs_options *o, struct err *e)
{
	if (hostroot_fill(root_fd, o->policy, o->resolv_conf, e) < 0)
		return err_wrap(e, "build the root");
	return devices_fill(root_fd, e);
}

static int build_image(int staging_fd, const struct rootfs_options *o, int *ret_root_fd,
		       struct err *e)
{
	cleanup_fd int root_fd = -1;

	if (imageroot_mount(staging_fd, o->image, &root_fd, e) < 0)
		return -1;
	if (imageroot_fill(root_fd, o->policy, o->resolv_conf, e) < 0)
		return err_wrap(e, "prepare the image");
	if (devices_fill(staging_fd, e) < 0 || imageroot_cover_dev(staging_fd, root_fd, e) < 0)
		return -1;
	*ret_root_fd = take_fd(&root_fd);
	return 0;
}

/*
 * Where the staging area covers a directory of the host, in this namespace only: anywhere that we
 * need nothing from. Not "/", where the pivot would let go of it instead of the old root.
 */
static const char *find_stage(const struct rootfs_options *o)
{
	static const char *const candidates[] = { "/sys", "/mnt", "/srv", "/boot", "/media" };
	struct stat st;

	for (size_t i = 0; i < COUNT_OF(candidates); i++) {
		bool is_needed = path_is_within(o->image->layers_path, candidates[i]);

		for (unsigned n = 0; n < o->place_count; n++)
			is_needed |= o->places[n].source &&
				     path_is_within(o->places[n].source, candidates[i]);
		if (!is_needed && stat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

int rootfs_enter(const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int tmpfs_fd = -1;
	cleanup_fd int image_fd = -1;
	cleanup_fd int place_fd = -1;
	const char *place = o->image ? find_stage(o) : "/";
	int root_fd;

	if (!place)
		return err_set(e, ERR_UNSUPPORTED, "this machine has no directory to build on");
	place_fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place_fd < 0)
		return err_sys(e, errno, "open %s", place);
	if (mount_new_tmpfs(o->policy->disk_bytes, "755", &tmpfs_fd, e) < 0)
		return -1;
	if (mount_attach(tmpfs_fd, place_fd, place, e) < 0)
		return -1;
	if (o->image ? build_image(tmpfs_fd, o, &image_fd, e) < 0 : build_host(tmpfs_fd, o, e) < 0)
		return -1;
	root_fd = o->image ? image_fd : tmpfs_fd;
	if (fill_root(root_fd, o, e) < 0)
		return -1;
	return mount_pivot(root_fd, e);
}
