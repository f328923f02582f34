/*
 * watch - limits that init checks by looking; see watch.h.
 *
 * Memory: first a cheap sum over all processes (resident less shared pages, plus what the
 * sandbox's tmpfs holds). It counts pages that forked processes still share once for each, so
 * only when it exceeds the limit is the exact, slower sum taken (proportional set sizes).
 */
#include "sandbox/watch.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define INTERVAL_MS 50
#define LINE_MAX_BYTES 1024

int watch_interval_ms(const struct watch_limits *w)
{
	return w->memory_bytes || w->cpu_ms ? INTERVAL_MS : -1;
}

typedef uint64_t measure_fn(int proc_fd, const char *pid);

static uint64_t private_bytes(int proc_fd, const char *pid)
{
	uint64_t size, resident, shared;
	char path[64], line[LINE_MAX_BYTES];

	(void)snprintf(path, sizeof(path), "%s/statm", pid);
	if (file_read_line(proc_fd, path, line, sizeof(line)) < 0)
		return 0; /* gone meanwhile */
	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &size, &resident, &shared) != 3)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Falls back to the cheap number for a process that may not be looked into. */
static uint64_t proportional_bytes(int proc_fd, const char *pid)
{
	char path[64], *text = NULL;
	const char *field;
	uint64_t kib = 0;
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%s/smaps_rollup", pid);
	if (file_read_at(proc_fd, path, 16384, &text, &len) < 0)
		return private_bytes(proc_fd, pid);
	field = strstr(text, "\nPss_Anon:");
	if (field)
		kib = strtoull(field + strlen("\nPss_Anon:"), NULL, 10);
	free(text);
	return kib * 1024;
}

/* User and system time of a process and of the children it has waited for. */
static uint64_t cpu_ms(int proc_fd, const char *pid)
{
	uint64_t user, system, child_user, child_system;
	char path[64], line[LINE_MAX_BYTES];
	const char *after_name;

	(void)snprintf(path, sizeof(path), "%s/stat", pid);
	if (file_read_line(proc_fd, path, line, sizeof(line)) < 0)
		return 0;
	after_name = strrchr(line, ')'); /* the name may hold anything, also ')' */
	if (!after_name ||
	    sscanf(after_name + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64,
		   &user, &system, &child_user, &child_system) != 4)
		return 0;
	return (user + system + child_user + child_system) * 1000 /
	       (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t sum(measure_fn *measure)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t total = 0;

	if (!proc)
		return 0;
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    strcmp(entry->d_name, "1") != 0)
			total += measure(dirfd(proc), entry->d_name);
	(void)closedir(proc);
	return total;
}

static uint64_t tmpfs_bytes(void)
{
	struct statvfs fs;

	if (statvfs("/", &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
}

static bool is_over_memory(uint64_t limit)
{
	uint64_t files = tmpfs_bytes();

	return sum(private_bytes) + files > limit && sum(proportional_bytes) + files > limit;
}

static bool is_over_cpu(uint64_t limit_ms)
{
	struct rusage reaped;
	uint64_t total = sum(cpu_ms);

	if (getrusage(RUSAGE_CHILDREN, &reaped) == 0)
		total += (uint64_t)(reaped.ru_utime.tv_sec + reaped.ru_stime.tv_sec) * 1000 +
			 (uint64_t)(reaped.ru_utime.tv_usec + reaped.ru_stime.tv_usec) / 1000;
	return total > limit_ms;
}

enum report_limit watch_check(const struct watch_limits *w)
{
	if (w->memory_bytes && is_over_memory(w->memory_bytes))
		return REPORT_LIMIT_MEMORY;
	if (w->cpu_ms && is_over_cpu(w->cpu_ms))
		return REPORT_LIMIT_CPU_TIME;
	return REPORT_LIMIT_NONE;
}
