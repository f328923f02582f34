/* namespaces - new namespaces, other processes, ids, capabilities, descriptors; see escape.h. */
#include "escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEWTIME 0x80
#define HIGH_HALF 0xdead00000000ul
#define CAPABILITIES_MAX 41
#define PACKAGE_MANAGER_SET 0x404fbull

extern char **environ;

/* ---- new namespaces ---- */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		say_escaped("a user namespace of our own, but %s: %s", path, errno_name(errno));
	(void)close(fd);
}

/* As far as possible: root in a new user namespace, then a mount. */
static void new_user_namespace(void)
{
	char map[64];
	uid_t uid = getuid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		say_denied(errno);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", (unsigned)uid);
	write_text("/proc/self/uid_map", map);
	if (mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
		say_escaped("a user namespace of our own, no mount: %s", errno_name(errno));
	say_escaped("root of a user namespace, with mounts");
}

/* CVE-2021-3493, CVE-2023-0386: overlay in a user namespace. */
static void overlay_in_namespace(void)
{
	struct tally t = { 0 };

	(void)mkdir(scratch("low"), 0755);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0)
		say_escaped("a user namespace, which overlay needs");
	tally_error(&t, errno);
	tally_result(&t, mount("overlay", scratch("low"), "overlay", 0, "lowerdir=/usr:/bin"),
		     "mounting an overlay");
	tally_say(&t);
}

static const unsigned long every_namespace[] = {
	CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWIPC,
	CLONE_NEWUTS,  CLONE_NEWNET, CLONE_NEWCGROUP,
};

static void unshare_each(void)
{
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(every_namespace) / sizeof(every_namespace[0]); i++)
		tally_result(&t, unshare((int)every_namespace[i]), "unshare");
	tally_result(&t, unshare(NEWTIME), "unshare of time");
	tally_say(&t);
}

static void unshare_high_bits(void)
{
	say_result(syscall(SYS_unshare, HIGH_HALF | CLONE_NEWUSER), "unshare with a high half");
}

static long clone_with(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}

static void clone_each(void)
{
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(every_namespace) / sizeof(every_namespace[0]); i++)
		tally_result(&t, clone_with(every_namespace[i]), "clone");
	tally_result(&t, clone_with(HIGH_HALF | CLONE_NEWUSER), "clone with a high half");
	tally_say(&t);
}

static void clone3_namespace(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	say_result(pid, "clone3");
}

static void enter_namespaces(void)
{
	static const char *const names[] = { "/proc/self/ns/net", "/proc/self/ns/mnt",
					     "/proc/self/ns/user", "/proc/1/ns/mnt",
					     "/proc/1/ns/pid" };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd = open(names[i], O_RDONLY);

		tally_result(&t, fd < 0 ? fd : setns(fd, 0), names[i]);
	}
	tally_result(&t, setns((int)syscall(SYS_pidfd_open, 1, 0), CLONE_NEWNS | CLONE_NEWPID),
		     "setns by a pidfd");
	tally_say(&t);
}

static void write_own_maps(void)
{
	struct tally t = { 0 };

	tally_write(&t, "/proc/self/uid_map", "0 0 4294967295\n");
	tally_write(&t, "/proc/self/gid_map", "0 0 4294967295\n");
	tally_write(&t, "/proc/self/setgroups", "allow");
	tally_say(&t);
}

static void see_host_name(void)
{
	struct utsname u;

	if (uname(&u) < 0)
		say_broken("uname: %s", errno_name(errno));
	if (strcmp(u.nodename, canary("host_name")) == 0)
		say_escaped("the host is called %s", u.nodename);
	say_denied_as("another name");
}

/* ---- pid 1 and processes of the host ---- */

static void trace_init(void)
{
	struct tally t = { 0 };

	tally_result(&t, ptrace(PTRACE_SEIZE, victim(), 0, 0), "seizing pid 1");
	tally_result(&t, ptrace(PTRACE_ATTACH, victim(), 0, 0), "tracing pid 1");
	tally_say(&t);
}

