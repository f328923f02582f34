/*
 * stopall - stops every process inside with SIGSTOP; see stopall.h.
 *
 * kill(-1) reaches all processes at once, including those being forked, but a process stops only
 * when it next leaves the kernel: a write in progress is completed first. So we poll /proc until
 * every thread is stopped. A thread that waits for its vforked child, itself stopped before exec,
 * never stops; it counts as stopped because it cannot change anything either.
 */
#include "sandbox/stopall.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "sandbox/procwalk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define LOOKS_MAX 4000u
#define LOOK_PAUSE_NS 500000l
#define LINE_MAX_BYTES 1024
#define PATH_MAX_BYTES 64

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ESRCH;
}

static bool is_in_fork(int threads_fd, const char *id)
{
	char path[PATH_MAX_BYTES], line[LINE_MAX_BYTES];
	long number;

	(void)snprintf(path, sizeof(path), "%s/syscall", id);
	if (file_read_line(threads_fd, path, line, sizeof(line)) < 0)
		return false;
	number = strtol(line, NULL, 10); /* "running" is 0, read() */
#ifdef SYS_vfork
	if (number == SYS_vfork)
		return true;
#endif
	return number == SYS_clone || number == SYS_clone3;
}

static bool is_still(int threads_fd, const char *id)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX_BYTES];
	const char *after_name;
	size_t len = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/stat", id);
	r = file_read_at(threads_fd, path, LINE_MAX_BYTES, &text, &len);
	if (r < 0)
		return is_gone(r);
	after_name = strrchr(text, ')'); /* the name may contain any character, also ')' */
	if (!after_name || after_name[1] != ' ')
		return false;
	if (after_name[2] == 'D')
		return is_in_fork(threads_fd, id);
	return after_name[2] && strchr("TtZX", after_name[2]);
}

static bool look_at_thread(int threads_fd, const char *id, void *context)
{
	bool *all_still = context;

	*all_still = is_still(threads_fd, id);
	return *all_still;
}

static bool look_at_process(int proc_fd, const char *id, void *context)
{
	bool *all_still = context;
	char path[PATH_MAX_BYTES];
	int r;

	if (strcmp(id, "1") == 0)
		return true;
	(void)snprintf(path, sizeof(path), "%s/task", id);
	r = procwalk_each(proc_fd, path, look_at_thread, context);
	if (r < 0)
		*all_still = is_gone(r);
	return *all_still;
}

bool stopall_begin(void)
{
	const struct timespec pause = { .tv_nsec = LOOK_PAUSE_NS };

	for (unsigned i = 0; i < LOOKS_MAX; i++) {
		bool all_still = true;

		/* resend each time: a process that was about to stop may have continued another */
		(void)kill(-1, SIGSTOP);
		if (procwalk_each(AT_FDCWD, "/proc", look_at_process, &all_still) == 0 && all_still)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

void stopall_end(void)
{
	(void)kill(-1, SIGCONT);
}
