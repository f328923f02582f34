/*
 * rootfs - the file system that a sandbox sees; see rootfs.h.
 *
 * Theory of operation. The new root is one tmpfs, laid over "/" of the child's mount namespace:
 * path names still find the host's files underneath (a walk starts at the process's root, not
 * at what covers it), descriptors reach the new tree. Order matters:
 *
 *   1. skeleton, this machine's programs, /etc      written and bound
 *   2. one recursive mount_setattr                  all of it read-only, nosuid, nodev, private
 *   3. the root itself writable again               its binds stay as they are
 *   4. for a read-only root, its writable places    binds of the same tmpfs
 *   5. /dev, /proc, then what the policy shows      parents before children
 *   6. masks and protected paths                    on top of all that
 *   7. for a read-only root, the root itself again; pivot
 *
 * One tmpfs and one recursive call instead of many keep this at a few hundred microseconds.
 */
#include "sandbox/rootfs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "sandbox/devices.h"
#include "sandbox/hostetc.h"
#include "sandbox/mask.h"
#include "sandbox/mount.h"
#include "sandbox/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Programs of the host. On a merged /usr most are links, which are made anew. */
static const char *const program_dir[] = {
	"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix",
};

static const struct {
	const char *path;
	mode_t mode;
} skeleton[] = {
	{ "dev", 0755 },       { "dev/shm", 01777 }, { "etc", 0755 },       { "home", 0755 },
	{ "home/user", 0755 }, { "proc", 0555 },     { "root", 0700 },      { "run", 0755 },
	{ "tmp", 01777 },      { "var", 0755 },      { "var/cache", 0755 }, { "var/lib", 0755 },
	{ "var/log", 0755 },   { "var/tmp", 01777 },
};

const char *const rootfs_always_writable[] = { "/tmp", "/var/tmp", "/dev/shm", "/run", NULL };

static int make_skeleton(int root_fd, const struct policy *p, struct err *e)
{
	(void)umask(0); /* the command gets its own before it starts */
	for (size_t i = 0; i < COUNT_OF(skeleton); i++)
		if (mkdirat(root_fd, skeleton[i].path, skeleton[i].mode) < 0)
			return err_sys(e, errno, "create /%s", skeleton[i].path);
	if (symlinkat("/run", root_fd, "var/run") < 0)
		return err_sys(e, errno, "create /var/run");
	/* with a single id both are the same user already, and the call changes nothing */
	if (p->uid != 0 && fchownat(root_fd, "home/user", p->uid, p->gid, 0) < 0)
		return err_sys(e, errno, "give /home/user to its user");
	return 0;
}

