/* nsaccount - bounds the kernel resources charged to a sandbox's users; see nsaccount.h. */
#include "sandbox/nsaccount.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INOTIFY_INSTANCES_MAX "64"
#define INOTIFY_WATCHES_MAX UINT64_C(65536)
#define INOTIFY_WATCHES_PART 4u   /* a sandbox gets this fraction of the account's watches */
#define PENDING_SIGNALS_MAX 4096u /* of all users of a sandbox together */
#define KEEP_ID ((uid_t)-1)

/* ---- limits per user ---- */

static int set_share(const char *path, const char *text, struct err *e)
{
	int r = file_write_at(AT_FDCWD, path, text);

	return r < 0 && r != -ENOENT ? err_sys(e, -r, "bound the sandbox's share of '%s'", path)
				     : 0;
}

/* The number of watches per account depends on the host's memory: 8192 to a million. */
static int format_watches(char *out, size_t size, struct err *e)
{
	char text[32];
	uint64_t account = 0, share;
	int r = file_read_line(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", text,
			       sizeof(text));

	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "read how many inotify watches there may be");
	if (r < 0 || parse_count(text, 0, UINT32_MAX, &account, e) < 0)
		account = INOTIFY_WATCHES_MAX * INOTIFY_WATCHES_PART;
	share = account / INOTIFY_WATCHES_PART;
	(void)snprintf(out, size, "%" PRIu64,
		       share < INOTIFY_WATCHES_MAX ? share : INOTIFY_WATCHES_MAX);
	return 0;
}

/* If the kernel lacks a setting, it does not count that resource either. */
int nsaccount_bound_users(struct err *e)
{
	char watches[24];

	/* without our own user namespace this would change the host's setting */
	if (!wall_stands(WALL_INOTIFY_SHARE) || !wall_stands(WALL_USER_NAMESPACE))
		return 0;
	if (format_watches(watches, sizeof(watches), e) < 0 ||
	    set_share("/proc/sys/user/max_inotify_instances", INOTIFY_INSTANCES_MAX, e) < 0)
		return -1;
	return set_share("/proc/sys/user/max_inotify_watches", watches, e);
}

/* ---- clone3 ---- */

static int explain_clone(int error, struct err *e)
{
	if (error == EPERM || error == EACCES)
		return err_set(
			e, ERR_UNSUPPORTED,
			"this user may not create user namespaces here ('agentkernel doctor' "
			"shows what to change)");
	if (error == ENOSYS)
		return err_set(e, ERR_UNSUPPORTED,
			       "clone3 is not allowed here: this already is a sandbox or a "
			       "container, and sandboxes do not nest in it");
	if (error == ENOSPC)
		return err_set(e, ERR_LIMIT,
			       "the limit on user namespaces is reached (see "
			       "/proc/sys/user/max_user_namespaces)");
	return err_sys(e, error, "create the sandbox's namespaces");
}

/* The new namespace's users together get the current RLIMIT_SIGPENDING of this process. */
static void bound_pending(struct rlimit *ret_old)
{
	struct rlimit bound;

	if (getrlimit(RLIMIT_SIGPENDING, ret_old) < 0) {
		*ret_old = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
		return;
	}
	bound = *ret_old;
	if (bound.rlim_cur > PENDING_SIGNALS_MAX)
		bound.rlim_cur = PENDING_SIGNALS_MAX;
	(void)setrlimit(RLIMIT_SIGPENDING, &bound);
}

/* Returns like clone3: a pid, 0 in the child, or -1 with errno. */
static pid_t clone_bounded(const struct clone_args *args)
{
	struct rlimit pending;
	pid_t pid;
	int error;

	bound_pending(&pending);
	pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));
	error = errno;
	if (pid != 0)
		(void)setrlimit(RLIMIT_SIGPENDING, &pending);
	errno = error;
	return pid;
}

/* ---- a root caller: create the namespace with the sandbox's own id ---- */

