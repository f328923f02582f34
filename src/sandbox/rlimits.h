#pragma once
/*
 * rlimits - the per-process limits of the command.
 *
 * Never inherited blindly: each one is set to what the policy says, or to a defined value, or
 * to the caller's own hard limit where that is lower (only the host's root may raise one).
 * Where there is no cgroup they carry the memory and process limits too: since Linux 5.14
 * RLIMIT_NPROC counts within the user namespace, so it is a limit per sandbox.
 */
#include "base/err.h"

struct policy;

#define RLIMITS_INIT_COUNT 1u /* our own pid 1 counts as a process of the sandbox */
/* More than the cgroup allows: the cgroup is to refuse first, since it counts its refusals. */
#define RLIMITS_SPARE_COUNT 8u

enum rlimits_flags {
	RLIMITS_WITHOUT_CGROUP = 1 << 0, /* limit each process's data as well */
};

ERR_CHECKED int rlimits_apply(const struct policy *p, unsigned flags, struct err *e);

/* Can the caller's hard limit carry what the policy asks for? Checked before anything starts. */
ERR_CHECKED int rlimits_check(const struct policy *p, struct err *e);
