#pragma once
/*
 * cgroup - limits on a whole sandbox, whichever hierarchy this host has.
 *
 * cgroup_plan() finds out what the policy needs (a memory limit needs the memory controller)
 * and where it can be had; cgroup_make() makes one group per hierarchy: a single one on v2, one
 * per controller on v1. Where the caller may not make groups, kind is CGROUP_NONE and the caller
 * decides what that means.
 *
 * The group is made next to or below the caller's own, so the caller's limits still hold.
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
	unsigned wants; /* controllers that are taken where they can be had, as bits */
	char name[CGROUP_NAME_MAX_BYTES];
	const char *disk_path; /* a directory more whose disk is limited; borrowed, may be NULL */
	/* v1: one per controller in use, -1 otherwise. v2: only [0]. */
	int parent_fd[CGROUP_CONTROLLER_COUNT];
	int dir_fd[CGROUP_CONTROLLER_COUNT];  /* -1 until made */
	int join_fd[CGROUP_CONTROLLER_COUNT]; /* v1: its `tasks` file, for the child */
};

/* "None": no groups, no descriptors. */
void cgroup_init(struct cgroup *c);

/* The controllers that the policy's limits need, as bits. */
unsigned cgroup_needs(const struct policy *p);

enum cgroup_flags {
	/*
	 * For a sandbox that stays: every controller that can be had, whatever is limited now, so
	 * that it can be frozen, measured and limited later.
	 */
	CGROUP_WANTS_ALL = 1 << 0,
};

/*
 * Finds where the groups can be made and chooses their name, but makes nothing yet: whoever
 * cleans up after a crash must know both first. CGROUP_NONE, and success, when this caller may
 * not make them; `ret_why` then says why (static text).
 */
ERR_CHECKED int cgroup_plan(const struct policy *p, unsigned flags, struct cgroup *ret,
			    const char **ret_why, struct err *e);

/*
 * Where the groups are or will be, as paths ended by a newline each, for whoever has to remove them
 * after a crash: cgroup_remove_path(). Only paths of groups that we could have made are removed.
 */
struct buf;
void cgroup_format_paths(const struct cgroup *c, struct buf *out);
bool cgroup_remove_path(const char *path); /* false: it still has processes */
/* Before that: ends what is left in a group whose owner died, frozen or not. */
void cgroup_end_path(const char *path);

/*
 * Removes the empty groups, beside those that this caller would make, whose makers are dead:
 * cgroup_make() does so where it makes one.
 */
void cgroup_sweep(void);

/* Makes the groups and sets the limits. On failure nothing is left. */
ERR_CHECKED int cgroup_make(struct cgroup *c, const struct policy *p, struct err *e);

/* The child, v1: joins all groups. On v2 the child is born in its group. */
ERR_CHECKED int cgroup_join(const struct cgroup *c, struct err *e);

/* A descriptor of the v2 group for clone3(), -1 on v1. Stays the cgroup's. */
int cgroup_clone_fd(const struct cgroup *c);

/* Closes the descriptors and keeps the groups: for a child that has joined. */
void cgroup_release(struct cgroup *c);

/* Removes the groups, made or not; their processes must be dead. Waits a moment for the kernel. */
void cgroup_remove(struct cgroup *c);

/* Sets the limits of a group that exists, to those of the policy. A limit of 0 stays as it was. */
ERR_CHECKED int cgroup_set_limits(const struct cgroup *c, const struct policy *p, struct err *e);

/* Can the group be frozen? And: stops all processes and waits until they have, or lets them go. */
bool cgroup_can_freeze(const struct cgroup *c);
ERR_CHECKED int cgroup_freeze(const struct cgroup *c, struct err *e);
ERR_CHECKED int cgroup_thaw(const struct cgroup *c, struct err *e);
/* For processes that have just been killed: whoever froze them, and without allocating memory. */
void cgroup_thaw_for_end(const struct cgroup *c);

struct cgroup_usage {
	bool has_memory, has_pids, has_cpu, has_io;
	uint64_t memory_bytes;
	uint64_t peak_memory_bytes;
	uint64_t oom_kill_count;
	uint64_t pids_count;
	uint64_t pids_refused_count; /* processes and threads that the limit did not allow */
	uint64_t cpu_us;
	uint64_t read_bytes, written_bytes;
};

/* Processor time of all that ever ran in the group; false where the kernel does not tell. */
bool cgroup_get_cpu_us(const struct cgroup *c, uint64_t *ret_us);

void cgroup_get_usage(const struct cgroup *c, struct cgroup_usage *ret);
/* One figure of it: .pids_refused_count. */
uint64_t cgroup_get_pids_refused(const struct cgroup *c);

/* Lets all tasks of the group run on `set` alone; those that end meanwhile are left out. */
void cgroup_set_affinity(const struct cgroup *c, const cpu_set_t *set);