static int bind_programs(int root_fd, const char *name, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	char path[16], text[PATH_MAX];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/%s", name);
	n = readlink(path, text, sizeof(text) - 1);
	if (n > 0) {
		text[n] = '\0';
		if (symlinkat(text, root_fd, name) < 0)
			return err_sys(e, errno, "create link %s", path);
		return 0;
	}
	if (n < 0 && errno == ENOENT)
		return 0;
	if (mount_open_tree(AT_FDCWD, path, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	if (mkdirat(root_fd, name, 0755) < 0)
		return err_sys(e, errno, "create %s", path);
	return mount_attach_own(tree_fd, root_fd, name, e);
}

static int make_base(int root_fd, const struct rootfs_options *o, struct err *e)
{
	if (make_skeleton(root_fd, o->policy, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(program_dir); i++)
		if (bind_programs(root_fd, program_dir[i], e) < 0)
			return -1;
	if (hostetc_fill(root_fd, o->policy, o->resolv_conf, e) < 0)
		return -1;
	if (mount_restrict(root_fd, MOUNT_READ_ONLY | MOUNT_RECURSIVE, e) < 0)
		return -1;
	return mount_make_writable(root_fd, e);
}

/* Makes root_fd/path where it is missing; the directory above it exists. Returns -errno. */
static int make_entry(int root_fd, const char *path, mode_t type)
{
	cleanup_fd int place_fd = mount_open_in_root(root_fd, path, O_PATH);
	cleanup_fd int parent_fd = -1;
	const char *name = path_base_name(path);
	char parent[PATH_MAX];

	if (place_fd >= 0)
		return 0;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	parent_fd = mount_open_in_root(root_fd, parent, O_PATH | O_DIRECTORY);
	if (parent_fd < 0)
		return parent_fd;
	if (type == S_IFDIR)
		return mkdirat(parent_fd, name, 0755) < 0 ? -errno : 0;
	return mknodat(parent_fd, name, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

/* Makes the directories above `target` and the place itself, where they are missing. */
static int make_target(int root_fd, const char *target, mode_t type, struct err *e)
{
	char partial[PATH_MAX];
	size_t len = strlen(target);

	if (len >= sizeof(partial))
		return err_set(e, ERR_INVALID, "target '%s' is too long", target);
	memcpy(partial, target, len + 1);
	for (size_t i = 1; i <= len; i++) {
		int r;

		if (target[i] != '/' && target[i] != '\0')
			continue;
		partial[i] = '\0';
		r = make_entry(root_fd, partial, i < len ? S_IFDIR : type);
		partial[i] = target[i];
		if (r == -EROFS)
			return err_set(e, ERR_INVALID,
				       "'%s' cannot be made: it lies in a read-only directory of "
				       "this machine",
				       target);
		if (r < 0)
			return err_sys(e, -r, "make a place for '%s'", target);
	}
	return 0;
}

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

/* Where the target lies in a directory of the host it must exist: we leave nothing behind. */
static int prepare_target(int root_fd, const struct rootfs_options *o, unsigned index,
			  struct err *e)
{
	const struct rootfs_place *place = &o->places[index];
	const struct rootfs_place *around = place_around(o, index);
	bool is_dir = place->kind == ROOTFS_TMPFS || place->is_dir;
	cleanup_fd int place_fd = -1;

	if (!around || around->kind == ROOTFS_TMPFS)
		return make_target(root_fd, place->target, is_dir ? S_IFDIR : S_IFREG, e);
	place_fd = mount_open_in_root(root_fd, place->target, O_PATH);
	if (place_fd < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "'%s' does not exist in '%s': create it there to mount over it",
			       place->target, around->source);
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

static int keep_writable(int root_fd, const char *path, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(root_fd, path, 0, &tree_fd, e) < 0)
		return -1;
	return mount_attach_at(tree_fd, root_fd, path, e);
}

/* Binds of the root's own directories, so that one size limit covers all. */
static int keep_places_writable(int root_fd, const struct policy *p, struct err *e)
{
	for (const char *const *path = rootfs_always_writable; *path; path++)
		if (keep_writable(root_fd, *path + 1, e) < 0)
			return -1;
	return p->home ? 0 : keep_writable(root_fd, p->home_dir + 1, e);
}

static int fill_root(int root_fd, const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	if (make_base(root_fd, o, e) < 0)
		return err_wrap(e, "build the root");
	if (p->is_read_only && keep_places_writable(root_fd, p, e) < 0)
		return -1;
	if (mask_begin(root_fd, e) < 0)
		return -1;
	if (devices_fill(root_fd, e) < 0 || procfs_mount(root_fd, e) < 0)
		return -1;
	if (show_places(root_fd, o, e) < 0)
		return -1;
	if (mask_end(root_fd, e) < 0)
		return -1;
	return p->is_read_only ? mount_restrict(root_fd, MOUNT_READ_ONLY, e) : 0;
}

int rootfs_enter(const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int root_fd = -1;
	cleanup_fd int old_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old_root_fd < 0)
		return err_sys(e, errno, "open /");
	if (mount_new_tmpfs(o->policy->disk_bytes, "755", &root_fd, e) < 0)
		return -1;
	if (mount_attach(root_fd, old_root_fd, "/", e) < 0)
		return -1;
	if (fill_root(root_fd, o, e) < 0)
		return -1;
	return mount_pivot(root_fd, e);
}
