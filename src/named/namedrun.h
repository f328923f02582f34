#pragma once
/*
 * namedrun - the file `run` of a named sandbox: what its last start created and how it ended.
 *
 * It is saved before the cgroups it names are made, so that they can be removed after a crash. A
 * state in it that says "running" holds only while a process has the sandbox's lock.
 */
#include "named/named.h"

enum named_state {
	NAMED_CREATED,
	NAMED_RUNNING,
	NAMED_PAUSED,
	NAMED_STOPPED,
	NAMED_DOZING, /* frozen when idle: its supervisor wakes it */
	NAMED_ASLEEP, /* stopped when idle: a start wakes it (named/wake) */

	NAMED_STATE_COUNT
};
const char *namedrun_state_word(enum named_state state);
bool namedrun_is_live(enum named_state state); /* does it have a supervisor? */

struct namedrun {
	uint64_t state; /* enum named_state */
	uint64_t supervisor_pid, init_pid;
	uint64_t started_s, ended_s;
	uint32_t host_gid;        /* the sandbox's group 0 outside */
	uint32_t switches_ids;    /* commands may run as other users */
	char *reason;             /* why it ended; NULL: on request */
	char **cgroups;           /* paths */
	char *checkpoint_trouble; /* why the last checkpoint by interval failed; or NULL */
};

void namedrun_done(struct namedrun *r);

/* ERR_NOT_FOUND: never started. */
ERR_CHECKED int namedrun_load(const struct named *n, struct namedrun *ret, struct err *e);
ERR_CHECKED int namedrun_save(const struct named *n, const struct namedrun *r, struct err *e);
/* Appends the processes of the run to the file, once they are known. */
ERR_CHECKED int namedrun_add_processes(const struct named *n, const struct namedrun *r,
				       struct err *e);

/*
 * The current state: a free lock overrides the file. *ret_reason is r's or static; may be NULL.
 * ret_build is the build of the supervisor that holds the lock, or "".
 */
enum named_state namedrun_judge(const struct named *n, const struct namedrun *r,
				char ret_build[BUILDID_MAX_BYTES], const char **ret_reason);

/*
 * Kills the supervisor named in the run file, if that process has the sandbox's lock open: its pid
 * may have been reused. ERR_NOT_FOUND if it does not.
 */
ERR_CHECKED int namedrun_kill_supervisor(const struct named *n, struct err *e);
