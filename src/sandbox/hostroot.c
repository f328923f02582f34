/* hostroot - the base of the root for the host image; see hostroot.h. */
#include "sandbox/hostroot.h"

#include "base/cleanup.h"
#include "policy/policy.h"
#include "sandbox/hostetc.h"
#include "sandbox/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

int hostroot_fill(int root_fd, const struct policy *p, const char *resolv_conf, struct err *e)
{
	if (make_skeleton(root_fd, p, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(program_dir); i++)
		if (bind_programs(root_fd, program_dir[i], e) < 0)
			return -1;
	if (hostetc_fill(root_fd, p, resolv_conf, e) < 0)
		return -1;
	if (mount_restrict(root_fd, MOUNT_READ_ONLY | MOUNT_RECURSIVE, e) < 0)
		return -1;
	return mount_make_writable(root_fd, e);
}
