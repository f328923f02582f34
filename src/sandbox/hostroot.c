/* hostroot - the base of the root for the host image; see hostroot.h. */
#include "sandbox/hostroot.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "policy/policy.h"
#include "sandbox/hostetc.h"
#include "host/mount.h"
#include "sandbox/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Programs of the host. On a merged /usr most of these are links, which are copied as links. */
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

static int make_skeleton(int root_fd, const struct policy *p, struct err *e)
{
	(void)umask(0); /* the command sets its own umask before it starts */
	for (size_t i = 0; i < COUNT_OF(skeleton); i++)
		if (mkdirat(root_fd, skeleton[i].path, skeleton[i].mode) < 0)
			return err_sys(e, errno, "create /%s", skeleton[i].path);
	if (symlinkat("/run", root_fd, "var/run") < 0)
		return err_sys(e, errno, "create /var/run");
	/* with a single id both are the same user, and the call changes nothing */
	if (p->uid != 0 && fchownat(root_fd, "home/user", p->uid, p->gid, 0) < 0)
		return err_sys(e, errno, "give /home/user to its user");
	return 0;
}

/* Copies a link, or creates an empty directory as a bind target; *ret_is_dir says which. */
static int make_program_place(int root_fd, const char *name, bool *ret_is_dir, struct err *e)
{
	char path[16], text[PATH_MAX];
	ssize_t n;

	*ret_is_dir = false;
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
	if (n < 0 && errno != EINVAL) /* EINVAL: not a symbolic link */
		return err_sys(e, errno, "look at %s", path);
	if (mkdirat(root_fd, name, 0755) < 0)
		return err_sys(e, errno, "create %s", path);
	*ret_is_dir = true;
	return 0;
}

static int open_programs(const char *name, int *ret_fd, struct err *e)
{
	char path[16];

	(void)snprintf(path, sizeof(path), "/%s", name);
	return mount_open_tree(AT_FDCWD, path, MOUNT_RECURSIVE, ret_fd, e);
}

static int close_binds(int root_fd, struct err *e)
{
	unsigned flags = wall_stands(WALL_PROGRAMS_READ_ONLY) ? MOUNT_READ_ONLY : 0;

	if (mount_restrict(root_fd, flags | MOUNT_RECURSIVE, e) < 0)
		return -1;
	return mount_make_writable(root_fd, e);
}

int hostroot_fill(int root_fd, const struct rootfs_options *o, struct err *e)
{
	if (make_skeleton(root_fd, o->policy, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(program_dir); i++) {
		cleanup_fd int tree_fd = -1;
		bool is_dir;

		if (make_program_place(root_fd, program_dir[i], &is_dir, e) < 0)
			return -1;
		if (is_dir && (open_programs(program_dir[i], &tree_fd, e) < 0 ||
			       mount_attach_own(tree_fd, root_fd, program_dir[i], e) < 0))
			return -1;
	}
	if (close_binds(root_fd, e) < 0)
		return -1;
	return hostetc_mount(root_fd, o, e);
}

int hostroot_make(int base_fd, const struct rootfs_options *o, struct err *e)
{
	bool ignored;

	if (make_skeleton(base_fd, o->policy, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(program_dir); i++)
		if (make_program_place(base_fd, program_dir[i], &ignored, e) < 0)
			return -1;
	return hostetc_write(base_fd, o, e);
}

/* Binds /name over the directory that hostroot_make() created. */
static int bind_over(int root_fd, const char *name, struct err *e)
{
	cleanup_fd int tree_fd = -1, place_fd = -1;
	struct stat st;

	if (fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at /%s", name);
	if (!S_ISDIR(st.st_mode))
		return 0; /* a link on the host: copied already */
	place_fd = mount_open_plain(root_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (place_fd < 0)
		return err_sys(e, -place_fd,
			       "the sandbox has replaced its '/%s', where this machine's programs "
			       "belong",
			       name);
	if (open_programs(name, &tree_fd, e) < 0)
		return -1;
	return mount_attach(tree_fd, place_fd, name, e);
}

int hostroot_bind(int root_fd, int staging_fd, const struct rootfs_options *o, struct err *e)
{
	if (chdir("/") < 0)
		return err_sys(e, errno, "enter /");
	for (size_t i = 0; i < COUNT_OF(program_dir); i++)
		if (bind_over(root_fd, program_dir[i], e) < 0)
			return -1;
	if (hostetc_mount_side(root_fd, staging_fd, o, e) < 0)
		return -1;
	return close_binds(root_fd, e);
}
