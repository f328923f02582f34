#pragma once
/*
 * cpuset - a cpu limit where there is no cgroup: as many cpus as allowed, and no others.
 *
 * The affinity is inherited by everything inside; the seccomp variant SECCOMP_PINNED keeps it.
 */
#include "base/err.h"

/* Pins this process. More cpus than there are pins to all of them. */
ERR_CHECKED int cpuset_pin(unsigned count, struct err *e);
