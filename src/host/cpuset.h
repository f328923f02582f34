#pragma once
/*
 * cpuset - the CPUs that a sandbox with a CPU limit runs on.
 *
 * Without a cgroup the CPU affinity is the limit: the sandbox gets as many CPUs as allowed, and the
 * seccomp variant SECCOMP_PINNED keeps it from changing the set. With a cgroup quota the affinity
 * tells programs about the limit, since they start as many threads as they have CPUs.
 */
#include "base/err.h"

#include <sched.h>
#include <stdint.h>

enum cpuset_flags {
	CPUSET_NEAR = 1 << 0, /* start at the CPU we run on, which was idle a moment ago */
};

/* Chooses `count` of the CPUs that this process may use, or all of them if there are fewer. */
ERR_CHECKED int cpuset_choose(unsigned count, unsigned flags, cpu_set_t *ret, struct err *e);
