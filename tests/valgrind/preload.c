/*
 * preload - what a helper needs to run under valgrind; the helper itself is the installed program.
 *
 * Valgrind translates code at run time, so the filters that a helper installs on itself would end
 * it: here filters are not installed, limits not set and roots not changed. And Debian 12's
 * valgrind (3.19) knows neither openat2() nor pidfds and returns ENOSYS: here a process outside
 * valgrind, tests/valgrind/native.c, makes the call with this one's ids, namespaces and
 * descriptors, and returns the result. A program that starts itself again starts its wrapper
 * (tests/valgrind/check), so that the worker is checked as well.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 8

static char wrapper[4096], native[4096];

/* Not for the programs that a helper starts, but for valgrind, which is a script in Debian. */
static __attribute__((constructor)) void take_environment(void)
{
	const char *ours = getenv("VALGRIND_WRAPPER"), *call = getenv("VALGRIND_NATIVE");

	(void)snprintf(wrapper, sizeof(wrapper), "%s", ours ? ours : "");
	(void)snprintf(native, sizeof(native), "%s", call ? call : "");
	if (strncmp(program_invocation_short_name, "agentkernel-", strlen("agentkernel-")) != 0)
		return;
	(void)unsetenv("VALGRIND_WRAPPER");
	(void)unsetenv("VALGRIND_NATIVE");
	(void)unsetenv("LD_PRELOAD");
}

/* Receives the result: a number, or a descriptor. */
static long receive(int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	long result = -EIO;
	struct iovec part = { &result, sizeof(result) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *c;
	int received;

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(result))
		return -EIO;
	c = CMSG_FIRSTHDR(&message);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return result;
	(void)memcpy(&received, CMSG_DATA(c), sizeof(received));
	return received;
}

/* words: native's arguments. kept_fd: a descriptor that it must inherit, or -1. */
static long ask(int kept_fd, char **words)
{
	char *argv[WORDS_MAX + 3] = { native }, number[16];
	sigset_t all, before;
	int pair[2];
	long result;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)snprintf(number, sizeof(number), "%d", pair[1]);
	argv[1] = number;
	for (unsigned i = 0; i < WORDS_MAX && words[i]; i++)
		argv[2 + i] = words[i];
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		(void)fcntl(pair[1], F_SETFD, 0);
		if (kept_fd >= 0)
			(void)fcntl(kept_fd, F_SETFD, 0);
		(void)execv(native, argv);
		_exit(127);
	}
	(void)close(pair[1]);
	result = pid < 0 ? -EAGAIN : receive(pair[0]);
	(void)close(pair[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

static long ask_openat2(const long *a)
{
	const struct open_how *how = (const struct open_how *)a[2];
	char dir[16], flags[32], mode[32], resolve[32];

	(void)snprintf(dir, sizeof(dir), "%d", (int)a[0]);
	(void)snprintf(flags, sizeof(flags), "%llu", (unsigned long long)how->flags);
	(void)snprintf(mode, sizeof(mode), "%llu", (unsigned long long)how->mode);
	(void)snprintf(resolve, sizeof(resolve), "%llu", (unsigned long long)how->resolve);
	return ask((int)a[0],
		   (char *[]){ (char *)"openat2", dir, (char *)a[1], flags, mode, resolve, NULL });
}

static long ask_pidfd(const char *name, const long *a)
{
	char first[16], second[16];

	(void)snprintf(first, sizeof(first), "%d", (int)a[0]);
	(void)snprintf(second, sizeof(second), "%d", (int)a[1]);
	return ask(strcmp(name, "pidfd_open") == 0 ? -1 : (int)a[0],
		   (char *[]){ (char *)name, first, second, NULL });
}

static long answer(long result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list list;
	long a[6];

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_seccomp)
		return 0;
	if (number == SYS_landlock_create_ruleset) /* as on a kernel without it */
		return answer(-ENOSYS);
	if (number == SYS_openat2)
		return answer(ask_openat2(a));
	if (number == SYS_pidfd_open)
		return answer(ask_pidfd("pidfd_open", a));
	if (number == SYS_pidfd_send_signal)
		return answer(ask_pidfd("pidfd_send_signal", a));
	if (!next)
		next = dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Valgrind uses its own memory and descriptors, and refuses other hard limits. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	(void)resource;
	(void)limit;
	return 0;
}

/* Fails as without privileges: with another root nothing of ours could be executed. */
int chroot(const char *path)
{
	(void)path;
	return (int)answer(-EPERM);
}

int posix_spawn(pid_t *restrict ret_pid, const char *restrict path,
		const posix_spawn_file_actions_t *restrict actions,
		const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
		char *const envp[restrict])
{
	static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const[], char *const[]);

	if (!next)
		next = dlsym(RTLD_NEXT, "posix_spawn");
	if (strcmp(path, "/proc/self/exe") == 0)
		path = wrapper;
	return next(ret_pid, path, actions, attributes, argv, envp);
}
