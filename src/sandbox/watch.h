#pragma once
/*
 * watch - limits that init checks by looking: cpu time and memory, where the caller may not
 * make cgroups.
 *
 * Looking every 50 ms is weaker than a cgroup: a burst can overshoot in between, processes that
 * live shorter are not seen, and memory that no process maps (an unmapped memfd, a detached
 * segment, socket buffers) is not either. RLIMIT_DATA stops a single process at the limit; this
 * stops many processes together.
 */
#include "sandbox/report.h"

#include <stdint.h>

struct policy;

struct watch_limits {
	const struct policy *policy; /* whose tmpfs directories count as memory */
	uint64_t memory_bytes;       /* 0: do not watch */
	uint64_t cpu_ms;             /* 0: do not watch */
};

/* For poll(): -1 when there is nothing to watch. */
int watch_interval_ms(const struct watch_limits *w);

/* In init: which limit the sandbox has reached. */
enum report_limit watch_check(const struct watch_limits *w);
