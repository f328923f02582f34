/*
 * probe - a static program that runs inside a sandbox and tries one thing.
 *
 *  probe ACTION [ARG...]
 *
 * It prints one line, "ok ..." or the name of the errno, and exits 0 in both cases: the test
 * decides what is right. Each action is a row of the table at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define X32_BIT 0x40000000

static const char *errno_name(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ EPERM, "EPERM" },
		{ ENOENT, "ENOENT" },
		{ ESRCH, "ESRCH" },
		{ EIO, "EIO" },
		{ ENXIO, "ENXIO" },
		{ EBADF, "EBADF" },
		{ EAGAIN, "EAGAIN" },
		{ ENOMEM, "ENOMEM" },
		{ EACCES, "EACCES" },
		{ EFAULT, "EFAULT" },
		{ EBUSY, "EBUSY" },
		{ EEXIST, "EEXIST" },
		{ ENODEV, "ENODEV" },
		{ ENOTDIR, "ENOTDIR" },
		{ EINVAL, "EINVAL" },
		{ EMFILE, "EMFILE" },
		{ ENOTTY, "ENOTTY" },
		{ EFBIG, "EFBIG" },
		{ ENOSPC, "ENOSPC" },
		{ EROFS, "EROFS" },
		{ ENOSYS, "ENOSYS" },
		{ EAFNOSUPPORT, "EAFNOSUPPORT" },
		{ EPROTONOSUPPORT, "EPROTONOSUPPORT" },
		{ ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT" },
		{ ENETUNREACH, "ENETUNREACH" },
		{ ECONNREFUSED, "ECONNREFUSED" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].error == error)
			return names[i].name;
	return strerror(error);
}

/* Prints whether the call succeeded, the result of almost every action. */
static void answer(long result)
{
	if (result < 0)
		puts(errno_name(errno));
	else
		puts("ok");
}

static const char *arg(char **argv, int index)
{
	if (!argv[index]) {
		fprintf(stderr, "probe: too few arguments\n");
		exit(2);
	}
	return argv[index];
}

static int number(char **argv, int index)
{
	return (int)strtol(arg(argv, index), NULL, 0);
}

/* ---- files ---- */

static void try_read(char **argv)
{
	char byte;
	int fd = open(arg(argv, 0), O_RDONLY);

	answer(fd < 0 ? fd : read(fd, &byte, 1));
}

static void try_write(char **argv)
{
	int fd = open(arg(argv, 0), O_WRONLY | O_CREAT | O_APPEND, 0644);

	answer(fd < 0 ? fd : write(fd, "x", 1));
}

static void try_chmod(char **argv)
{
	answer(chmod(arg(argv, 0), (mode_t)number(argv, 1)));
}

static void try_fchmod(char **argv)
{
	answer(fchmod(number(argv, 0), (mode_t)number(argv, 1)));
}

static void try_fill(char **argv)
{
	static char block[1 << 16];
	int fd = open(arg(argv, 0), O_WRONLY | O_CREAT, 0644);
	long long total = 0;
	ssize_t n;

	memset(block, 'x', sizeof(block));
	while ((n = write(fd, block, sizeof(block))) > 0 && total < (8ll << 30))
		total += n;
	printf("%s after %lld MiB\n", n < 0 ? errno_name(errno) : "ok", total >> 20);
}

static void try_inodes(char **argv)
{
	char path[256];
	int count = 0;

	for (;; count++) {
		snprintf(path, sizeof(path), "%s/%d", arg(argv, 0), count);
		if (mkdir(path, 0755) < 0)
			break;
	}
	printf("%s after %d\n", errno_name(errno), count);
}

/* ---- descriptors and terminals ---- */

static void list_fds(char **argv)
{
	(void)argv;
	printf("ok");
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	printf("\n");
}

static void try_tiocsti(char **argv)
{
	answer(ioctl(number(argv, 0), TIOCSTI, "x"));
}

static void try_tiocsti_high(char **argv)
{
	answer(syscall(SYS_ioctl, number(argv, 0), 0xdead00000000ul | TIOCSTI, "x"));
}

static void try_read_fd(char **argv)
{
	char byte;

	answer(read(number(argv, 0), &byte, 1));
}

static void try_reopen(char **argv)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", number(argv, 0));
	fd = open(path, number(argv, 1) ? O_WRONLY : O_RDONLY | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		puts("a pipe"); /* with only our own output in it */
	else
		answer(fd);
}

static void show_tty(char **argv)
{
	struct winsize size = { 0 };

	(void)argv;
	(void)ioctl(0, TIOCGWINSZ, &size);
	printf("%s %s %d %dx%d\n", isatty(0) ? "ok" : "ENOTTY", isatty(0) ? ttyname(0) : "-",
	       tcgetpgrp(0) == getpgrp(), size.ws_col, size.ws_row);
}

/* ---- namespaces and privileges ---- */

