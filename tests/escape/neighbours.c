/*
 * neighbours - legitimate operations similar to the attacks, which must work; see escape.h. A case
 * here "works", or is denied, which the runner expects only for some profiles.
 */
#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(bool is_so, const char *what)
{
	if (!is_so)
		say_broken("%s: %s", what, errno_name(errno));
}

static void files(void)
{
	char path[512], second[520], text[8] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "%s/neighbour", canary("work"));
	(void)snprintf(second, sizeof(second), "%s-2", path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	need(fd >= 0 && write(fd, "hello", 5) == 5 && pread(fd, text, 5, 0) == 5, "a file");
	need(chmod(path, 0755) == 0 && link(path, second) == 0, "chmod and link");
	need(unlink(path) == 0 && unlink(second) == 0 && !strcmp(text, "hello"), "unlink");
	need(open(scratch("own"), O_RDWR | O_CREAT, 0600) >= 0 && unlink(scratch("own")) == 0,
	     "/tmp");
	say_works();
}

static void *be_thread(void *nothing)
{
	return nothing;
}

static void processes(void)
{
	char *const argv[] = { (char *)own_path(), "set-id", NULL }, *const envp[] = { NULL };
	pthread_t thread;
	int status = -1, own;
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(1);
		(void)open("/dev/null", O_WRONLY);
		(void)execve(argv[0], argv, envp);
		_exit(1);
	}
	need(waitpid(pid, &status, 0) == pid && status == 0, "fork and exec");
	need(pthread_create(&thread, NULL, be_thread, NULL) == 0 && pthread_join(thread, NULL) == 0,
	     "a thread");
	pid = fork();
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	need(kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid, "signalling a child");
	own = getpriority(PRIO_PROCESS, 0); /* whoever runs the tests may have lowered theirs */
	need(setpriority(PRIO_PROCESS, 0, own + 1) == 0 &&
		     setpriority(PRIO_PROCESS, (id_t)getpid(), own + 2) == 0 &&
		     setpriority(PRIO_PGRP, 0, own + 3) == 0 &&
		     syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 7) == 0,
	     "lower priorities of our own");
	say_works();
}

static void sockets(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0escape-own" };
	socklen_t len = sizeof(own), name_len = offsetof(struct sockaddr_un, sun_path) + 11;
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

	need(bind(server, (struct sockaddr *)&own, len) == 0 && listen(server, 1) == 0 &&
		     getsockname(server, (struct sockaddr *)&own, &len) == 0 &&
		     connect(client, (struct sockaddr *)&own, len) == 0,
	     "TCP inside");
	server = socket(AF_UNIX, SOCK_STREAM, 0);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	need(bind(server, (struct sockaddr *)&name, name_len) == 0 && listen(server, 1) == 0 &&
		     connect(client, (struct sockaddr *)&name, name_len) == 0,
	     "an abstract socket inside");
	need(socket(AF_INET6, SOCK_DGRAM, 0) >= 0 && socket(AF_NETLINK, SOCK_RAW, 0) >= 0,
	     "UDP and routes");
	say_works();
}

static void trace_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) < 0)
		say_denied(errno);
	need(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "a stop");
	say_works();
}

static void shared_memory(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	char *place = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	need(place != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0, "System V shared memory");
	need(syscall(SYS_memfd_create, "x", 0) >= 0 &&
		     open("/dev/shm/escape-own", O_RDWR | O_CREAT, 0600) >= 0 &&
		     unlink("/dev/shm/escape-own") == 0,
	     "memory files");
	need(inotify_add_watch(inotify_init1(0), "/tmp", IN_CREATE) >= 0, "inotify");
	say_works();
}

static void terminals(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0;
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	need(master >= 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0 &&
		     ioctl(master, TIOCSWINSZ, &size) == 0,
	     "a terminal of our own");
	say_works();
}

static void looking(void)
{
	static const char *const paths[] = { "/proc/self/status", "/proc/cpuinfo", "/proc/meminfo",
					     "/proc/self/maps",   "/dev/urandom",  "/dev/zero",
					     "/etc/passwd" };
	char byte;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		need(read(open(paths[i], O_RDONLY), &byte, 1) == 1, paths[i]);
	need(write(open("/dev/null", O_WRONLY), "x", 1) == 1, "/dev/null");
	say_works();
}

static void memory(void)
{
	char *place =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(place != MAP_FAILED && mprotect(place, 4096, PROT_READ | PROT_EXEC) == 0,
	     "code made at run time");
	need(mlock(place + 4096, 4096) == 0, "a locked page");
	say_works();
}

const struct escape_case cases_neighbours[] = {
	{ "OK01", "files in the workspace and in /tmp", "-", "", files },
	{ "OK02", "processes, threads, signals and priorities of our own", "-", "", processes },
	{ "OK03", "sockets inside", "-", "", sockets },
	{ "OK04", "a debugger on our own child", "restrictive: seccomp", "EPERM", trace_child },
	{ "OK05", "shared memory, memory files, inotify of our own", "-", "", shared_memory },
	{ "OK06", "terminals of our own", "-", "", terminals },
	{ "OK07", "harmless files of /proc, /dev and /etc", "-", "", looking },
	{ "OK08", "code made at run time, locked pages", "-", "", memory },
	{ 0 },
};
