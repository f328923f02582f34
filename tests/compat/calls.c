/*
 * calls - exercises one system interface per call, as real programs use it
 *
 * `calls NAME` prints "ok", or the failed step and the error's text; programs/calls runs each
 * inside and outside. Each function returns NULL or the name of the failed step, with errno set.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Returns the call's own text if it fails. */
#define must(call)                                                                                  \
	do {                                                                                        \
		errno = 0;                                                                          \
		if ((long)(call) < 0)                                                               \
			return #call;                                                               \
	} while (0)
#define expect(condition)                                                                           \
	do {                                                                                        \
		if (!(condition))                                                                   \
			return #condition;                                                          \
	} while (0)

static volatile long traced_word = 0x1234;

static const char *write_text(const char *path, const char *text)
{
	int fd;

	must(fd = open(path, O_WRONLY | O_CLOEXEC));
	must(write(fd, text, strlen(text)));
	must(close(fd));
	return NULL;
}

static const char *mqueue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	char text[16] = "";
	mqd_t q;

	must(q = mq_open("/compat", O_CREAT | O_RDWR, 0600, &attr));
	must(mq_send(q, "hello", 6, 1));
	must(mq_receive(q, text, sizeof(text), NULL));
	must(mq_unlink("/compat"));
	expect(strcmp(text, "hello") == 0);
	return NULL;
}

/* Message queues are also a file system, where `ls /dev/mqueue` shows them. */
static const char *mqueue_directory(void)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	int seen;

	must(mq_open("/compat", O_CREAT | O_RDWR, 0600, &attr));
	seen = access("/dev/mqueue/compat", F_OK);
	mq_unlink("/compat");
	expect(seen == 0);
	return NULL;
}