static void try_unshare(char **argv)
{
	answer(unshare(number(argv, 0)));
}

static void try_mount(char **argv)
{
	answer(mount("none", arg(argv, 0), "tmpfs", 0, NULL));
}

static void show_caps(char **argv)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint64_t bounding = 0, ambient = 0;

	(void)argv;
	(void)syscall(SYS_capget, &header, data);
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			bounding |= 1ull << cap;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			ambient |= 1ull << cap;
	}
	printf("ok effective=%llx permitted=%llx inheritable=%llx bounding=%llx ambient=%llx "
	       "nnp=%d\n",
	       (unsigned long long)data[1].effective << 32 | data[0].effective,
	       (unsigned long long)data[1].permitted << 32 | data[0].permitted,
	       (unsigned long long)data[1].inheritable << 32 | data[0].inheritable,
	       (unsigned long long)bounding, (unsigned long long)ambient,
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static void try_kill(char **argv)
{
	answer(kill(number(argv, 0), number(argv, 1)));
}

static void try_affinity(char **argv)
{
	cpu_set_t all;

	(void)argv;
	memset(&all, 0xff, sizeof(all));
	answer(sched_setaffinity(0, sizeof(all), &all));
}

static void show_cpus(char **argv)
{
	cpu_set_t set;

	(void)argv;
	(void)sched_getaffinity(0, sizeof(set), &set);
	printf("ok %d\n", CPU_COUNT(&set));
}

/* ---- system calls by name, with arguments that would succeed if allowed ---- */

static void try_syscall(char **argv)
{
	const struct {
		const char *name;
		long nr, a, b, c, d;
	} calls[] = {
		{ "bpf", SYS_bpf, 0, (long)&(uint64_t[16]){ 2, 4, 4, 1 }, 72 },
		{ "io_uring_setup", SYS_io_uring_setup, 4, (long)&(char[256]){ 0 } },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, arg(argv, 0)) != 0)
			continue;
		answer(syscall(calls[i].nr, calls[i].a, calls[i].b, calls[i].c, calls[i].d));
		return;
	}
	fprintf(stderr, "probe: no call '%s'\n", argv[0]);
	exit(2);
}

/* ---- network ---- */

static void try_connect(char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_port = htons((uint16_t)number(argv, 1));
	(void)inet_pton(AF_INET, arg(argv, 0), &address.sin_addr);
	answer(fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

static void try_udp(char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	address.sin_port = htons((uint16_t)number(argv, 1));
	(void)inet_pton(AF_INET, arg(argv, 0), &address.sin_addr);
	answer(fd < 0 ? fd
		      : (int)sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)));
}

static void try_unix(char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = arg(argv, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t len;

	strncpy(address.sun_path, name, sizeof(address.sun_path) - 1);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	else
		len++;
	answer(fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, len));
}

/* A server and its client in one sandbox. */
static void try_local_server(char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);

	(void)argv;
	if (bind(server, (struct sockaddr *)&address, len) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (struct sockaddr *)&address, &len) < 0)
		answer(-1);
	else
		answer(connect(client, (struct sockaddr *)&address, len));
}

/* ---- resource usage ---- */

static void eat(char **argv, int kind)
{
	size_t size = (size_t)number(argv, 0) << 20;
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED) {
		answer(-1);
		return;
	}
	memset(block, 1, size);
	if (kind == MAP_SHARED)
		sleep(1); /* a watching init needs a moment to notice it */
	puts("ok");
}

static void eat_memory(char **argv)
{
	eat(argv, MAP_PRIVATE);
}

static void eat_shared(char **argv)
{
	eat(argv, MAP_SHARED);
}

/* Sends a message through our own queue, which the file system of queues shows. */
static void use_queue(char **argv)
{
	char text[8192] = "";
	mqd_t queue = mq_open("/probe", O_CREAT | O_RDWR, 0600, NULL);
	struct stat st;

	(void)argv;
	if (queue < 0 || mq_send(queue, "hello", 6, 0) < 0 ||
	    mq_receive(queue, text, sizeof(text), NULL) != 6 || strcmp(text, "hello") != 0)
		answer(-1);
	else
		answer(stat("/dev/mqueue/probe", &st) < 0 ? -1 : mq_unlink("/probe"));
}

/* Many processes, each with a little. */
static void eat_memory_in_pieces(char **argv)
{
	int count = number(argv, 0);
	size_t size = (size_t)number(argv, 1) << 20;

	for (int i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		memset(block, 1, size);
		sleep(20);
		_exit(0);
	}
	(void)wait(NULL); /* the first one that is killed ends it */
	puts("ok");
}

/* Children that share their parent's pages and write to none of them. */
static void fork_sharing(char **argv)
{
	size_t size = (size_t)number(argv, 0) << 20;
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(block, 1, size);
	for (int i = 0; i < number(argv, 1); i++) {
		if (fork() != 0)
			continue;
		sleep(1);
		_exit(0);
	}
	while (wait(NULL) > 0)
		continue;
	puts("ok");
}