static void read_init_memory(void)
{
	char byte[16];
	struct iovec own = { byte, sizeof(byte) };
	struct iovec other = { (void *)0x400000, sizeof(byte) };
	struct tally t = { 0 };

	/* EFAULT: allowed, but nothing is mapped at this address */
	if (process_vm_readv(victim(), &own, 1, &other, 1, 0) >= 0 || errno == EFAULT)
		say_escaped("another's memory can be read");
	tally_error(&t, errno);
	if (process_vm_writev(victim(), &own, 1, &other, 1, 0) >= 0 || errno == EFAULT)
		say_escaped("another's memory can be written");
	tally_error(&t, errno);
	tally_say(&t);
}

static void take_init_descriptors(void)
{
	long pid_fd = syscall(SYS_pidfd_open, victim(), 0);
	struct tally t = { 0 };

	if (pid_fd < 0)
		say_denied(errno);
	for (int fd = 0; fd < 8; fd++)
		tally_result(&t, syscall(SYS_pidfd_getfd, pid_fd, fd, 0), "taking a descriptor");
	tally_result(&t, syscall(SYS_kcmp, getpid(), victim(), 0, 0, 0), "kcmp");
	tally_say(&t);
}

static void move_init_pages(void)
{
	unsigned long nodes = 1;
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_migrate_pages, victim(), 8, &nodes, &nodes), "migrate_pages");
	tally_result(&t, syscall(SYS_move_pages, victim(), 0ul, NULL, NULL, NULL, 0), "move_pages");
	tally_say(&t);
}

/* If signals get through at all, they must not end or stop it. */
static void signal_init(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGSTOP, SIGKILL, SIGSEGV };
	struct tally t = { 0 };

	if (has_canary("outside"))
		say_result(kill(victim(), SIGSTOP) == 0 && kill(victim(), SIGCONT) == 0 ? 0 : -1,
			   "stopping another");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (kill(1, signals[i]) < 0)
			tally_error(&t, errno);
		else
			tally_add(&t, "ignored");
		if (strchr("TtZX", state_of(1)))
			say_escaped("signal %d has stopped pid 1", signals[i]);
	}
	tally_say(&t);
}

/* If SIGUSR2 gets through, pid 1 must not take it for an order from outside. */
static void await_passing(unsigned before)
{
	int most = has_canary("only") ? 500 : 20; /* wait longer if this is the only case */

	for (int i = 0; i < most && passed_on() == before; i++)
		(void)usleep(1000);
	if (passed_on() != before)
		say_escaped("pid 1 took it for a signal from outside");
}

/* pid 1 recognizes orders by the sender's pid 0, which a sender may forge. */
static void forge_signal(void)
{
	siginfo_t info = { .si_signo = SIGUSR2, .si_code = SI_QUEUE };
	unsigned before = passed_on();

	if (has_canary("outside")) /* outside, the target is our parent */
		say_result(syscall(SYS_rt_sigqueueinfo, getppid(), SIGUSR2, &info),
			   "a forged signal");
	if (syscall(SYS_rt_sigqueueinfo, 1, SIGUSR2, &info) < 0)
		say_denied(errno);
	await_passing(before);
	say_denied_as("ignored");
}

/* The kernel signals the owner of a socket when it is readable: also with sender 0. */
static void signal_by_owner(void)
{
	unsigned before = passed_on();
	pid_t owner = has_canary("outside") ? getppid() : 1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		say_broken("socketpair: %s", errno_name(errno));
	if (fcntl(ends[0], F_SETSIG, SIGUSR2) < 0 || fcntl(ends[0], F_SETOWN, owner) < 0 ||
	    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		say_denied(errno);
	if (write(ends[1], "x", 1) != 1)
		say_broken("write: %s", errno_name(errno));
	await_passing(before);
	say_denied_as("ignored");
}

static void signal_host_process(void)
{
	struct tally t = { 0 };

	tally_result(&t, kill((pid_t)canary_number("pid"), SIGTERM),
		     "ending a process of the host");
	tally_say(&t);
}

static void limit_init(void)
{
	const struct rlimit low = { 64, 64 };

	say_result(syscall(SYS_prlimit64, victim(), RLIMIT_NOFILE, &low, NULL), "limiting pid 1");
}

static void slow_init(void)
{
	const struct sched_param none = { 0 };
	const uint32_t attr[14] = { 48, SCHED_IDLE };
	const unsigned long cpus = 1;
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_sched_setscheduler, victim(), SCHED_IDLE, &none),
		     "sched_setscheduler");
	tally_result(&t, syscall(SYS_sched_setattr, victim(), attr, 0), "sched_setattr");
	tally_result(&t, syscall(SYS_sched_setaffinity, victim(), sizeof(cpus), &cpus),
		     "sched_setaffinity");
	tally_say(&t);
}

