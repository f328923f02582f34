/* limits - using more of the machine than allowed; see escape.h. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEGABYTE (1ul << 20)

static void raise_limits(void)
{
	static const int resources[] = { RLIMIT_CORE,    RLIMIT_NOFILE, RLIMIT_NPROC,
					 RLIMIT_MEMLOCK, RLIMIT_RTPRIO, RLIMIT_NICE };
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (resources[i] == RLIMIT_NOFILE)
			continue; /* its maximum is below infinity: EPERM even for the host's root
				   */
		tally_result(&t, setrlimit(resources[i], &all), "raising a limit");
	}
	tally_say(&t);
}

static void dump_core(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit now;
	int status = 0;
	pid_t pid;

	(void)chdir(has_canary("work") ? canary("work") : "/tmp");
	(void)setrlimit(RLIMIT_CORE, &all);
	if (getrlimit(RLIMIT_CORE, &now) < 0 || (pid = fork()) < 0)
		say_broken("no process: %s", errno_name(errno));
	now.rlim_cur = now.rlim_max;
	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &now);
		abort();
	}
	(void)waitpid(pid, &status, 0);
	if (WCOREDUMP(status))
		say_escaped("a core was dumped");
	say_denied_as("no core");
}

static void lock_memory(void)
{
	size_t size = 16 * MEGABYTE;
	void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		say_broken("no memory");
	say_result(mlock(place, size), "locking 16 MiB");
}

static void real_time(void)
{
	const struct sched_param high = { .sched_priority = 50 };
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &high),
		     "real-time scheduling");
	tally_result(&t, setpriority(PRIO_PROCESS, 0, -10), "a higher priority");
	tally_result(&t, syscall(SYS_ioprio_set, 1, 0, 1 << 13), "a real-time turn at the disk");
	tally_say(&t);
}

/* Counted for the caller's whole account. */
static void watch_files(void)
{
	for (int i = 0; i < 70; i++) /* the sandbox's share is 64 */
		if (inotify_init1(0) < 0)
			say_denied(errno);
	say_escaped("70 inotify instances");
}

static void fill_disk(void)
{
	static char block[1 << 16];
	int fd = open(scratch("fill"), O_WRONLY | O_CREAT, 0644);

	memset(block, 'x', sizeof(block));
	if (fd < 0)
		say_broken("no file: %s", errno_name(errno));
	for (unsigned long written = 0; written < 48 * MEGABYTE; written += sizeof(block))
		if (write(fd, block, sizeof(block)) < 0) {
			int error = errno;

			(void)unlink(scratch("fill"));
			say_denied(error);
		}
	(void)unlink(scratch("fill"));
	say_escaped("48 MiB were written");
}

static void fill_inodes(void)
{
	char path[320];
	int count = 0, error = 0;

	/* 16 MiB allow 4096 */
	(void)mkdir(scratch("many"), 0755);
	for (; count < 5000 && !error; count++) {
		(void)snprintf(path, sizeof(path), "%s/%d", scratch("many"), count);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			error = errno;
	}
	while (--count >= 0) {
		(void)snprintf(path, sizeof(path), "%s/%d", scratch("many"), count);
		(void)unlink(path);
	}
	(void)rmdir(scratch("many"));
	if (error)
		say_denied(error);
	say_escaped("5000 files were made");
}

static void fork_bomb(void)
{
	int error = 0;

	for (int i = 0; i < 200 && !error; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)sleep(20);
			_exit(0);
		}
		if (pid < 0)
			error = errno;
	}
	if (error)
		say_denied(error);
	say_escaped("200 processes");
}

static void memory_bomb(void)
{
	size_t size = 160 * MEGABYTE;
	char *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		say_denied(errno);
	for (size_t i = 0; i < size; i += 4096)
		place[i] = 1;
	say_escaped("160 MiB are ours");
}

const struct escape_case cases_limits[] = {
	{ "NS28a", "raise limits", "rlimits, user namespace", "EPERM", raise_limits },
	{ "NS28b", "dump core, for a handler of the host's", "rlimits", "no core", dump_core },
	{ "NS28c", "lock 16 MiB of memory", "rlimits", "ENOMEM|EPERM|EAGAIN", lock_memory },
	{ "NS28d", "real-time scheduling, higher priorities", "rlimits, user namespace",
	  "EPERM|EACCES", real_time },
	{ "FS26", "use up the account's inotify instances", "inotify share", "EMFILE",
	  watch_files },
	{ "FS21a", "fill the disk", "disk limit", "ENOSPC|EDQUOT|SIGKILL", fill_disk, CASE_ALONE },
	{ "FS21b", "use up inodes", "disk limit", "ENOSPC|EDQUOT", fill_inodes, CASE_ALONE },
	{ "NS06", "fork without end", "cgroup, rlimits", "EAGAIN", fork_bomb, CASE_ALONE },
	{ "NS27", "take more memory than was given", "cgroup", "SIGKILL|ENOMEM", memory_bomb,
	  CASE_ALONE },
	{ 0 },
};
