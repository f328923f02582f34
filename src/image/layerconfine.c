/* layerconfine - confines the process that unpacks a layer; see layerconfine.h. */
#include "image/layerconfine.h"

#include "base/cleanup.h"
#include "image/layer.h"

#include "layer_bpf.h" /* generated: layer_bpf[0] */

#include <errno.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in some distributions' headers. */
#define FS_REFER (1ull << 13)
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL_DEV (1ull << 15)
#define NET_TCP (3ull << 0)     /* bind and connect */
#define SCOPE_ALL (3ull << 0)   /* abstract unix sockets and signals */
#define FS_FIRST (FS_REFER - 1) /* all rights of the first version */

/* Replacing a directory opens its subdirectories, level by level. */
#define FILES_MAX (LAYER_DEPTH_MAX + 64)

struct ruleset {
	uint64_t handled_fs;
	uint64_t handled_net;
	uint64_t scoped;
};

/*
 * The first version of Landlock refuses every hard link between two directories and cannot allow
 * it, so it is not usable here.
 */
static struct ruleset ruleset_for(long abi)
{
	struct ruleset set = { .handled_fs = FS_FIRST | FS_REFER };

	if (abi >= 3)
		set.handled_fs |= FS_TRUNCATE;
	if (abi >= 4)
		set.handled_net = NET_TCP;
	if (abi >= 5)
		set.handled_fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		set.scoped = SCOPE_ALL;
	return set;
}

static int restrict_files(int dir_fd, struct err *e)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset set = ruleset_for(abi);
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = set.handled_fs &
				  ~(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_SOCK |
				    LANDLOCK_ACCESS_FS_MAKE_BLOCK | FS_IOCTL_DEV),
		.parent_fd = dir_fd,
	};
	cleanup_fd int ruleset_fd = -1;

	if (abi < 2)
		return 0;
	ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof(set), 0);
	if (ruleset_fd < 0)
		return err_sys(e, errno, "create the Landlock rules for unpacking");
	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return err_sys(e, errno, "take on the Landlock rules for unpacking");
	return 0;
}

static int restrict_calls(struct err *e)
{
	const struct sock_fprog program = {
		.len = layer_bpf[0].count,
		.filter = (struct sock_filter *)(uintptr_t)layer_bpf[0].code,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_sys(e, errno, "install the system call filter for unpacking");
	return 0;
}

static int set_limits(struct err *e)
{
	const struct rlimit none = { 0 };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(e, errno, "read the limit of open files");
	if (files.rlim_max > FILES_MAX)
		files.rlim_max = FILES_MAX;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(e, errno, "set the limits for unpacking");
	return 0;
}

/*
 * Landlock does not restrict modes, owners, times and attributes, and as root of the store's
 * namespace a root caller's worker may set them on every file of this machine: with the directory
 * as its root it has no path to them. No directory above it is open. A worker that may not chroot
 * (EPERM) can only change the caller's own files.
 */
static int restrict_names(int dir_fd, struct err *e)
{
	if (fchdir(dir_fd) < 0)
		return err_sys(e, errno, "enter the directory to unpack into");
	if (chroot(".") < 0 && errno != EPERM)
		return err_sys(e, errno, "make it the root");
	return 0;
}

int layerconfine_self(int dir_fd, struct err *e)
{
	if (set_limits(e) < 0 || restrict_names(dir_fd, e) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "confine the process that unpacks");
	/* the filter last, because it forbids calls that the others need */
	if (restrict_files(dir_fd, e) < 0)
		return -1;
	return restrict_calls(e);
}
