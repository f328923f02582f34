#pragma once
/*
 * janitor - removes a sandbox's cgroups if its supervisor was killed.
 *
 * Everything else of a sandbox disappears with its processes; a cgroup is a directory that stays.
 * The janitor is a small process in its own process group that waits for the end of its supervisor;
 * a supervisor that cleans up itself dismisses it. A named sandbox has one only while it is frozen,
 * because the next command finds its cgroups in its record.
 *
 * It shares the supervisor's memory (but not its descriptors), because copying it would be the most
 * expensive part of the start; it reads only its own struct and has its own stack.
 */
#include "base/err.h"

#include <sys/types.h>

struct cgroup;

struct janitor {
	pid_t pid; /* 0: none */
	struct janitor_memory *memory;
};

/*
 * Call between cgroup_plan() and cgroup_make(), so that no cgroup exists without it. Or before a
 * named sandbox is frozen: SIGKILL affects a frozen process only once it is thawed, so the janitor
 * kills the init behind init_fd (-1: none) and thaws its cgroup. Until then it keeps inherited
 * descriptors open, including the sandbox's lock.
 */
ERR_CHECKED int janitor_start(struct janitor *j, const struct cgroup *c, int init_fd,
			      struct err *e);

/* Ends the janitor, after the supervisor has removed the cgroups itself. */
void janitor_dismiss(struct janitor *j);
