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
 *   4. what the policy shows, /dev, /proc, masks
 *   5. read-only root: writable places as binds of the same tmpfs, so one size limit covers all
 *   6. pivot
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
	{ "dev", 0755 },     { "dev/shm", 01777 }, { "etc", 0755 },	  { "home", 0755 },
	{ "home/user", 0755 }, { "proc", 0555 },	   { "root", 0700 },	  { "run", 0755 },
	{ "tmp", 01777 },    { "var", 0755 },	   { "var/cache", 0755 }, { "var/lib", 0755 },
	{ "var/log", 0755 }, { "var/tmp", 01777 },
};

/* Writable also where the root is not. */
static const char *const always_writable[] = { "tmp", "var/tmp", "dev/shm", "run" };

static int make_skeleton(int root_fd, const struct policy *p, struct err *e)
{
	mode_t old = umask(0);
	size_t i;

	for (i = 0; i < COUNT_OF(skeleton); i++)
		if (mkdirat(root_fd, skeleton[i].path, skeleton[i].mode) < 0)
			break;
	(void)umask(old);
	if (i < COUNT_OF(skeleton))
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

static int make_base(int root_fd, const struct policy *p, struct err *e)
{
	if (make_skeleton(root_fd, p, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(program_dir); i++)
		if (bind_programs(root_fd, program_dir[i], e) < 0)
			return -1;
	if (hostetc_fill(root_fd, p, e) < 0)
		return -1;
	if (mount_restrict(root_fd, MOUNT_READ_ONLY | MOUNT_RECURSIVE, e) < 0)
		return -1;
	return mount_make_writable(root_fd, e);
}

/* Makes root_fd/path where it is missing; the directory above it exists. Returns -errno. */
static int make_entry(int root_fd, const char *path, bool is_dir)
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
	if (!is_dir)
		return file_create_at(parent_fd, name, 0644, "");
	return mkdirat(parent_fd, name, 0755) < 0 ? -errno : 0;
}

/* Makes the directories above `target` and the place itself, where they are missing. */
static int make_target(int root_fd, const char *target, bool is_dir, struct err *e)
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
		r = make_entry(root_fd, partial, is_dir || i < len);
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

static int show(int root_fd, const struct rootfs_mount *m, struct err *e)
{
	cleanup_fd int opened_fd = -1;
	int tree_fd = m->tree_fd;

	if (tree_fd < 0) {
		if (mount_open_tree(AT_FDCWD, m->source, MOUNT_RECURSIVE, &opened_fd, e) < 0)
			return -1;
		tree_fd = opened_fd;
	}
	if (mount_restrict(tree_fd, MOUNT_RECURSIVE | (m->is_read_only ? MOUNT_READ_ONLY : 0), e) <
	    0)
		return err_wrap(e, "'%s'", m->source);
	if (make_target(root_fd, m->target, m->is_dir, e) < 0)
		return -1;
	return mount_attach_at(tree_fd, root_fd, m->target, e);
}

static int mount_tmpfs_places(int root_fd, const struct policy *p, struct err *e)
{
	for (unsigned i = 0; i < p->tmpfs_count; i++) {
		const struct policy_tmpfs *t = &p->tmpfs[i];
		cleanup_fd int tmpfs_fd = -1;

		if (mount_new_tmpfs(t->size_bytes ? t->size_bytes : p->disk_bytes, "1777",
				    &tmpfs_fd, e) < 0)
			return -1;
		if (make_target(root_fd, t->target, true, e) < 0)
			return -1;
		if (mount_attach_at(tmpfs_fd, root_fd, t->target, e) < 0)
			return -1;
	}
	return 0;
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

/* What would run later on the host is read-only inside; a path that is not there is fine. */
static int protect_workspace(int root_fd, const char *workspace, struct err *e)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < credential_protected_count; i++) {
		cleanup_fd int place_fd = -1;
		cleanup_fd int tree_fd = -1;

		if (snprintf(path, sizeof(path), "%s/%s", workspace, credential_protected[i]) >=
		    (int)sizeof(path))
			return err_set(e, ERR_INVALID, "workspace '%s' is too long a path",
				       workspace);
		place_fd = mount_open_in_root(root_fd, path, O_PATH);
		if (place_fd < 0)
			continue;
		if (mount_open_tree(place_fd, "", MOUNT_RECURSIVE, &tree_fd, e) < 0)
			return err_wrap(e, "protect '%s'", path);
		if (mount_restrict(tree_fd, MOUNT_RECURSIVE | MOUNT_READ_ONLY, e) < 0)
			return -1;
		if (mount_attach(tree_fd, place_fd, path, e) < 0)
			return -1;
	}
	return 0;
}

static int show_host_files(int root_fd, const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	for (unsigned i = 0; i < o->mount_count; i++)
		if (show(root_fd, &o->mounts[i], e) < 0)
			return -1;
	if (mount_tmpfs_places(root_fd, p, e) < 0)
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

static int make_root_read_only(int root_fd, const struct policy *p, struct err *e)
{
	for (size_t i = 0; i < COUNT_OF(always_writable); i++)
		if (keep_writable(root_fd, always_writable[i], e) < 0)
			return -1;
	if (!p->home && keep_writable(root_fd, p->home_dir + 1, e) < 0)
		return -1;
	return mount_restrict(root_fd, MOUNT_READ_ONLY, e);
}

int rootfs_enter(const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;
	cleanup_fd int root_fd = -1;
	cleanup_fd int old_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old_root_fd < 0)
		return err_sys(e, errno, "open /");
	if (mount_new_tmpfs(p->disk_bytes, "755", &root_fd, e) < 0)
		return -1;
	if (mount_attach(root_fd, old_root_fd, "/", e) < 0)
		return -1;
	if (make_base(root_fd, p, e) < 0)
		return err_wrap(e, "build the root");
	if (mask_begin(root_fd, e) < 0)
		return -1;
	if (devices_fill(root_fd, e) < 0 || procfs_mount(root_fd, e) < 0)
		return -1;
	if (show_host_files(root_fd, o, e) < 0)
		return -1;
	if (mask_end(root_fd, e) < 0)
		return -1;
	if (p->is_read_only && make_root_read_only(root_fd, p, e) < 0)
		return err_wrap(e, "make the root read-only");
	return mount_pivot(root_fd, e);
}
