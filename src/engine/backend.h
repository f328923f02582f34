#pragma once
/*
 * backend - who builds the walls of a sandbox: the one seam behind which that is decided.
 *
 * A backend is a row in backend.c. session_prepare() finds everything a sandbox needs that does not
 * depend on the backend (ids, the directories it shows, cgroups, the gate); the row's functions
 * start it and end it. `native` (nativebackend.c) uses namespaces; only engine/native*.c include
 * sandbox/. A backend that boots a kernel of its own gets the same session: its first process is in
 * the sandbox's cgroup, its network is the session's namespace, and what it cannot keep it refuses
 * by option in check(), never silently.
 *
 * To add one: a name in policy/policy.c (policy_backends), a row in backend.c, a file of its own.
 */
#include "base/err.h"
#include "protocol/handle.h"

#include <stdbool.h>
#include <stddef.h>

struct doctor_finding;
struct policy;
struct session;

enum backend_ability {
	BACKEND_PASSES_STREAMS = 1 << 0, /* commands get the caller's descriptors; else relayed */
	BACKEND_HAS_ROOT_FD = 1 << 1,    /* the root's files can be opened from outside */
	BACKEND_CHANGES_LIMITS = 1 << 2, /* while it runs */
	BACKEND_HAS_GATE = 1 << 3,       /* its network obeys the gate */
	BACKEND_WAITS = 1 << 4,          /* it can be built before its places are known (pool) */
};

/* The command of a sandbox that does not serve; all borrowed. Zero for one that serves. */
struct backend_command {
	char *const *argv, *const *envp;
	int stdio_fd[3];
	bool has_tty;
};

struct backend {
	const char *name;
	unsigned abilities; /* enum backend_ability */

	/* Refuses what this backend cannot keep, naming the option. Touches nothing. */
	int (*check)(const struct policy *p, struct err *e);
	/* Fills in s->sandbox and the session's decisions about filters and cpus. */
	int (*start)(struct session *s, const struct backend_command *command, unsigned streams,
		     struct err *e);
	/* Which filter a later command gets: a number that this backend's init understands. */
	unsigned (*choose_filter)(const struct session *s, unsigned streams);
	/* To the command of a sandbox that does not serve. */
	void (*signal)(const struct handle *h, int number, bool is_to_group);
	/* Kills and thaws all of it and waits; output that was not read yet is not lost. */
	void (*stop)(struct handle *h);
	/* For doctor: what this host has of it. Returns how many findings, at most `max`. */
	size_t (*probe)(struct doctor_finding *ret, size_t max);
};

/* The policy's. */
const struct backend *backend_of(const struct policy *p);
/* All of them, ended by NULL. */
extern const struct backend *const backend_all[];

extern const struct backend nativebackend;
