/*
 * rootfs - the file system that a sandbox sees; see rootfs.h.
 *
 * Theory of operation. For the host image the new root is a tmpfs mounted over "/" of the child's
 * mount namespace: paths still find the host's files underneath (a lookup starts at the process's
 * root, not at the mount that covers it), descriptors reach the new tree. For another image, and
 * for a named sandbox, the tmpfs is a staging area, mounted over some other directory, and the new
 * root is the overlay in it. The order matters:
 *
 *   1. the base: files, bind mounts, restrictions
 *   2. for a read-only root, its writable places: binds of the root's own directories
 *   3. /dev, /proc, /sys
 *   4. the mounts of the policy, parents before children
 *   5. masks and protected paths, on top of all these
 *   6. for a read-only root, the root itself; pivot
 *
 * A warm sandbox waits before 4 (placement); if it needs no paths of the host afterwards, it pivots
 * before it waits.
 *
 * One tmpfs and few calls keep this at a few hundred microseconds.
 */
#include "sandbox/rootfs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/wall.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "sandbox/devices.h"
#include "sandbox/hostroot.h"
#include "host/limitfiles.h"
#include "sandbox/mask.h"
#include "host/mount.h"
#include "sandbox/procfs.h"
#include "sandbox/target.h"
#include "sandbox/imageroot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FD_LINK_MAX_BYTES 32
#define ROOTFS_STATX_MNT_ID 0x1000u

const char *const rootfs_always_writable[] = { "/tmp", "/var/tmp", "/dev/shm", "/run", NULL };

/* The nearest place before `index` that contains its target; NULL: only the root does. */
static const struct rootspec_place *place_around(const struct rootfs_options *o, unsigned index)
{
	const struct rootspec_place *nearest = NULL;

	/* the places are sorted, so the last match is the innermost */
	for (unsigned i = 0; i < index; i++)
		if (path_is_within(o->shown.places[index].target, o->shown.places[i].target))
			nearest = &o->shown.places[i];
	return nearest;
}

/*
 * By its name the target lies in the root or in a tmpfs (`inside_fd`), but an image's links may
 * lead it into a host directory that is mounted already, where we must not create anything.
 */
static int check_makeable(int root_fd, int inside_fd, const char *target, struct err *e)
{
	cleanup_free char *path = mem_dup(target);
	struct stat inside, st;

	for (;;) {
		cleanup_fd int fd = mount_open_in_root(root_fd, path[0] ? path : "/", O_PATH);
		char *slash = strrchr(path, '/');

		if (fd >= 0 || !slash) {
			if (fd < 0 || fstat(fd, &st) < 0 || fstat(inside_fd, &inside) < 0)
				return err_sys(e, fd < 0 ? -fd : errno, "look at '%s'", target);
			break;
		}
		*slash = '\0';
	}
	if (st.st_dev != inside.st_dev && strlen(path) < strlen(target))
		return err_set(
			e, ERR_NOT_FOUND,
			"'%s' leads into another directory that is shown: create it there to "
			"mount over it",
			target);
	return 0;
}

/* A target inside a host directory must exist, because we create nothing in host directories. */
static int prepare_target(int root_fd, const struct rootfs_options *o, const int *tree_fds,
			  unsigned index, struct err *e)
{
	const struct rootspec_place *place = &o->shown.places[index];
	const struct rootspec_place *around = place_around(o, index);
	bool is_dir = place->kind == ROOTSPEC_TMPFS || place->is_dir;
	cleanup_fd int place_fd = -1;

	if (o->image && (!around || around->kind == ROOTSPEC_TMPFS) &&
	    check_makeable(root_fd, around ? tree_fds[around - o->shown.places] : root_fd,
			   place->target, e) < 0)
		return -1;
	if (!around || around->kind == ROOTSPEC_TMPFS)
		return target_make(root_fd, place->target, is_dir ? S_IFDIR : S_IFREG, e);
	place_fd = mount_open_in_root(root_fd, place->target, O_PATH);
	if (place_fd < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "'%s' does not exist in '%s': create it there to mount over it",
			       place->target, around->source);
	return 0;
}

