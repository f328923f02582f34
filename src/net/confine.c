/* confine - restricts the gate process itself; see confine.h. */
#include "net/confine.h"

#include "base/cleanup.h"

#include "confine_bpf.h" /* generated: confine_bpf[0] */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Missing in some distributions' headers. */
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)
#define NET_BIND_TCP (1ull << 0)

#define MEMORY_MAX_BYTES (256ull << 20) /* far above all limits of its own */

struct ruleset {
	uint64_t handled_fs;
	uint64_t handled_net;
	uint64_t scoped;
};

/* The gate resolves names while it runs, so the resolver's files must stay readable. */
static void allow_reading(int ruleset_fd, const char *directory)
{
	cleanup_fd int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = fd,
	};

	if (fd >= 0)
		(void)syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			      0);
}

/* resolv.conf is often a link into /run. */
static void allow_resolver_files(int ruleset_fd)
{
	char path[PATH_MAX];
	char *slash;

	allow_reading(ruleset_fd, "/etc");
	if (!realpath("/etc/resolv.conf", path))
		return;
	slash = strrchr(path, '/');
	if (!slash || slash == path)
		return;
	*slash = '\0';
	allow_reading(ruleset_fd, path);
}

static int restrict_files(struct err *e)
{
	struct ruleset set = { .handled_fs = (1ull << 13) - 1 };
	cleanup_fd int ruleset_fd = -1;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi <= 0)
		return 0;
	if (abi >= 4)
		set.handled_net = NET_BIND_TCP;
	if (abi >= 6)
		set.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof(set), 0);
	if (ruleset_fd < 0)
		return err_sys(e, errno, "create the gate's Landlock rules");
	allow_resolver_files(ruleset_fd);
	if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return err_sys(e, errno, "take on the gate's Landlock rules");
	return 0;
}

static int restrict_calls(struct err *e)
{
	const struct sock_fprog program = {
		.len = confine_bpf[0].count,
		.filter = (struct sock_filter *)(uintptr_t)confine_bpf[0].code,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_sys(e, errno, "install the gate's system call filter");
	return 0;
}

/* A core file would contain the sandbox's traffic. A sanitizer's shadow memory is unbounded. */
void confine_set_limits(void)
{
	struct rlimit files, none = { 0 };
	const struct rlimit memory __attribute__((unused)) = { MEMORY_MAX_BYTES, MEMORY_MAX_BYTES };

	(void)setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__
	(void)setrlimit(RLIMIT_DATA, &memory);
#endif
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int confine_self(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "confine the gate");
	if (restrict_files(e) < 0)
		return -1;
	return restrict_calls(e);
}
