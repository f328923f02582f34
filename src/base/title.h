#pragma once
/*
 * title - sets the name of a process in ps: its role, and its sandbox.
 *
 * A forked process still has the command line of the command that it came from. For a supervisor
 * that is the wrong name, and it may contain a secret (-e TOKEN=...) that others could read: a
 * sandbox can read the command line of its pid 1. A process that takes another role calls
 * title_set(), which removes all of the old command line.
 */

enum title_role {
	TITLE_SUPERVISOR, /* the subject is a sandbox's name */
	TITLE_INIT,       /* pid 1 inside */
	TITLE_GATE,
	TITLE_FILES,       /* works on a sandbox's files */
	TITLE_CHECKPOINT,  /* copies them, at an interval */
	TITLE_WORKER,      /* for one call of a server: the subject is the operation */
	TITLE_PORT_HOLDER, /* holds published ports of sleeping sandboxes */
	TITLE_DAEMON,
	TITLE_WARM,
	TITLE_MCP_SERVER,
	TITLE_HTTP_SERVER,

	TITLE_ROLE_COUNT
};

#define TITLE_SUBJECT_MAX_BYTES 80u /* with the NUL; longer ones are truncated */

/*
 * Call first in main(): reserves the memory of the command line for titles, and returns a copy to
 * use instead, which is the caller's to free when it ends.
 */
char **title_init(char **argv);

/* Sets the command line and the name (comm). `subject` may be NULL. */
void title_set(enum title_role role, const char *subject);

/* TITLE_INIT with the subject of the supervisor that this process was forked from, if any. */
void title_set_init(void);

/* Sets only the name, for a process that shares another's memory. */
void title_set_name(const char *name);