static const char *inotify(void)
{
	char buffer[512];
	int fd;

	must(fd = inotify_init1(IN_CLOEXEC));
	must(inotify_add_watch(fd, ".", IN_CREATE));
	must(open("watched", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	must(read(fd, buffer, sizeof(buffer)));
	return NULL;
}

static const char *allocate(void)
{
	struct stat st;
	int fd;

	must(fd = open("allocated", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	must(fallocate(fd, 0, 0, 1 << 20));
	must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
	must(posix_fallocate(fd, 0, 2 << 20));
	must(fstat(fd, &st));
	expect(st.st_size == 2 << 20);
	must(lseek(fd, 0, SEEK_HOLE));
	return NULL;
}

static const char *tmpfile_link(void)
{
	char path[64];
	int fd;

	must(fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	must(write(fd, "text", 4));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(linkat(AT_FDCWD, path, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
	must(access("linked", F_OK));
	return NULL;
}

static const char *sendfile_copy(void)
{
	int from, to;

	must(from = open("/usr/bin/env", O_RDONLY | O_CLOEXEC));
	must(to = open("copy", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	expect(sendfile(to, from, NULL, 4096) == 4096);
	expect(copy_file_range(to, &(off_t){ 0 }, to, &(off_t){ 4096 }, 4096, 0) == 4096);
	return NULL;
}

static const char *splice_pipe(void)
{
	int from, pipes[2];

	must(from = open("/usr/bin/env", O_RDONLY | O_CLOEXEC));
	must(pipe2(pipes, O_CLOEXEC));
	expect(splice(from, NULL, pipes[1], NULL, 4096, 0) == 4096);
	return NULL;
}

static const char *memfd(void)
{
	char *args[] = { "true", NULL };
	char *none[] = { NULL };
	int fd, from, status;
	pid_t pid;

	must(fd = memfd_create("compat", MFD_ALLOW_SEALING));
	must(from = open("/usr/bin/true", O_RDONLY | O_CLOEXEC));
	must(sendfile(fd, from, NULL, 1 << 20));
	must(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK));
	must(pid = fork());
	if (pid == 0) {
		fexecve(fd, args, none);
		_exit(127);
	}
	must(waitpid(pid, &status, 0));
	expect(status == 0);
	return NULL;
}

static const char *abstract(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0agentkernel-compat" };
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int server, client;

	must(server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	must(bind(server, (struct sockaddr *)&name, sizeof(name)));
	must(listen(server, 1));
	must(client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	must(connect(client, (struct sockaddr *)&name, sizeof(name)));
	must(getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &len));
	expect(peer.pid == getpid());
	return NULL;
}

static const char *signal_descriptor(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	must(fd = signalfd(-1, &set, SFD_CLOEXEC));
	must(kill(getpid(), SIGUSR1));
	must(read(fd, &info, sizeof(info)));
	expect(info.ssi_signo == SIGUSR1);
	return NULL;
}

static const char *timer_descriptor(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	struct epoll_event event = { .events = EPOLLIN };
	int fd, poll_fd;

	must(fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	must(timerfd_settime(fd, 0, &soon, NULL));
	must(poll_fd = epoll_create1(EPOLL_CLOEXEC));
	must(epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event));
	expect(epoll_wait(poll_fd, &event, 1, 5000) == 1);
	must(eventfd(0, EFD_CLOEXEC));
	return NULL;
}

static const char *shm(void)
{
	struct shmid_ds info;
	char *p;
	int id;

	must(id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600));
	p = shmat(id, NULL, 0);
	expect(p != (void *)-1);
	strcpy(p, "shared");
	must(shmctl(id, IPC_STAT, &info));
	must(shmctl(id, IPC_RMID, NULL));
	must(id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
	must(semctl(id, 0, IPC_RMID));
	must(id = msgget(IPC_PRIVATE, IPC_CREAT | 0600));
	must(msgctl(id, IPC_RMID, NULL));
	return NULL;
}

static const char *posix_shm(void)
{
	void *p;
	int fd;

	must(fd = shm_open("/compat", O_CREAT | O_RDWR, 0600));
	must(ftruncate(fd, 1 << 20));
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect(p != MAP_FAILED);
	must(shm_unlink("/compat"));
	return NULL;
}

/* Forks a child that asked to be traced and stopped. */
static pid_t traced_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(traced_word == 0x5678 ? 0 : 2);
	}
	return pid;
}

/* Like gdb, reads and writes a program's variables. */
static const char *child_memory(void)
{
	char path[64];
	long word = 0;
	int fd, status;
	pid_t pid;

	must(pid = traced_child());
	must(waitpid(pid, &status, 0));
	expect(WIFSTOPPED(status));
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	must(fd = open(path, O_RDWR | O_CLOEXEC));
	must(pread(fd, &word, sizeof(word), (off_t)(uintptr_t)&traced_word));
	expect(word == 0x1234);
	word = 0x5678;
	must(pwrite(fd, &word, sizeof(word), (off_t)(uintptr_t)&traced_word));
	must(ptrace(PTRACE_CONT, pid, NULL, NULL));
	must(waitpid(pid, &status, 0));
	expect(status == 0);
	return NULL;
}

static const char *poke_child(void)
{
	struct iovec local, remote = { (void *)(uintptr_t)&traced_word, sizeof(long) };
	long word = 0;
	int status;
	pid_t pid;

	local = (struct iovec){ &word, sizeof(word) };
	must(pid = traced_child());
	must(waitpid(pid, &status, 0));
	must(ptrace(PTRACE_POKEDATA, pid, &traced_word, 0x5678));
	must(process_vm_readv(pid, &local, 1, &remote, 1, 0));
	expect(word == 0x5678);
	must(ptrace(PTRACE_CONT, pid, NULL, NULL));
	must(waitpid(pid, &status, 0));
	expect(status == 0);
	return NULL;
}

static const char *prlimit_child(void)
{
	struct rlimit limit;
	int r, saved;
	pid_t pid;

	must(pid = fork());
	if (pid == 0) {
		pause();
		_exit(0);
	}
	r = prlimit(pid, RLIMIT_NOFILE, NULL, &limit);
	saved = errno;
	if (r == 0) {
		limit.rlim_cur = limit.rlim_max = 100;
		r = prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
		saved = errno;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	errno = saved;
	expect(r == 0);
	return NULL;
}

static const char *comm(void)
{
	char name[17] = "";
	const char *failed = write_text("/proc/self/comm", "renamed");

	if (failed)
		return failed;
	must(prctl(PR_GET_NAME, name));
	expect(strcmp(name, "renamed") == 0);
	return NULL;
}

/* Like pthread_setname_np() for another thread. */
static const char *thread_comm(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)syscall(SYS_gettid));
	return write_text(path, "renamed");
}

static const char *oom_score(void)
{
	return write_text("/proc/self/oom_score_adj", "500");
}

static const char *scheduling(void)
{
	must(setpriority(PRIO_PROCESS, 0, 5));
	must(syscall(SYS_ioprio_set, 1, 0, 3 << 13)); /* idle, as ionice -c 3 */
	return NULL;
}

static const char *locks(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd;

	must(fd = open("lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	must(flock(fd, LOCK_EX));
	must(fcntl(fd, F_SETLK, &lock));
	lock.l_type = F_UNLCK;
	must(fcntl(fd, F_SETLK, &lock));
	lock.l_type = F_WRLCK;
	must(fcntl(fd, F_OFD_SETLK, &lock));
	must(fcntl(fd, F_SETLEASE, F_RDLCK) < 0 && errno != EAGAIN ? -1 : 0);
	return NULL;
}

static const char *attributes(void)
{
	char value[8] = "";
	int fd;

	must(fd = open("attributed", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	must(fsetxattr(fd, "user.compat", "yes", 3, 0));
	must(fgetxattr(fd, "user.compat", value, sizeof(value)));
	return NULL;
}

static const char *large_pages(void)
{
	void *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(p != MAP_FAILED);
	must(madvise(p, 4 << 20, MADV_HUGEPAGE));
	must(mlock(p, 65536));
	must(mprotect(p, 4096, PROT_READ | PROT_EXEC));
	return NULL;
}

static const char *pidfd(void)
{
	int fd, status;
	pid_t pid;

	must(pid = fork());
	if (pid == 0) {
		pause();
		_exit(0);
	}
	must(fd = (int)syscall(SYS_pidfd_open, pid, 0));
	must(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
	must(waitpid(pid, &status, 0));
	expect(WTERMSIG(status) == SIGTERM);
	return NULL;
}

static const char *random_bytes(void)
{
	char bytes[16];

	expect(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
	return NULL;
}

static const char *raw_ping(void)
{
	must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP));
	return NULL;
}

static const char *udp_lite(void)
{
	must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE));
	return NULL;
}

static const char *fifo_device(void)
{
	must(mkfifo("fifo", 0600));
	must(mknod("socket", S_IFSOCK | 0600, 0));
	return NULL;
}

static const char *change_owner(void)
{
	struct stat st;
	int fd;

	must(fd = open("owned", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	must(fchown(fd, 33, 33));
	must(fstat(fd, &st));
	expect(st.st_uid == 33 && st.st_gid == 33);
	return NULL;
}

static const char *setuid_bit(void)
{
	struct stat st;
	int fd;

	must(fd = open("setuid", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	must(fchmod(fd, 04755));
	must(fstat(fd, &st));
	expect(st.st_mode & S_ISUID);
	return NULL;
}

static const struct {
	const char *name;
	const char *(*run)(void);
} calls[] = {
	{ "mqueue", mqueue },
	{ "mqueue-directory", mqueue_directory },
	{ "inotify", inotify },
	{ "fallocate", allocate },
	{ "tmpfile", tmpfile_link },
	{ "sendfile", sendfile_copy },
	{ "splice", splice_pipe },
	{ "memfd", memfd },
	{ "abstract-socket", abstract },
	{ "signalfd", signal_descriptor },
	{ "timerfd", timer_descriptor },
	{ "sysv-ipc", shm },
	{ "posix-shm", posix_shm },
	{ "proc-mem", child_memory },
	{ "ptrace-poke", poke_child },
	{ "prlimit-child", prlimit_child },
	{ "comm", comm },
	{ "thread-comm", thread_comm },
	{ "oom-score-adj", oom_score },
	{ "nice", scheduling },
	{ "locks", locks },
	{ "user-xattr", attributes },
	{ "madvise-mlock", large_pages },
	{ "pidfd", pidfd },
	{ "getrandom", random_bytes },
	{ "ping-socket", raw_ping },
	{ "udp-lite", udp_lite },
	{ "mkfifo", fifo_device },
	{ "chown", change_owner },
	{ "setuid-bit", setuid_bit },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		const char *failed;

		if (argc < 2) {
			puts(calls[i].name);
			continue;
		}
		if (strcmp(argv[1], calls[i].name) != 0)
			continue;
		errno = 0;
		failed = calls[i].run();
		if (failed)
			printf("%s: %s\n", failed, strerror(errno));
		else
			puts("ok");
		return failed != NULL;
	}
	return argc < 2 ? 0 : 2;
}
