#pragma once
/*
 * rlimits - the per-process limits of the command.
 *
 * No limit is simply inherited: each is set to the policy's value, or to a fixed value, or to the
 * caller's own hard limit if that is lower (only the host's root may raise one). Without a cgroup
 * they also enforce the memory and process limits: since Linux 5.14 RLIMIT_NPROC counts within the
 * user namespace, so it limits a single sandbox.
 */
#include "base/err.h"

struct policy;

#define RLIMITS_INIT_COUNT 1u /* our own pid 1 counts as a process of the sandbox */
/* Added to the cgroup's limit, so that the cgroup refuses first: it counts its refusals. */
#define RLIMITS_SPARE_COUNT 8u

enum rlimits_flags {
	RLIMITS_WITHOUT_CGROUP = 1 << 0, /* limit each process's data too */
};

ERR_CHECKED int rlimits_apply(const struct policy *p, unsigned flags, struct err *e);

/* Checks, before anything starts, that the caller's hard limit allows what the policy asks for. */
ERR_CHECKED int rlimits_check(const struct policy *p, struct err *e);