/* Path of a descriptor's file in this mount namespace. Returns -errno. */
static int find_path(int fd, char out[PATH_MAX])
{
	char link[FD_LINK_MAX_BYTES];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

/*
 * The policy refuses targets in /proc, /sys and /dev by name, but an image's links may lead there,
 * and init trusts /proc when it counts processes and memory.
 */
static int check_target(int root_fd, const char *target, struct err *e)
{
	static const char *const kept[] = { "/proc", "/sys", "/dev" };
	cleanup_fd int target_fd = mount_open_in_root(root_fd, target, O_PATH);
	char root[PATH_MAX], found[PATH_MAX];
	int r = target_fd < 0 ? target_fd : find_path(root_fd, root);
	size_t root_len;

	if (r == 0)
		r = find_path(target_fd, found);
	if (r < 0)
		return err_sys(e, -r, "find '%s' to mount over", target);
	root_len = strlen(root);
	if (strncmp(found, root, root_len) != 0 || found[root_len] == '\0')
		return err_set(e, ERR_INVALID, "'%s' leads to the root in this image", target);
	for (size_t i = 0; i < COUNT_OF(kept); i++)
		if (path_is_within(found + root_len, kept[i]) && !path_is_within(target, kept[i]))
			return err_set(e, ERR_INVALID, "'%s' leads to %s in this image", target,
				       kept[i]);
	return 0;
}

/* The path was checked in another mount namespace, so it must still be the same file here. */
static int open_source(const struct rootspec_place *place, int *ret_fd, struct err *e)
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

static int open_place(const struct rootspec_place *place, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	bool is_read_only = place->is_read_only && wall_stands(WALL_MOUNTS_READ_ONLY);
	unsigned flags = MOUNT_RECURSIVE | (is_read_only ? MOUNT_READ_ONLY : 0);

	if (place->kind == ROOTSPEC_TMPFS)
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

/* tree_fds[index] refers to the root of the mount afterwards, wherever its name leads. */
static int show(int root_fd, const struct rootfs_options *o, int *tree_fds, unsigned index,
		struct err *e)
{
	if (open_place(&o->shown.places[index], &tree_fds[index], e) < 0)
		return -1;
	if (prepare_target(root_fd, o, tree_fds, index, e) < 0)
		return -1;
	if (o->image && check_target(root_fd, o->shown.places[index].target, e) < 0)
		return -1;
	return mount_attach_at(tree_fds[index], root_fd, o->shown.places[index].target, e);
}

static int get_mount_id(int fd, uint64_t *ret)
{
	struct statx stx;

	/* by system call number: older C libraries have no statx(), musl no mask for this field */
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, ROOTFS_STATX_MNT_ID, &stx) < 0)
		return -errno;
	*ret = stx.stx_mnt_id;
	return 0;
}

/*
 * A link of the image may lead through a directory that a later place covered: then the policy's
 * name no longer leads to its place, and all later steps go by name.
 */
static int check_places(int root_fd, const struct rootfs_options *o, const int *tree_fds,
			struct err *e)
{
	for (unsigned i = 0; o->image && i < o->shown.place_count; i++) {
		cleanup_fd int fd = mount_open_in_root(root_fd, o->shown.places[i].target, O_PATH);
		uint64_t shown = 0, found = 0;
		int r = fd < 0 ? fd : get_mount_id(fd, &found);

		if (r == 0)
			r = get_mount_id(tree_fds[i], &shown);
		if (r < 0 && r != -ENOENT && r != -ENOTDIR)
			return err_sys(e, -r, "look at '%s'", o->shown.places[i].target);
		if (r < 0 || shown != found)
			return err_set(e, ERR_INVALID, "the image's links lead '%s' elsewhere",
				       o->shown.places[i].target);
	}
	return 0;
}

/* The files that a name below a place leads to: none, one, or two. */
struct below {
	int fds[2];
	unsigned count;
	bool is_by_link;
	int link_fd; /* the name itself if it is a link, else -1 */
};

static void below_done(struct below *b)
{
	for (unsigned i = 0; i < b->count; i++)
		cleanup_closep(&b->fds[i]);
	cleanup_closep(&b->link_fd);
}

