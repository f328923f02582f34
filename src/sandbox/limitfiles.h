#pragma once
/*
 * limitfiles - the files by which programs inside find out how much they may use.
 *
 * Java, Go, node and build tools size heaps and thread pools by /sys/fs/cgroup,
 * /sys/devices/system/ cpu, /proc/meminfo and /proc/cpuinfo, and run into the sandbox's limits
 * where these tell of the machine. On cgroup v2 the kernel shows the sandbox's own group. Elsewhere
 * /sys/fs/cgroup has the same few files, which say what the limits are. All of it is read-only.
 */
#include "base/err.h"
#include "sandbox/cgroup.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* All that the files depend on. */
struct limitfiles_figures {
	uint64_t memory_bytes, cpus_milli, pids_count; /* 0: no limit */
	cpu_set_t usable;                              /* cpus; empty: they are not described */
	bool has_v1;                                   /* this machine has cgroup v1 */
};

enum limitfiles_file {
	LIMITFILES_ONLINE, /* cpus */
	LIMITFILES_MEMORY_MAX,
	LIMITFILES_CPU_MAX,
	LIMITFILES_PIDS_MAX,
	LIMITFILES_MEMINFO,
	LIMITFILES_CPUINFO,

	LIMITFILES_COUNT
};

/* Those that change with a limit, open for writing; -1: not there. */
struct limitfiles {
	int fd[LIMITFILES_COUNT];
};

void limitfiles_init(struct limitfiles *l);
void limitfiles_done(struct limitfiles *l); /* may run twice */

/* Makes all of them in the empty directory dir_fd, while this machine's /sys and /proc are seen. */
ERR_CHECKED int limitfiles_make(struct limitfiles *l, int dir_fd,
				const struct limitfiles_figures *f, struct err *e);

/*
 * Mounts what was made in dir_fd at root_fd/sys, an empty directory, and over files of
 * root_fd/proc, which is mounted.
 */
ERR_CHECKED int limitfiles_show(int dir_fd, int root_fd, enum cgroup_kind kind, struct err *e);

/* What cannot be written stays as it was. f->usable is this process's own affinity. */
void limitfiles_rewrite(const struct limitfiles *l, struct limitfiles_figures *f);
