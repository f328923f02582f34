#pragma once
/*
 * watch - limits that init checks by looking: cpu time, memory and processes, where the caller may
 * not make cgroups.
 *
 * Looking every 50 ms is weaker than a cgroup: a burst can overshoot in between, processes that
 * live shorter are not seen, and memory that no process maps (an unmapped memfd, a detached
 * segment, socket buffers) is not either. RLIMIT_DATA stops a single process at the limit; this
 * stops many processes together. RLIMIT_NPROC counts each user inside for itself; where there is
 * more than one, this counts them together.
 */
#include "policy/policy.h"
#include "sandbox/report.h"

#include <stdbool.h>
#include <stdint.h>

struct watch_limits {
	const struct policy *policy; /* whose tmpfs directories count as memory */
	uint64_t memory_bytes;       /* 0: do not watch */
	uint64_t cpu_ms;             /* 0: do not watch */
	uint64_t pids_count;         /* 0: do not watch */

	bool is_root_on_disk; /* what lies in the root is no memory */

	int tmpfs_fd[POLICY_TMPFS_MAX]; /* of the policy's, by watch_open(); their names can be
					   moved */
	unsigned tmpfs_count;
};

/* In init, before the command can change anything. The descriptors stay open. */
void watch_open(struct watch_limits *w);

/* For poll(): -1 when there is nothing to watch. */
int watch_interval_ms(const struct watch_limits *w);

/* In init: which limit the sandbox has reached. */
enum report_limit watch_check(const struct watch_limits *w);

/* What all processes inside use together; the files in memory count as in watch_check(). */
void watch_measure(const struct watch_limits *w, uint64_t *ret_memory_bytes, uint64_t *ret_cpu_us,
		   uint64_t *ret_pids_count);
