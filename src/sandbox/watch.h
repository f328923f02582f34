#pragma once
/*
 * watch - limits that init enforces by polling: CPU time, memory and processes, if the caller may
 * not create cgroups.
 *
 * Polling every 50 ms is weaker than a cgroup: a burst can exceed the limit in between,
 * shorter-lived processes are missed, and so is memory that no process maps (an unmapped memfd, a
 * detached segment, socket buffers). RLIMIT_DATA limits a single process; this limits all processes
 * together. RLIMIT_NPROC counts each user inside separately; if there are several, this counts them
 * together.
 */
#include "policy/policy.h"
#include "protocol/report.h"

#include <stdbool.h>
#include <stdint.h>

struct watch_limits {
	const struct policy *policy; /* its tmpfs directories count as memory */
	uint64_t memory_bytes;       /* 0: do not watch */
	uint64_t cpu_ms;             /* 0: do not watch */
	uint64_t pids_count;         /* 0: do not watch */

	bool is_root_on_disk; /* files in the root do not count as memory */

	int tmpfs_fd[POLICY_TMPFS_MAX]; /* the policy's tmpfs directories, opened by
					 * watch_open(); their paths could be moved */
	unsigned tmpfs_count;
};

/* In init, before the command can change anything: opens the tmpfs directories for good. */
void watch_open(struct watch_limits *w);

/* Timeout for poll(); -1 if there is nothing to watch. */
int watch_interval_ms(const struct watch_limits *w);

/* In init: returns the limit that the sandbox has reached, if any. */
enum report_limit watch_check(const struct watch_limits *w);

/* Usage of all processes inside together; tmpfs files count as in watch_check(). */
void watch_measure(const struct watch_limits *w, uint64_t *ret_memory_bytes, uint64_t *ret_cpu_us,
		   uint64_t *ret_pids_count);