/* Attributes that the kernel resets when the effective id changes. */
struct reset_by_kernel {
	int dumpable, death_signal;
};

static int set_effective_id(uint32_t uid, const struct reset_by_kernel *kept)
{
	/* by system call number: the libc version signals other threads, and there are none */
	if (syscall(SYS_setresuid, KEEP_ID, uid, KEEP_ID) < 0)
		return -1;
	if (kept->dumpable == 1) /* the child inherits this, and opens its own files in /proc */
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (kept->death_signal)
		(void)prctl(PR_SET_PDEATHSIG, kept->death_signal, 0, 0, 0);
	return 0;
}

/* Changing the effective id from 0 clears the effective set; the permitted set stays. */
static int raise_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (unsigned half = 0; half < 2; half++)
		data[half].effective = data[half].permitted;
	return (int)syscall(SYS_capset, &header, data);
}

/*
 * clone3 still needs root's capabilities: for CLONE_INTO_CGROUP, and on hosts where only root may
 * create user namespaces.
 */
static pid_t clone_as(uint32_t uid, const struct clone_args *args)
{
	struct reset_by_kernel kept = { .dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) };
	pid_t pid = -1;
	int error;

	(void)prctl(PR_GET_PDEATHSIG, &kept.death_signal, 0, 0, 0);
	if (set_effective_id(uid, &kept) < 0)
		return -1;
	if (raise_capabilities() == 0)
		pid = clone_bounded(args);
	error = errno;
	if (pid != 0 && set_effective_id(0, &kept) < 0) {
		/*
		 * Cannot happen while the real id is 0. The raised capabilities allow the clean-up.
		 */
		error = errno;
		if (pid > 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
		pid = -1;
	}
	errno = error;
	return pid;
}

/* ---- a caller with a range of ids: an intermediate namespace ---- */

struct middle_report {
	pid_t pid;
	struct err error; /* .code 0: no error */
};

/* Same ids as the namespace around it; each line must fit within one line of the outer map. */
static int write_same_map(pid_t pid, const char *file, const struct subid_range *range,
			  struct err *e)
{
	uint32_t count =
		range->count < IDMAP_MAPPED_COUNT - 1 ? range->count : IDMAP_MAPPED_COUNT - 1;
	char path[48], text[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)snprintf(text, sizeof(text), "0 0 1\n1 1 %" PRIu32 "\n", count);
	r = file_write_at(AT_FDCWD, path, text);
	return r < 0 ? err_sys(e, -r, "write %s", path) : 0;
}

/* Runs in the middle process. Returns 0 in the child, the child's pid in the middle process. */
static pid_t clone_inner(const struct idmap *m, const struct clone_args *outer_args,
			 int lifeline[2], struct err *e)
{
	struct clone_args args = *outer_args;
	char byte;
	pid_t pid;

	cleanup_closep(&lifeline[1]); /* our copy would hide that the supervisor closed its end */
	if (read(lifeline[0], &byte, 1) != 1)
		return err_set(e, ERR_SYSTEM, "the supervisor ended while the sandbox started");
	if (idmap_become_inside_root(m, e) < 0 || nsaccount_bound_users(e) < 0)
		return -1;
	args.flags |= CLONE_PARENT;
	args.exit_signal = 0; /* with CLONE_PARENT the child gets this process's exit signal */
	pid = clone_bounded(&args);
	if (pid < 0)
		return explain_clone(errno, e);
	if (pid == 0)
		return 0;
	if (write_same_map(pid, "gid_map", &m->subid.gids, e) < 0 ||
	    write_same_map(pid, "uid_map", &m->subid.uids, e) < 0)
		(void)kill(pid, SIGKILL);
	return pid;
}

