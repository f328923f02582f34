#pragma once
/*
 * janitor - removes a sandbox's cgroups when its supervisor was killed before it could.
 *
 * Everything else of a sandbox goes away with its processes; a cgroup is a directory that
 * stays. The janitor is a small process in a process group of its own that waits for the end of its
 * supervisor and does nothing at all when the supervisor has cleaned up itself. A named sandbox has
 * one only while it is frozen: its record names its cgroups for the next command.
 *
 * It shares the supervisor's memory (but not its descriptors), since copying it would be the
 * dearest part of starting it; it reads only what was laid down for it and has its own stack.
 */
#include "base/err.h"

#include <sys/types.h>

struct cgroup;

struct janitor {
	pid_t pid; /* 0: none */
	struct janitor_memory *memory;
};

/*
 * Between cgroup_plan() and cgroup_make(): what is not made yet cannot be missed. Or before a named
 * sandbox is frozen: SIGKILL reaches a frozen process only once it is thawed, so the janitor kills
 * the init behind init_fd (-1: none) and thaws its group. Until that is done it also holds what it
 * has inherited, the sandbox's lock among it.
 */
ERR_CHECKED int janitor_start(struct janitor *j, const struct cgroup *c, int init_fd,
			      struct err *e);

/* The supervisor has removed the cgroups itself. */
void janitor_dismiss(struct janitor *j);
