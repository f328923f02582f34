/*
 * watch - limits that init enforces by polling; see watch.h.
 *
 * Memory is the sum of the processes' anonymous and shared pages and the contents of the sandbox's
 * tmpfs directories. A mapped tmpfs file would count twice, so of shared pages and tmpfs contents
 * only the larger is added. First a cheap sum is taken, which counts pages shared by forked
 * processes once per process; only if it exceeds the limit, the exact but slower sum follows
 * (proportional set sizes, for which init keeps CAP_SYS_PTRACE).
 */
#include "sandbox/watch.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "policy/policy.h"
#include "sandbox/procwalk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define INTERVAL_MS 50
#define PATH_MAX_BYTES 64
#define FILE_MAX_BYTES 16384

int watch_interval_ms(const struct watch_limits *w)
{
	return w->memory_bytes || w->cpu_ms || w->pids_count ? INTERVAL_MS : -1;
}

struct usage {
	uint64_t anonymous_bytes;
	uint64_t shared_bytes;
	uint64_t cpu_ms;
	uint64_t thread_count;
};

typedef void measure_fn(int proc_fd, const char *pid, struct usage *total);

/* Returns the number after `name` ("\nNAME:") in `text`, in bytes; the files give KiB. */
static uint64_t field_bytes(const char *text, const char *name)
{
	const char *field = strstr(text, name);

	return field ? strtoull(field + strlen(name), NULL, 10) * 1024 : 0;
}

static bool read_proc(int proc_fd, const char *pid, const char *file, char **ret_text)
{
	char path[PATH_MAX_BYTES];
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", pid, file);
	return file_read_at(proc_fd, path, FILE_MAX_BYTES, ret_text, &len) == 0;
}

static void add_resident(int proc_fd, const char *pid, struct usage *total)
{
	cleanup_free char *text = NULL;

	if (!read_proc(proc_fd, pid, "status", &text))
		return; /* the process has exited */
	total->anonymous_bytes += field_bytes(text, "\nRssAnon:");
	total->shared_bytes += field_bytes(text, "\nRssShmem:");
}

static void add_proportional(int proc_fd, const char *pid, struct usage *total)
{
	cleanup_free char *text = NULL;

	if (!read_proc(proc_fd, pid, "smaps_rollup", &text)) {
		add_resident(proc_fd, pid, total);
		return;
	}
	total->anonymous_bytes += field_bytes(text, "\nPss_Anon:");
	total->shared_bytes += field_bytes(text, "\nPss_Shmem:");
}

/* Adds user and system time of a process and of its reaped children. */
static void add_cpu(int proc_fd, const char *pid, struct usage *total)
{
	uint64_t user, system, child_user, child_system;
	cleanup_free char *text = NULL;
	const char *after_name;

	if (!read_proc(proc_fd, pid, "stat", &text))
		return;
	after_name = strrchr(text, ')'); /* the name may contain any character, also ')' */
	if (!after_name || sscanf(after_name + 1,
				  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
				  " %" SCNu64 " %" SCNu64 " %" SCNu64,
				  &user, &system, &child_user, &child_system) != 4)
		return;
	total->cpu_ms +=
		(user + system + child_user + child_system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* task/ has one directory per thread, besides "." and "..". */
static void add_threads(int proc_fd, const char *pid, struct usage *total)
{
	char path[PATH_MAX_BYTES];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/task", pid);
	if (fstatat(proc_fd, path, &st, 0) == 0 && st.st_nlink > 2)
		total->thread_count += st.st_nlink - 2;
}

struct summing {
	measure_fn *measure;
	struct usage total;
};

static bool add_process(int proc_fd, const char *pid, void *context)
{
	struct summing *s = context;

	if (strcmp(pid, "1") != 0)
		s->measure(proc_fd, pid, &s->total);
	return true;
}

/* Sums over all processes but init itself. If /proc cannot be read, returns more than any limit. */
static struct usage sum(measure_fn *measure)
{
	struct summing s = { .measure = measure };

	if (procwalk_each(AT_FDCWD, "/proc", add_process, &s) < 0)
		return (struct usage){ UINT64_MAX / 2, 0, UINT64_MAX / 2, UINT64_MAX };
	return s.total;
}

void watch_open(struct watch_limits *w)
{
	w->tmpfs_count = 0;
	for (unsigned i = 0; w->memory_bytes && i < w->policy->tmpfs_count; i++)
		w->tmpfs_fd[w->tmpfs_count++] =
			open(w->policy->tmpfs[i].target, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static uint64_t used_bytes(const struct statvfs *fs)
{
	return (uint64_t)(fs->f_blocks - fs->f_bfree) * fs->f_frsize;
}

/* If a file system cannot be read, returns more than any limit. */
static uint64_t files_bytes(const struct watch_limits *w)
{
	struct statvfs fs;
	uint64_t total;

	/* a root on disk is not memory: only /dev/shm counts */
	if (statvfs(w->is_root_on_disk ? "/dev/shm" : "/", &fs) < 0)
		return UINT64_MAX / 2;
	total = used_bytes(&fs);
	for (unsigned i = 0; i < w->tmpfs_count; i++) {
		if (fstatvfs(w->tmpfs_fd[i], &fs) < 0)
			return UINT64_MAX / 2;
		total += used_bytes(&fs);
	}
	return total;
}

static bool is_over(const struct usage *u, uint64_t files, uint64_t limit)
{
	return u->anonymous_bytes + (u->shared_bytes > files ? u->shared_bytes : files) > limit;
}

static bool is_over_memory(const struct watch_limits *w)
{
	uint64_t files = files_bytes(w);
	struct usage usage = sum(add_resident);

	if (!is_over(&usage, files, w->memory_bytes))
		return false;
	usage = sum(add_proportional);
	return is_over(&usage, files, w->memory_bytes);
}

static uint64_t cpu_ms(void)
{
	uint64_t total = sum(add_cpu).cpu_ms;
	struct rusage reaped;

	if (getrusage(RUSAGE_CHILDREN, &reaped) == 0)
		total += (uint64_t)(reaped.ru_utime.tv_sec + reaped.ru_stime.tv_sec) * 1000 +
			 (uint64_t)(reaped.ru_utime.tv_usec + reaped.ru_stime.tv_usec) / 1000;
	return total;
}

enum report_limit watch_check(const struct watch_limits *w)
{
	if (w->memory_bytes && is_over_memory(w))
		return REPORT_LIMIT_MEMORY;
	if (w->cpu_ms && cpu_ms() > w->cpu_ms)
		return REPORT_LIMIT_CPU_TIME;
	if (w->pids_count && sum(add_threads).thread_count > w->pids_count)
		return REPORT_LIMIT_PIDS;
	return REPORT_LIMIT_NONE;
}

void watch_measure(const struct watch_limits *w, uint64_t *ret_memory_bytes, uint64_t *ret_cpu_us,
		   uint64_t *ret_pids_count)
{
	struct usage memory = sum(add_proportional);
	uint64_t files = files_bytes(w);

	*ret_memory_bytes = memory.anonymous_bytes +
			    (memory.shared_bytes > files ? memory.shared_bytes : files);
	*ret_cpu_us = cpu_ms() * 1000;
	*ret_pids_count = sum(add_threads).thread_count;
}