static void renice_init(void)
{
	struct tally t = { 0 };

	tally_result(&t, setpriority(PRIO_PROCESS, (id_t)victim(), 19), "renicing pid 1");
	tally_result(&t, setpriority(PRIO_PGRP, (id_t)victim(), 19), "renicing its group");
	tally_result(&t, syscall(SYS_ioprio_set, 1, victim(), 3 << 13), "its turn at the disk");
	tally_result(&t, syscall(SYS_ioprio_set, 2, victim(), 3 << 13), "its group's turn");
	if (!has_canary("outside")) { /* outside, root has many processes */
		tally_result(&t, setpriority(PRIO_USER, getuid(), 19), "renicing our user");
		tally_result(&t, syscall(SYS_ioprio_set, 3, getuid(), 3 << 13), "our user's turn");
	}
	tally_say(&t);
}

/* ---- ids and capabilities ---- */

static uint64_t read_caps(int which)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	(void)syscall(SYS_capget, &header, data);
	return which == 0   ? data[0].effective | (uint64_t)data[1].effective << 32
	       : which == 1 ? data[0].permitted | (uint64_t)data[1].permitted << 32
			    : data[0].inheritable | (uint64_t)data[1].inheritable << 32;
}

static uint64_t allowed_caps(void)
{
	return canary_number("caps") ? PACKAGE_MANAGER_SET : 0;
}

static void hold_capabilities(void)
{
	for (int which = 0; which < 3; which++)
		if (read_caps(which) & ~(which == 2 ? 0 : allowed_caps()))
			say_escaped("capabilities %llx", (unsigned long long)read_caps(which));
	say_denied_as("none but the profile's");
}

static void bounding_set(void)
{
	uint64_t bounding = 0, ambient = 0;

	for (unsigned long cap = 0; cap < CAPABILITIES_MAX; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			bounding |= 1ull << cap;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			ambient |= 1ull << cap;
	}
	if (ambient || bounding & ~allowed_caps())
		say_escaped("bounding %llx, ambient %llx", (unsigned long long)bounding,
			    (unsigned long long)ambient);
	say_denied_as("none but the profile's");
}

static void raise_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct all[2] = { { ~0u, ~0u, ~0u }, { 0x1ff, 0x1ff, 0x1ff } };
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_capset, &header, all), "capset of all");
	tally_result(&t, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0),
		     "an ambient capability");
	tally_result(&t, prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), "securebits");
	tally_say(&t);
}

static void gain_by_exec(void)
{
	struct tally t = { 0 };

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		say_escaped("programs may give new privileges");
	tally_result(&t, prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "taking no_new_privs back");
	tally_result(&t, prctl(PR_SET_SECCOMP, 0, 0, 0, 0), "taking the filter back");
	tally_say(&t);
}

/* Runs a set-id program of another user of the sandbox, which we create if allowed. */
static void gain_by_set_id(void)
{
	const char *path = scratch("set-id");
	int from = open(own_path(), O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0755);
	char text[32] = "", copied[1 << 16];
	int ends[2], uid = -1, euid = -1;
	ssize_t n;
	pid_t pid;

	if (from < 0 || to < 0)
		say_broken("no copy: %s", errno_name(errno));
	while ((n = read(from, copied, sizeof(copied))) > 0)
		if (write(to, copied, (size_t)n) != n)
			say_broken("no copy: %s", errno_name(errno));
	(void)close(to);
	if (chown(path, 4321, 4321) < 0 || chmod(path, 06755) < 0)
		say_denied(errno);
	if (pipe(ends) < 0 || (pid = fork()) < 0)
		say_broken("no process");
	if (pid == 0) {
		(void)dup2(ends[1], 1);
		if (setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0)
			(void)execl(path, path, "set-id", NULL);
		_exit(1);
	}
	(void)close(ends[1]);
	if (read(ends[0], text, sizeof(text) - 1) <= 0 || sscanf(text, "%d %d", &uid, &euid) != 2)
		say_broken("the set-id program said nothing");
	(void)unlink(path);
	if (euid != uid)
		say_escaped("user %d became %d", uid, euid);
	say_denied_as("no gain");
}

