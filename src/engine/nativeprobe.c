/* nativeprobe - which of the native walls this host can build; see nativeprobe.h. */
#include "engine/nativeprobe.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/helper.h"
#include "image/tool.h"
#include "net/gate.h"
#include "net/netns.h"
#include "policy/policy.h"
#include "host/cgroup.h"
#include "host/idmap.h"
#include "sandbox/imageroot.h"
#include "sandbox/landlock.h"
#include "host/loopback.h"
#include "host/mount.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROFILE "/etc/apparmor.d/agentkernel"
#define PROFILE_MAX_BYTES (64u << 10)

typedef void check_fn(struct doctor_finding *f);

/* Runs `act` in a child with new namespaces; 0, or the errno of the failure. */
static int try_in_namespaces(int flags, int (*act)(struct err *e))
{
	long pid = syscall(SYS_clone, (unsigned long)flags | SIGCHLD, NULL, NULL, NULL, NULL);
	int status = 0;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		struct err e = { 0 };

		_exit(act(&e) < 0 ? (e.sys ? e.sys : EIO) : 0);
	}
	(void)waitpid((pid_t)pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int act_nothing(struct err *e)
{
	(void)e;
	return 0;
}

static int act_mount(struct err *e)
{
	cleanup_fd int fd = -1;

	return mount_new_tmpfs(1u << 20, "755", &fd, e);
}

static int act_proc(struct err *e)
{
	cleanup_fd int fd = -1;

	return mount_new("proc", NULL, MOUNT_READ_ONLY, &fd, e);
}

static bool setting_is(const char *path, const char *value)
{
	char text[64];

	return file_read_line(AT_FDCWD, path, text, sizeof(text)) == 0 && strcmp(text, value) == 0;
}

/* `make install` writes the profile there, for the installed path of this program. */
static bool has_profile(void)
{
	cleanup_free char *text = NULL, *quoted = NULL;
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	size_t len = 0;

	if (n < 0 || file_read_at(AT_FDCWD, PROFILE, PROFILE_MAX_BYTES, &text, &len) < 0)
		return false;
	own[n] = '\0';
	quoted = mem_format("\"%s\"", own);
	return strstr(text, quoted) != NULL;
}

/*
 * AppArmor denies user namespaces to programs without a profile. Our profile allows them only to
 * this program; the sysctl would allow them to every program on the machine.
 */
static const char *apparmor_fix(void)
{
	if (has_profile())
		return "sudo apparmor_parser -r " PROFILE;
	return "sudo make install, and use what that installs: it has an AppArmor "
	       "profile, " PROFILE;
}

/* The known settings that disable user namespaces, and how to enable them again. */
static const char *userns_fix(void)
{
	if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
	if (setting_is("/proc/sys/user/max_user_namespaces", "0"))
		return "sudo sysctl -w user.max_user_namespaces=10000";
	if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		return apparmor_fix();
	return "run outside the container or sandbox that forbids it";
}

static void check_user_namespace(struct doctor_finding *f)
{
	int error = try_in_namespaces(CLONE_NEWUSER, act_nothing);

	if (error == 0)
		doctor_set(f, DOCTOR_OK, "root inside has no power outside", "");
	else
		doctor_set(f, DOCTOR_MISSING, strerror(error), userns_fix());
}

static void check_mounts(struct doctor_finding *f)
{
	int error = try_in_namespaces(CLONE_NEWUSER | CLONE_NEWNS, act_mount);

	if (error == 0)
		doctor_set(f, DOCTOR_OK, "own root file system", "");
	else
		doctor_set(f, DOCTOR_MISSING, strerror(error), userns_fix());
}

static void check_processes(struct doctor_finding *f)
{
	int error = try_in_namespaces(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, act_proc);

	if (error == 0)
		doctor_set(f, DOCTOR_OK, "own processes, own /proc", "");
	else if (error == EPERM)
		doctor_set(f, DOCTOR_MISSING,
			   "this machine's /proc is partly masked, as in a container",
			   "give the container an unmasked /proc (docker: --security-opt "
			   "systempaths=unconfined)");
	else
		doctor_set(f, DOCTOR_MISSING, strerror(error), userns_fix());
}

static void check_network(struct doctor_finding *f)
{
	int error = try_in_namespaces(CLONE_NEWUSER | CLONE_NEWNET, loopback_up);

	if (error == 0)
		doctor_set(f, DOCTOR_OK, "own network namespace: loopback and nothing else", "");
	else
		doctor_set(f, DOCTOR_MISSING, strerror(error), userns_fix());
}

static int act_gate(struct err *e)
{
	int sockets[NETNS_SOCKET_COUNT];
	unsigned count;

	return netns_build(sockets, &count, e);
}

/* Not a protection: without it sandboxes work, but have no network. */
static void check_gate(struct doctor_finding *f)
{
	int error = try_in_namespaces(CLONE_NEWUSER | CLONE_NEWNET, act_gate);
	cleanup_free char *program = NULL;
	struct err e = { 0 };

	if (error != 0)
		doctor_set(f, DOCTOR_WEAKER,
			   "nftables with TPROXY is missing: no sandbox can have a network",
			   "sudo modprobe -a nf_tables nft_tproxy nft_reject_inet (or use "
			   "--no-network)");
	else if (helper_find(GATE_PROGRAM, &program, &e) < 0)
		doctor_set(f, DOCTOR_WEAKER, e.msg, "sudo make install");
	else
		doctor_set(f, DOCTOR_OK, "every connection goes through the gate", "");
}

/* 0, or the errno of the failure. Uses the store's user namespace, whose root can own files. */
static int try_overlay(void)
{
	cleanup_fd int userns_fd = -1;
	struct err e = { 0 };
	int status = 0;
	pid_t pid;

	if (idmap_open_store_ns(&userns_fd, &e) < 0)
		return e.sys ? e.sys : EPERM;
	pid = fork();
	if (pid == 0) {
		if (setns(userns_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0)
			_exit(errno);
		_exit(imageroot_try(&e) < 0 ? (e.sys ? e.sys : EINVAL) : 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/* Not a protection: without it sandboxes work, but only with this machine's programs. */
static void check_images(struct doctor_finding *f)
{
	cleanup_free char *program = NULL;
	struct err e = { 0 };
	int error = try_overlay();

	if (error == EOPNOTSUPP)
		doctor_set(f, DOCTOR_WEAKER,
			   "tmpfs has no user attributes: a removed directory of an image cannot "
			   "be made "
			   "again",
			   "use kernel 6.6 or later");
	else if (error != 0)
		doctor_set(f, DOCTOR_WEAKER, "overlay cannot be mounted in a user namespace",
			   "use kernel 5.19 or later (or --image host)");
	else if (helper_find(TOOL_PROGRAM, &program, &e) < 0)
		doctor_set(f, DOCTOR_WEAKER, e.msg, "sudo make install");
	else
		doctor_set(f, DOCTOR_OK, "layers are shared, what is written is private", "");
}

static void check_limits(struct doctor_finding *f)
{
	const struct policy wanted = { .memory_bytes = 1u << 30,
				       .pids_count = 100,
				       .cpus_milli = 1000 };
	const char *why = NULL;
	struct cgroup c;
	struct err e = { 0 };

	if (cgroup_plan(&wanted, 0, &c, &why, &e) < 0 ||
	    (c.kind != CGROUP_NONE && cgroup_make(&c, &wanted, &e) < 0)) {
		doctor_set(f, DOCTOR_MISSING, e.msg, "");
		return;
	}
	if (c.kind == CGROUP_NONE)
		doctor_set(f, DOCTOR_WEAKER, why,
			   "systemd-run --user --scope -p Delegate=yes agentkernel ... (or call as "
			   "root)");
	else
		doctor_set(f, DOCTOR_OK, c.kind == CGROUP_V2 ? "cgroup v2" : "cgroup v1", "");
	cgroup_remove(&c);
}

static void check_landlock(struct doctor_finding *f)
{
	int abi = landlock_abi();
	char detail[DOCTOR_TEXT_MAX_BYTES];

	if (abi == 0) {
		doctor_set(
			f, DOCTOR_MISSING, "this kernel has it not, or not switched on",
			"boot with lsm=landlock,... or add --accept-missing landlock to each run");
		return;
	}
	(void)snprintf(detail, sizeof(detail), "ABI %d", abi);
	if (abi < 6)
		doctor_set(f, DOCTOR_WEAKER, detail,
			   "kernel 6.12 adds scopes for signals and sockets");
	else
		doctor_set(f, DOCTOR_OK, detail, "");
}

static void check_seccomp(struct doctor_finding *f)
{
	unsigned action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		doctor_set(f, DOCTOR_OK, "system calls are filtered", "");
	else
		doctor_set(f, DOCTOR_MISSING, strerror(errno),
			   "use a kernel with CONFIG_SECCOMP_FILTER");
}

/* Enough for this machine's programs; in an image, one user then owns everything. */
static void explain_one_id(struct doctor_finding *f)
{
	const char *why = "";
	struct subid ignored;

	(void)subid_find(&ignored, &why);
	doctor_set(f, DOCTOR_WEAKER, "",
		   "sudo apt-get install uidmap; sudo usermod --add-subuids "
		   "100000-165535 --add-subgids 100000-165535 $USER");
	(void)snprintf(f->detail, sizeof(f->detail), "one id inside, so images have one owner: %s",
		       why);
}

static void check_ids(struct doctor_finding *f)
{
	CLEANUP(idmap_done) struct idmap map = { .lock_fd = -1 };
	struct err e = { 0 };

	if (idmap_init(&map, 0, 0, IDMAP_WANTS_MANY, &e) < 0)
		doctor_set(f, DOCTOR_MISSING, e.msg, "make /run writable for root");
	else if (map.kind == IDMAP_PRIVATE)
		doctor_set(f, DOCTOR_OK, "a private range of ids for each sandbox", "");
	else if (map.kind == IDMAP_SUBIDS)
		doctor_set(
			f, DOCTOR_OK,
			"your own; for images and named sandboxes also your range in /etc/subuid",
			"");
	else
		explain_one_id(f);
}

size_t nativeprobe_examine(struct doctor_finding *ret, size_t max)
{
	static const struct {
		const char *wall;
		check_fn *check;
	} checks[] = {
		{ "user namespace", check_user_namespace },
		{ "ids", check_ids },
		{ "mount namespace", check_mounts },
		{ "pid namespace and /proc", check_processes },
		{ "network namespace", check_network },
		{ "network", check_gate },
		{ "images", check_images },
		{ "limits", check_limits },
		{ "landlock", check_landlock },
		{ "seccomp", check_seccomp },
	};

	for (size_t i = 0; i < COUNT_OF(checks) && i < max; i++) {
		ret[i] = (struct doctor_finding){ .wall = checks[i].wall };
		checks[i].check(&ret[i]);
	}
	return COUNT_OF(checks) < max ? COUNT_OF(checks) : max;
}
