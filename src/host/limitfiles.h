#pragma once
/*
 * limitfiles - the files by which programs inside find out how much they may use.
 *
 * Java, Go, node and build tools size heaps and thread pools by /sys/fs/cgroup,
 * /sys/devices/system/cpu, /proc/meminfo and /proc/cpuinfo, and exceed the sandbox's limits if
 * these describe the host. On cgroup v2 the kernel shows the sandbox's own group. Otherwise
 * /sys/fs/cgroup has the same few files with the limits as their content. All of these are
 * read-only.
 */
#include "base/err.h"
#include "host/cgroup.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* All values that the files depend on. */
struct limitfiles_figures {
	uint64_t memory_bytes, cpus_milli, pids_count; /* 0: no limit */
	cpu_set_t usable;                              /* CPUs; empty: not described */
	bool has_v1;                                   /* this host has cgroup v1 */
};

enum limitfiles_file {
	LIMITFILES_ONLINE, /* list of CPUs */
	LIMITFILES_MEMORY_MAX,
	LIMITFILES_CPU_MAX,
	LIMITFILES_PIDS_MAX,
	LIMITFILES_MEMINFO,
	LIMITFILES_CPUINFO,

	LIMITFILES_COUNT
};

/* The files that change with a limit, open for writing; -1: not created. */
struct limitfiles {
	int fd[LIMITFILES_COUNT];
};

void limitfiles_init(struct limitfiles *l);
void limitfiles_done(struct limitfiles *l); /* may run twice */

/* Creates all files in the empty directory dir_fd, from the host's still visible /sys and /proc. */
ERR_CHECKED int limitfiles_make(struct limitfiles *l, int dir_fd,
				const struct limitfiles_figures *f, struct err *e);

/*
 * Mounts the files created in dir_fd at root_fd/sys, an empty directory, and over files of
 * root_fd/proc, where proc is mounted already.
 */
ERR_CHECKED int limitfiles_show(int dir_fd, int root_fd, enum cgroup_kind kind, struct err *e);

/* Rewrites what it can after a limit changed. Sets f->usable to this process's affinity. */
void limitfiles_rewrite(const struct limitfiles *l, struct limitfiles_figures *f);
