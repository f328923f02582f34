#pragma once
/*
 * cgroup - resource limits on a whole sandbox, on cgroup v1 or v2.
 *
 * cgroup_plan() derives the controllers that the policy needs (a memory limit needs the memory
 * controller) and finds where the caller may create groups; cgroup_make() creates one group per
 * hierarchy: a single one on v2, one per controller on v1. If the caller may not create groups,
 * kind is CGROUP_NONE and the caller decides how to proceed.
 *
 * The group is a sibling or a child of the caller's own, so the caller's limits still apply.
 */
#include "base/err.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct policy;

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* v1 only; v2 accounts cpu time in every group */
	CGROUP_IO,
	CGROUP_FREEZER, /* v1 only; v2 can freeze every group */

	CGROUP_CONTROLLER_COUNT
};

#define CGROUP_NAME_MAX_BYTES 64
#define CGROUP_CPU_PERIOD_US 100000u

struct cgroup {
	enum cgroup_kind kind;
	bool has_v1;    /* this host has v1 hierarchies, whether or not we use them */
	unsigned wants; /* optional controllers, as bits: used if available */
	char name[CGROUP_NAME_MAX_BYTES];
	const char *disk_path; /* one more directory whose disk is limited; borrowed, may be NULL */
	/* v1: one per controller in use, -1 otherwise. v2: only [0]. */
	int parent_fd[CGROUP_CONTROLLER_COUNT];
	int dir_fd[CGROUP_CONTROLLER_COUNT];  /* -1 until created */
	int join_fd[CGROUP_CONTROLLER_COUNT]; /* v1: the group's `tasks`, for the child */
};

/* Sets kind to CGROUP_NONE and all descriptors to -1. */
void cgroup_init(struct cgroup *c);

/* The controllers that the policy's limits need, as bits. */
unsigned cgroup_needs(const struct policy *p);

enum cgroup_flags {
	/*
	 * For a named sandbox: use every available controller, even those without a limit now, so
	 * that the sandbox can be frozen, measured and limited later.
	 */
	CGROUP_WANTS_ALL = 1 << 0,
};

/*
 * Finds where the groups can be created and chooses their name, but creates nothing: the caller
 * first records both for the clean-up after a crash. If this caller may not create groups, returns
 * success with CGROUP_NONE and the reason in *ret_why (static text).
 */
ERR_CHECKED int cgroup_plan(const struct policy *p, unsigned flags, struct cgroup *ret,
			    const char **ret_why, struct err *e);

/*
 * Appends the paths of the groups, each followed by a newline, for cgroup_remove_path() after a
 * crash. That function refuses paths that do not have the form of ours.
 */
struct buf;
void cgroup_format_paths(const struct cgroup *c, struct buf *out);
bool cgroup_remove_path(const char *path); /* false: the group still has processes */
/* Kills the processes of a group whose owner died, frozen or not. cgroup_remove_path() follows. */
void cgroup_end_path(const char *path);

/*
 * Removes empty groups whose creators are dead, from the directories where this caller would create
 * its own. cgroup_sweep_beside() does this for the parent directories of `c`, and looks at so few
 * entries that it can be called at every start.
 */
void cgroup_sweep(void);
void cgroup_sweep_beside(const struct cgroup *c);

/* Creates the groups and sets the limits. On failure no group is left. */
ERR_CHECKED int cgroup_make(struct cgroup *c, const struct policy *p, struct err *e);

/* In the child, v1 only: joins all groups. On v2 clone3() creates the child in its group. */
ERR_CHECKED int cgroup_join(const struct cgroup *c, struct err *e);

/* The v2 group's descriptor for clone3(), -1 on v1. Borrowed. */
int cgroup_clone_fd(const struct cgroup *c);

/* Closes the descriptors and keeps the groups; for a child that has joined them. */
void cgroup_release(struct cgroup *c);

/* Removes the groups, if created; their processes must be dead. Waits briefly for the kernel. */
void cgroup_remove(struct cgroup *c);

/* Applies the policy's limits to existing groups. A limit of 0 leaves the current value. */
ERR_CHECKED int cgroup_set_limits(const struct cgroup *c, const struct policy *p, struct err *e);

/* cgroup_freeze() stops all processes and waits until they have stopped; cgroup_thaw() resumes. */
bool cgroup_can_freeze(const struct cgroup *c);
ERR_CHECKED int cgroup_freeze(const struct cgroup *c, struct err *e);
ERR_CHECKED int cgroup_thaw(const struct cgroup *c, struct err *e);
/* Thaws processes that have just been killed, whoever froze them. Allocates no memory. */
void cgroup_thaw_for_end(const struct cgroup *c);

struct cgroup_usage {
	bool has_memory, has_pids, has_cpu, has_io;
	uint64_t memory_bytes;
	uint64_t peak_memory_bytes;
	uint64_t oom_kill_count;
	uint64_t pids_count;
	uint64_t pids_refused_count; /* forks and clones that the limit refused */
	uint64_t cpu_us;
	uint64_t read_bytes, written_bytes;
};

/* CPU time of all processes that ever ran in the group; false if the kernel does not report it. */
bool cgroup_get_cpu_us(const struct cgroup *c, uint64_t *ret_us);

void cgroup_get_usage(const struct cgroup *c, struct cgroup_usage *ret);
/* Only .pids_refused_count of the above. */
uint64_t cgroup_get_pids_refused(const struct cgroup *c);

/* Sets the CPU affinity of all tasks in the group; tasks that exit meanwhile are ignored. */
void cgroup_set_affinity(const struct cgroup *c, const cpu_set_t *set);