static void become_others(void)
{
	struct tally t = { 0 };
	gid_t group = 70000;

	tally_result(&t, setresuid(70000, 70000, 70000), "becoming user 70000");
	tally_result(&t, setresgid(70000, 70000, 70000), "becoming group 70000");
	tally_result(&t, setgroups(1, &group), "joining group 70000");
	tally_say(&t);
}

static void become_root(void)
{
	struct tally t = { 0 };

	if (getuid() == 0 && !has_canary("outside"))
		say_denied_as("already root inside");
	tally_result(&t, setresuid(0, 0, 0), "becoming root");
	tally_say(&t);
}

/* ---- descriptors, directory, environment ---- */

/* CVE-2024-21626: a descriptor leaked by the runtime, and ".." from there. */
static void leaked_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		char link[64], path[256] = "";

		if (fd == 200 || fcntl(fd, F_GETFD) < 0) /* 200: RESULT_FD */
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		(void)readlink(link, path, sizeof(path) - 1);
		say_escaped("descriptor %d is open: %.80s", fd, path);
	}
	say_denied_as("three and no more");
}

static void leaked_directory(void)
{
	struct tally t = { 0 };
	char cwd[512], path[640];

	if (!getcwd(cwd, sizeof(cwd)))
		say_broken("no directory: %s", errno_name(errno));
	if (cwd[0] != '/')
		say_escaped("our directory lies outside: %s", cwd);
	for (int fd = 0; fd < 12; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/../../../../../..%s", fd,
			       canary("file"));
		tally_read(&t, path);
	}
	tally_say(&t);
}

static void secret_variables(void)
{
	for (char **entry = environ; *entry; entry++)
		if (has_canary_text(*entry, strlen(*entry)))
			say_escaped("variable %.40s", *entry);
	say_denied_as("clean");
}

static void loader_variables(void)
{
	static const char *const names[] = {
		"LD_PRELOAD=", "LD_AUDIT=",     "LD_LIBRARY_PATH=", "GCONV_PATH=",
		"BASH_ENV=",   "NODE_OPTIONS=", "GIT_SSH_COMMAND=", "SSH_AUTH_SOCK="
	};

	for (char **entry = environ; *entry; entry++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strncmp(*entry, names[i], strlen(names[i])) == 0)
				say_escaped("variable %.40s", *entry);
	say_denied_as("clean");
}

static void inherited_signals(void)
{
	sigset_t blocked;
	struct sigaction old;

	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int number = 1; number < 32; number++) {
		if (sigismember(&blocked, number) == 1)
			say_escaped("signal %d comes blocked", number);
		if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN &&
		    number != SIGPIPE)
			say_escaped("signal %d comes ignored", number);
	}
	if (umask(0) != 022)
		say_escaped("another umask");
	say_denied_as("defined");
}

/* ---- shared objects ---- */

static void system_v(void)
{
	int key = (int)canary_number("ipc_key");
	struct tally t = { 0 };
	int id = shmget(key, 0, 0);

	if (id >= 0) {
		const char *text = shmat(id, NULL, SHM_RDONLY);

		say_escaped("shared memory says: %.20s", text == (void *)-1 ? "?" : text);
	}
	tally_error(&t, errno);
	tally_result(&t, semget(key, 0, 0), "semaphores of the host");
	tally_result(&t, msgget(key, 0), "a message queue of the host");
	tally_say(&t);
}

static void posix_queue(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_mq_open, canary("queue"), O_RDWR, 0, NULL),
		     "a POSIX queue of the host");
	tally_say(&t);
}