/* Returns only in the sandbox's first process. */
static void middle_main(const struct idmap *m, const struct clone_args *args, int lifeline[2],
			int report_fd)
{
	struct middle_report report = { 0 };

	report.pid = clone_inner(m, args, lifeline, &report.error);
	if (report.pid == 0) {
		(void)close(report_fd);
		return;
	}
	(void)!write(report_fd, &report, sizeof(report));
	_exit(0);
}

/* Writes the middle process's maps, reads its report and reaps it. */
static int await_middle(const struct idmap *m, pid_t middle, int lifeline_fd, int report_fd,
			pid_t *ret_pid, struct err *e)
{
	struct middle_report report = { .pid = -1 };
	struct err failure = { 0 };
	ssize_t n;

	if (idmap_write_for(m, middle, &failure) < 0)
		(void)kill(middle, SIGKILL);
	else if (write(lifeline_fd, "g", 1) != 1)
		(void)err_sys(&failure, errno, "tell the sandbox to go on");
	do {
		n = read(report_fd, &report, sizeof(report));
	} while (n < 0 && errno == EINTR);
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (failure.code == 0 && n != (ssize_t)sizeof(report))
		(void)err_set(&failure, ERR_SYSTEM, "the sandbox ended while it started");
	if (failure.code == 0 && report.error.code)
		failure = report.error;
	if (failure.code == 0) {
		*ret_pid = report.pid;
		return 0;
	}
	if (n == (ssize_t)sizeof(report) && report.pid > 0) {
		(void)kill(report.pid, SIGKILL);
		(void)waitpid(report.pid, NULL, 0);
	}
	*e = failure;
	return -1;
}

static int clone_nested(const struct idmap *m, const struct clone_args *args, int lifeline[2],
			pid_t *ret_pid, struct err *e)
{
	const struct clone_args outer = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	cleanup_fd int read_fd = -1;
	cleanup_fd int write_fd = -1;
	int ends[2];
	pid_t middle;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe to the sandbox");
	read_fd = ends[0];
	write_fd = ends[1];
	middle = clone_bounded(&outer);
	if (middle < 0)
		return explain_clone(errno, e);
	if (middle == 0) {
		middle_main(m, args, lifeline, write_fd);
		write_fd = -1; /* middle_main() closed it */
		*ret_pid = 0;
		return 0;
	}
	cleanup_closep(&write_fd);
	return await_middle(m, middle, lifeline[1], read_fd, ret_pid, e);
}

/* ---- choosing one of them ---- */

static int clone_one(const struct idmap *m, const struct clone_args *args, int lifeline[2],
		     pid_t *ret_pid, struct err *e)
{
	bool is_private = m->kind == IDMAP_PRIVATE && wall_stands(WALL_USER_NAMESPACE);
	pid_t pid;

	if (m->kind == IDMAP_SUBIDS)
		return clone_nested(m, args, lifeline, ret_pid, e);
	pid = is_private ? clone_as(m->host_uid, args) : clone_bounded(args);
	if (pid < 0)
		return explain_clone(errno, e);
	*ret_pid = pid;
	return 0;
}

int nsaccount_clone(const struct idmap *m, struct clone_args *args, int lifeline[2], pid_t *ret_pid,
		    int *ret_pid_fd, struct err *e)
{
	pid_t pid = -1;
	int pid_fd = -1;

	if (m->kind != IDMAP_SUBIDS) {
		args->flags |= CLONE_PIDFD;
		/* cppcheck-suppress autoVariables ; written by clone3(), before we return */
		args->pidfd = (uint64_t)(uintptr_t)&pid_fd;
	}
	if (clone_one(m, args, lifeline, &pid, e) < 0)
		return -1;
	if (pid > 0 && pid_fd < 0) { /* our unreaped child: the pid cannot have been reused */
		pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pid_fd < 0) {
			(void)err_sys(e, errno, "open the sandbox's first process");
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return -1;
		}
	}
	*ret_pid = pid;
	*ret_pid_fd = pid == 0 ? -1 : pid_fd;
	return 0;
}