static bool is_same_file(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int below_add(struct below *b, int fd)
{
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return fd;
	if (b->count > 0 && is_same_file(b->fds[0], fd)) {
		(void)close(fd);
		return 0;
	}
	b->fds[b->count++] = fd;
	return 0;
}

/*
 * Opens base_fd/name. If the path contains a link, it is resolved in two ways: inside the place,
 * which cannot be wrong, and inside the root, as a program in the sandbox would. Returns -errno.
 */
static int below_open(struct below *b, int root_fd, int base_fd, const char *base, const char *name)
{
	char path[PATH_MAX];
	int fd = mount_open_plain(base_fd, name, O_PATH | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
		b->link_fd = fd;
		fd = -ELOOP;
	}
	if (fd != -ELOOP)
		return below_add(b, fd);
	b->is_by_link = true;
	if (snprintf(path, sizeof(path), "%s/%s", base, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = below_add(b, mount_open_in_root(base_fd, name, O_PATH));
	return r < 0 ? r : below_add(b, mount_open_in_root(root_fd, path, O_PATH));
}

static int mask_credentials(int root_fd, int empty_fd, int home_fd, const struct policy *p,
			    struct err *e)
{
	for (size_t i = 0; i < credential_home_count; i++) {
		CLEANUP(below_done) struct below b = { .link_fd = -1 };
		int r;

		if (keyrows_list_has(p->unmask, credential_home[i]))
			continue;
		r = below_open(&b, root_fd, home_fd, p->home, credential_home[i]);
		if (r < 0)
			return err_sys(e, -r, "find '%s/%s' to mask it", p->home,
				       credential_home[i]);
		for (unsigned n = 0; n < b.count; n++)
			if (mask_place(empty_fd, b.fds[n], credential_home[i], e) < 0)
				return -1;
	}
	return 0;
}

/* Bind-mounts the file of place_fd over itself: a mount point cannot be renamed or removed. */
static int pin(int place_fd, const char *name, unsigned flags, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	struct stat st;

	if (fstat(place_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s' to protect it", name);
	if (!S_ISDIR(st.st_mode))
		flags |= MOUNT_READ_ONLY; /* a worktree's .git file: git follows its content */
	if (mount_open_tree(place_fd, "", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return err_wrap(e, "protect '%s'", name);
	if (mount_restrict(tree_fd, MOUNT_RECURSIVE | flags, e) < 0)
		return -1;
	return mount_attach(tree_fd, place_fd, name, e);
}

/* Descriptor of the place mounted at `target`. */
static int tree_at(const struct rootfs_options *o, const int *tree_fds, const char *target)
{
	for (unsigned i = 0; i < o->shown.place_count; i++)
		if (strcmp(o->shown.places[i].target, target) == 0)
			return tree_fds[i];
	assert(!"home and workspace are places");
	return -1;
}

/* Returns the innermost host directory that contains `path` (inside), or NULL. */
static const struct rootspec_place *host_place_of(const struct rootfs_options *o, const char *path)
{
	const struct rootspec_place *nearest = NULL;

	for (unsigned i = 0; i < o->shown.place_count; i++)
		if (o->shown.places[i].kind == ROOTSPEC_HOST &&
		    path_is_within(path, o->shown.places[i].target))
			nearest = &o->shown.places[i];
	return nearest;
}

/* fd was reached through a link: pins the directories above it, so that they cannot be moved. */
static int pin_above(int root_fd, int fd, const struct rootfs_options *o, struct err *e)
{
	char root[PATH_MAX], found[PATH_MAX];
	const struct rootspec_place *place;
	int r = find_path(root_fd, root);
	char *path, *slash;

	if (r == 0)
		r = find_path(fd, found);
	if (r < 0)
		return err_sys(e, -r, "find out where a link leads");
	path = found + (strcmp(root, "/") == 0 ? 0 : strlen(root));
	place = host_place_of(o, path);
	slash = place ? strchr(path + strlen(place->target), '/') : NULL;
	while (slash && (slash = strchr(slash + 1, '/'))) {
		cleanup_fd int dir_fd = -1;

		*slash = '\0';
		dir_fd = mount_open_in_root(root_fd, path, O_PATH);
		if (dir_fd < 0)
			return err_sys(e, -dir_fd, "find '%s' to protect it", path);
		if (pin(dir_fd, path, 0, e) < 0)
			return -1;
		/* cppcheck-suppress nullPointerRedundantCheck ; checked by the loop condition */
		*slash = '/';
	}
	return 0;
}

/* Refuses a dangling link whose target could be created inside. */
static int check_dangling(const struct below *b, const struct rootspec_guard *g,
			  const struct rootfs_options *o, struct err *e)
{
	cleanup_free char *name = mem_format("%s/%s", g->target, g->name);
	cleanup_free char *path = NULL;
	const struct rootspec_place *place;
	char text[PATH_MAX];
	ssize_t n = readlinkat(b->link_fd, "", text, sizeof(text) - 1);

	if (n < 0)
		return err_sys(e, errno, "read the link '%s'", name);
	text[n] = '\0';
	*strrchr(name, '/') = '\0';
	path = path_absolute(name, text);
	place = path ? host_place_of(o, path) : NULL;
	if (place && !place->is_read_only)
		return err_set(e, ERR_INVALID,
			       "'%s' in '%s' is a link to '%.100s', which is missing and could be "
			       "made inside (remove the link, or add --unprotect %s)",
			       g->name, g->target, text, g->name);
	return 0;
}

static int guard_link(int root_fd, const struct below *b, const struct rootspec_guard *g,
		      const struct rootfs_options *o, struct err *e)
{
	if (b->link_fd >= 0) {
		if (b->count == 0 && check_dangling(b, g, o, e) < 0)
			return -1;
		if (pin(b->link_fd, g->name, 0, e) < 0)
			return -1;
	}
	/* pinned after their content: a copy of a directory includes the mounts in it */
	for (unsigned i = 0; b->is_by_link && i < b->count; i++)
		if (pin_above(root_fd, b->fds[i], o, e) < 0)
			return -1;
	return 0;
}

static int guard(int root_fd, int empty_fd, int place_fd, const struct rootspec_guard *g,
		 const struct rootfs_options *o, struct err *e)
{
	CLEANUP(below_done) struct below b = { .link_fd = -1 };
	int r = below_open(&b, root_fd, place_fd, g->target, g->name);

	if (r < 0)
		return err_sys(e, -r, "find '%s/%s' to protect it", g->target, g->name);
	for (unsigned i = 0; i < b.count; i++) {
		int ok = g->care == ROOTSPEC_MASKED
				 ? mask_place(empty_fd, b.fds[i], g->name, e)
				 : pin(b.fds[i], g->name,
				       g->care == ROOTSPEC_PROTECTED ? MOUNT_READ_ONLY : 0, e);

		if (ok < 0)
			return -1;
	}
	return g->care == ROOTSPEC_MASKED ? 0 : guard_link(root_fd, &b, g, o, e);
}

static int show_all(int root_fd, int empty_fd, const struct rootfs_options *o, int *tree_fds,
		    struct err *e)
{
	const struct policy *p = o->policy;

	for (unsigned i = 0; i < o->shown.place_count; i++)
		if (show(root_fd, o, tree_fds, i, e) < 0)
			return -1;
	if (check_places(root_fd, o, tree_fds, e) < 0)
		return -1;
	if (p->home && wall_stands(WALL_CREDENTIAL_MASKS) &&
	    mask_credentials(root_fd, empty_fd, tree_at(o, tree_fds, p->home), p, e) < 0)
		return -1;
	for (unsigned i = 0; i < o->shown.guard_count; i++)
		if (wall_stands(o->shown.guards[i].care == ROOTSPEC_MASKED
					? WALL_WORKSPACE_MASKS
					: WALL_WORKSPACE_PROTECTION) &&
		    guard(root_fd, empty_fd, tree_at(o, tree_fds, o->shown.guards[i].target),
			  &o->shown.guards[i], o, e) < 0)
			return -1;
	return 0;
}

static int show_places(int root_fd, int empty_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_free int *tree_fds = mem_alloc((o->shown.place_count + 1) * sizeof(*tree_fds));
	int r;

	for (unsigned i = 0; i < o->shown.place_count; i++)
		tree_fds[i] = -1;
	r = show_all(root_fd, empty_fd, o, tree_fds, e);
	for (unsigned i = 0; i < o->shown.place_count; i++)
		cleanup_closep(&tree_fds[i]);
	return r;
}

/* Resolves the path inside the root, following the image's links. */
static int keep_writable(int root_fd, const char *path, struct err *e)
{
	cleanup_fd int place_fd = mount_open_in_root(root_fd, path, O_PATH | O_DIRECTORY);
	cleanup_fd int tree_fd = -1;

	if (place_fd < 0)
		return err_sys(e, -place_fd, "find '%s' to keep it writable", path);
	if (is_same_file(place_fd, root_fd))
		return 0; /* a home directory "/" must not make a read-only root writable */
	if (mount_open_tree(place_fd, "", 0, &tree_fd, e) < 0)
		return err_wrap(e, "'%s'", path);
	return mount_attach(tree_fd, place_fd, path, e);
}

/* Bind mounts of the root's own directories, so that one size limit covers all of them. */
static int keep_places_writable(int root_fd, const struct policy *p, struct err *e)
{
	for (const char *const *path = rootfs_always_writable; *path; path++)
		if (keep_writable(root_fd, *path, e) < 0)
			return -1;
	if (p->is_clone && keep_writable(root_fd, p->workspace, e) < 0)
		return -1;
	return p->home ? 0 : keep_writable(root_fd, p->home_dir, e);
}

/* A directory cached by state/limitcache is attached below the mounts that show its parts. */
static int show_limits(int root_fd, int tmpfs_fd, const struct rootfs_options *o, int limits_fd,
		       struct err *e)
{
	cleanup_fd int dir_fd = -1;

	if (limits_fd >= 0 && (mount_restrict(limits_fd, MOUNT_READ_ONLY, e) < 0 ||
			       mount_attach_own(limits_fd, root_fd, "sys", e) < 0))
		return -1;
	dir_fd = openat(limits_fd >= 0 ? root_fd : tmpfs_fd, "sys",
			O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open the files about limits");
	return limitfiles_show(dir_fd, root_fd, o->cgroup_kind, e);
}

/*
 * True: the sandbox needs nothing of the host's tree once it waits, so it unmounts that tree before
 * it waits, which takes the kernel longer than all mounts that follow. With an image the empty
 * files for masks are in the staging area, which is unmounted with the host's tree: then it cannot.
 */
static bool can_pivot_early(const struct rootfs_options *o)
{
	return o->await_places && o->has_only_trees && !o->image;
}

/* Where the staging area covers a directory of the host, or the host's tree is gone, none can be
 * opened by its name. */
static bool can_be_opened(const struct rootfs_options *o, const struct rootspec_place *place,
			  const char *stage)
{
	if (!place->source || place->tree_fd >= 0)
		return true;
	return !can_pivot_early(o) && (!o->image || !path_is_within(place->source, stage));
}

static int pivot(int root_fd, const struct rootfs_options *o, struct err *e)
{
	if (mount_pivot(root_fd, e) < 0 || o->before_unmount(o->before_unmount_context, e) < 0)
		return -1;
	return mount_drop_old_root(root_fd, e);
}

/* The places of a sandbox that waited become known only now. */
static int await_places(int root_fd, struct rootfs_options *o, const char *stage, struct err *e)
{
	if (!o->await_places)
		return 0;
	if (can_pivot_early(o) ? pivot(root_fd, o, e) < 0
			       : o->before_unmount(o->before_unmount_context, e) < 0)
		return -1;
	if (o->await_places(o->placement, o, e) < 0)
		return -1;
	for (unsigned i = 0; i < o->shown.place_count; i++)
		if (!can_be_opened(o, &o->shown.places[i], stage))
			return err_set(e, ERR_BUSY, "'%s' cannot be shown in a sandbox that waited",
				       o->shown.places[i].source);
	return 0;
}

/* Builds everything above the base. */
static int fill_root(int root_fd, int empty_fd, struct rootfs_options *o, const char *stage,
		     int limits_fd, struct err *e)
{
	const struct policy *p = o->policy;

	if (p->is_clone && target_make_user_dir(root_fd, p->workspace, p->uid, p->gid, e) < 0)
		return -1;
	if (p->is_read_only && keep_places_writable(root_fd, p, e) < 0)
		return -1;
	if (mask_begin(empty_fd, e) < 0)
		return -1;
	if (procfs_mount(root_fd, empty_fd, p, e) < 0)
		return -1;
	if (show_limits(root_fd, empty_fd, o, limits_fd, e) < 0)
		return -1;
	if (await_places(root_fd, o, stage, e) < 0 || show_places(root_fd, empty_fd, o, e) < 0)
		return -1;
	if (mask_end(empty_fd, e) < 0)
		return -1;
	if (!p->is_read_only || !wall_stands(WALL_ROOT_READ_ONLY))
		return 0;
	return mount_restrict(root_fd, MOUNT_READ_ONLY, e);
}

static int build_host(int root_fd, const struct rootfs_options *o, struct err *e)
{
	if (hostroot_fill(root_fd, o, e) < 0)
		return err_wrap(e, "build the root");
	return devices_fill(root_fd, e);
}

/* An image has its own programs; a named sandbox of the host image uses the host's. */
static int fill_overlay(int root_fd, int staging_fd, const struct rootfs_options *o, struct err *e)
{
	if (imageroot_fill(root_fd, o, e) < 0)
		return err_wrap(e, "prepare the image");
	return o->image->layers ? 0 : hostroot_bind(root_fd, staging_fd, o, e);
}

static int build_overlay(int staging_fd, const struct rootfs_options *o, int *ret_root_fd,
			 struct err *e)
{
	cleanup_fd int root_fd = -1;

	if (imageroot_mount(staging_fd, o, &root_fd, e) < 0)
		return -1;
	if (fill_overlay(root_fd, staging_fd, o, e) < 0)
		return -1;
	if (devices_fill(staging_fd, e) < 0 || imageroot_cover_dev(staging_fd, root_fd, e) < 0)
		return -1;
	*ret_root_fd = take_fd(&root_fd);
	return 0;
}

/*
 * Chooses a host directory that the staging area covers (in this namespace only); nothing needed
 * may lie below it. Not "/": there the pivot would unmount the staging area instead of the old
 * root.
 */
static const char *find_stage(const struct rootfs_options *o)
{
	static const char *const candidates[] = { "/sys", "/mnt", "/srv", "/boot", "/media" };
	struct stat st;

	for (size_t i = 0; i < COUNT_OF(candidates); i++) {
		bool is_needed = false;

		for (unsigned n = 0; n < ROOTSPEC_SOURCE_COUNT; n++)
			is_needed |= o->image->dirs[n].path &&
				     path_is_within(o->image->dirs[n].path, candidates[i]);
		for (unsigned n = 0; n < o->shown.place_count; n++)
			is_needed |= o->shown.places[n].source &&
				     path_is_within(o->shown.places[n].source, candidates[i]);
		if (!is_needed && stat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

/* Creates the files in "sys" of the new tmpfs, below the later mount at /sys that shows them. */
static int make_limits(int tmpfs_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int dir_fd = openat(tmpfs_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return err_sys(e, errno, "open a directory for limits");
	if (limitfiles_make(o->limits, dir_fd, o->figures, e) < 0)
		return -1;
	/* files open for writing would keep a root without a disk from becoming read-only */
	if (!o->image)
		limitfiles_done(o->limits);
	return 0;
}

/* Opens the cached files or creates new ones, before anything covers host directories. */
static int prepare_limits(int tmpfs_fd, const struct rootfs_options *o, int *ret_fd, struct err *e)
{
	(void)umask(0); /* the command sets its own umask before it starts */
	if (mkdirat(tmpfs_fd, "sys", 0755) < 0)
		return err_sys(e, errno, "create /sys");
	if (o->limits_tree_fd >= 0) {
		*ret_fd = fcntl(o->limits_tree_fd, F_DUPFD_CLOEXEC, 0);
		return *ret_fd < 0 ? err_sys(e, errno, "duplicate a mount") : 0;
	}
	if (o->limits_path && mount_open_tree(AT_FDCWD, o->limits_path, 0, ret_fd, e) == 0)
		return 0;
	if (o->limits_path && e->code != ERR_NOT_FOUND && e->sys != EACCES)
		return -1;
	return make_limits(tmpfs_fd, o, e);
}

int rootfs_enter(const struct rootfs_options *options, struct err *e)
{
	struct rootfs_options own = *options, *o = &own;
	cleanup_fd int limits_fd = -1;
	cleanup_fd int tmpfs_fd = -1;
	cleanup_fd int overlay_fd = -1;
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
	if (prepare_limits(tmpfs_fd, o, &limits_fd, e) < 0)
		return -1;
	if (mount_attach(tmpfs_fd, place_fd, place, e) < 0)
		return -1;
	if (o->image ? build_overlay(tmpfs_fd, o, &overlay_fd, e) < 0
		     : build_host(tmpfs_fd, o, e) < 0)
		return -1;
	root_fd = o->image ? overlay_fd : tmpfs_fd;
	if (fill_root(root_fd, tmpfs_fd, o, place, limits_fd, e) < 0)
		return -1;
	return can_pivot_early(o) ? 0 : pivot(root_fd, o, e);
}