const struct escape_case cases_namespaces[] = {
	{ "NS01a", "unshare a user namespace, become root there, mount", "seccomp", "EPERM",
	  new_user_namespace },
	{ "NS01b", "unshare each other namespace", "seccomp", "EPERM", unshare_each },
	{ "NS01c", "unshare with rubbish in the argument's high half", "seccomp", "EPERM",
	  unshare_high_bits },
	{ "NS01d", "overlay in a user namespace (CVE-2021-3493, CVE-2023-0386)", "seccomp", "EPERM",
	  overlay_in_namespace },
	{ "NS02a", "clone with each namespace, also with a high half", "seccomp", "EPERM",
	  clone_each },
	{ "NS02b", "clone3, whose flags lie behind a pointer", "seccomp", "ENOSYS",
	  clone3_namespace },
	{ "NS03", "enter namespaces of our own, of pid 1, by pidfd", "seccomp", "EPERM|EACCES",
	  enter_namespaces },
	{ "NS04a", "trace pid 1", "hidden init, Landlock", "EPERM", trace_init },
	{ "NS04b", "read and write the memory of pid 1", "hidden init, Landlock", "EPERM",
	  read_init_memory },
	{ "NS04c", "take descriptors of pid 1 by pidfd", "seccomp, hidden init", "EPERM",
	  take_init_descriptors },
	{ "NS04d", "move the pages of pid 1", "seccomp, hidden init", "EPERM", move_init_pages },
	{ "NS05a", "end or stop pid 1 by signals", "Landlock scopes, pid namespace",
	  "EPERM|ignored", signal_init },
	{ "NS05b", "send pid 1 a signal that claims to come from outside", "Landlock scopes",
	  "EPERM|ignored", forge_signal },
	{ "NS05c", "have the kernel send it, by F_SETOWN", "Landlock scopes", "EPERM|ignored",
	  signal_by_owner },
	{ "NS05d", "end a process of the host", "pid namespace, Landlock scopes", "ESRCH|EPERM",
	  signal_host_process },
	{ "NS05e", "set limits of pid 1", "seccomp", "EPERM", limit_init },
	{ "NS05f", "slow pid 1 down by its scheduling", "seccomp", "EPERM", slow_init },
	{ "NS05g", "slow pid 1 down by nice and disk priorities", "seccomp", "EPERM", renice_init },
	{ "NS08a", "hold capabilities", "capabilities", "none but the profile's",
	  hold_capabilities },
	{ "NS08b", "hold capabilities for later programs", "bounding set", "none but the profile's",
	  bounding_set },
	{ "NS08c", "raise capabilities and securebits", "capabilities", "EPERM|EINVAL",
	  raise_capabilities },
	{ "NS08d", "take no_new_privs and the filter back", "no_new_privs, seccomp", "EINVAL",
	  gain_by_exec },
	{ "NS08e", "become another user by a set-id program of our own",
	  "set-id refusal, nosuid, no_new_privs", "no gain|EPERM|EINVAL", gain_by_set_id },
	{ "NS10a", "become a user or group that we do not have", "user namespace", "EINVAL|EPERM",
	  become_others },
	{ "NS10b", "become root", "capabilities", "EPERM|EINVAL|already root inside", become_root },
	{ "NS11", "widen our own id maps", "user namespace", "EROFS|EACCES|EPERM", write_own_maps },
	{ "NS13a", "find a descriptor that was forgotten (CVE-2024-21626)", "descriptors closed",
	  "three and no more", leaked_descriptors },
	{ "NS13b", "leave by our directory or a descriptor's .. (CVE-2024-21626)",
	  "descriptors closed, pivot", "ENOENT|ENOTDIR|EACCES", leaked_directory },
	{ "NS15a", "find secrets in the environment", "clean environment", "clean",
	  secret_variables },
	{ "NS15b", "find loaders' and agents' settings in the environment", "clean environment",
	  "clean", loader_variables },
	{ "NS16", "see the host's name", "uts namespace", "another name", see_host_name },
	{ "NS25a", "open the host's System V shared memory, semaphores, queues", "ipc namespace",
	  "ENOENT", system_v },
	{ "NS25b", "open the host's POSIX message queues", "ipc namespace, Landlock files",
	  "ENOENT|EACCES", posix_queue },
	{ "CP11", "profit from signals and umask of the caller", "defined start", "defined",
	  inherited_signals },
	{ 0 },
};
