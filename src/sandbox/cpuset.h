#pragma once
/*
 * cpuset - on which cpus a sandbox with a limit on them runs.
 *
 * Where there is no cgroup this is the limit: as many cpus as allowed, and no others; the seccomp
 * variant SECCOMP_PINNED keeps it. Beside a cgroup's quota it is how programs see the limit: they
 * start as many threads as they have cpus to run on.
 */
#include "base/err.h"

#include <sched.h>
#include <stdint.h>

enum cpuset_flags {
	CPUSET_NEAR = 1 << 0, /* from the cpu on which we run, which was idle a moment ago */
};

/* Of those that this process may use. More than there are: all. */
ERR_CHECKED int cpuset_choose(unsigned count, unsigned flags, cpu_set_t *ret, struct err *e);