static void fork_bomb(char **argv)
{
	int count = 0;

	(void)argv;
	for (; count < 100000; count++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	printf("%s after %d\n", errno_name(errno), count);
}

static void burn(char **argv)
{
	int count = number(argv, 0);

	for (int i = 1; i < count; i++)
		if (fork() == 0)
			break;
	for (volatile unsigned long i = 0;; i++)
		continue;
}

/* Children that nobody waits for: their time is in no parent's total. */
static void burn_unseen(char **argv)
{
	struct timespec start, now;
	int seconds = number(argv, 0);

	signal(SIGCHLD, SIG_IGN);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		pid_t pid = fork();

		if (pid == 0) {
			clock_t end = clock() + CLOCKS_PER_SEC / 50;

			while (clock() < end)
				continue;
			_exit(0);
		}
		usleep(20000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < seconds);
	puts("ok");
}

/* Leaves a process outside the session, the process group and without its parent. */
static void daemonize(char **argv)
{
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			signal(SIGHUP, SIG_IGN);
			for (int i = 0; i < 600; i++) {
				int fd = open(arg(argv, 0), O_WRONLY | O_CREAT | O_APPEND, 0644);

				(void)!write(fd, "x", 1);
				close(fd);
				usleep(100000);
			}
		}
		_exit(0);
	}
	puts("ok");
	fflush(stdout);
	if (argv[1])
		sleep((unsigned)number(argv, 1));
}

/* Stops every process that it may, forever: also one that is just being started. */
static void stop_all(char **argv)
{
	(void)argv;
	(void)setsid();
	for (;;)
		(void)kill(-1, SIGSTOP);
}

/* Six processes that send pid 1 all signals that they may. */
static void flood_init(char **argv)
{
	const union sigval value = { 0 };

	(void)argv;
	for (int i = 0; i < 6 && fork() == 0; i++)
		continue;
	for (;;) {
		(void)sigqueue(1, SIGRTMIN + 2, value);
		(void)kill(1, SIGUSR1);
	}
}

static void ignore_signals(char **argv)
{
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	puts("ok");
	fflush(stdout);
	sleep((unsigned)number(argv, 0));
}

/* USERS SECONDS: as many users as possible, each with all the inotify instances it gets. */
static void watch_as_users(char **argv)
{
	int pipe_fds[2], count = 0, got;
	int users = number(argv, 0);

	if (pipe(pipe_fds) < 0)
		return;
	for (int i = 0; i < users; i++) {
		if (fork() != 0)
			continue;
		if (setuid((uid_t)(2000 + i)) < 0)
			got = 0;
		else
			for (got = 0; got < 1000 && inotify_init1(0) >= 0; got++)
				continue;
		(void)!write(pipe_fds[1], &got, sizeof(got));
		sleep((unsigned)number(argv, 1));
		_exit(0);
	}
	for (int i = 0; i < users; i++)
		if (read(pipe_fds[0], &got, sizeof(got)) == sizeof(got))
			count += got;
	printf("took %d\n", count);
	fflush(stdout);
	sleep((unsigned)number(argv, 1));
}

static void die(char **argv)
{
	raise(number(argv, 0));
}

static const struct {
	const char *name;
	void (*act)(char **argv);
} actions[] = {
	{ "read", try_read },
	{ "write", try_write },
	{ "chmod", try_chmod },
	{ "fchmod", try_fchmod },
	{ "fill", try_fill },
	{ "inodes", try_inodes },
	{ "fds", list_fds },
	{ "tiocsti", try_tiocsti },
	{ "tiocsti-high", try_tiocsti_high },
	{ "read-fd", try_read_fd },
	{ "reopen", try_reopen },
	{ "tty", show_tty },
	{ "unshare", try_unshare },
	{ "mount", try_mount },
	{ "caps", show_caps },
	{ "kill", try_kill },
	{ "affinity", try_affinity },
	{ "cpus", show_cpus },
	{ "syscall", try_syscall },
	{ "connect", try_connect },
	{ "udp", try_udp },
	{ "unix", try_unix },
	{ "local-server", try_local_server },
	{ "queue", use_queue },
	{ "eat", eat_memory },
	{ "eat-pieces", eat_memory_in_pieces },
	{ "eat-shared", eat_shared },
	{ "fork-sharing", fork_sharing },
	{ "fork-bomb", fork_bomb },
	{ "burn", burn },
	{ "burn-unseen", burn_unseen },
	{ "daemonize", daemonize },
	{ "stop-all", stop_all },
	{ "flood-init", flood_init },
	{ "ignore-signals", ignore_signals },
	{ "watch-as-users", watch_as_users },
	{ "die", die },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, argv[1]) != 0)
			continue;
		actions[i].act(argv + 2);
		return 0;
	}
	fprintf(stderr, "probe: no such action\n");
	return 2;
}
