#pragma once
/*
 * title - what a process of ours is called in ps: what it is, and for which sandbox.
 *
 * A process that was forked still has the command line of the command that it came from. That is
 * the wrong name for a supervisor, and its words are not everybody's business: they may hold a
 * secret (-e TOKEN=...), and a sandbox can read the command line of its pid 1. Whoever becomes
 * something else says so here; nothing of the old command line is left then.
 */

enum title_role {
	TITLE_SUPERVISOR, /* the subject is a sandbox's name */
	TITLE_INIT,       /* pid 1 inside */
	TITLE_GATE,
	TITLE_FILES,  /* works on a sandbox's files */
	TITLE_WORKER, /* for one call of a server: the subject is the operation */
	TITLE_DAEMON,
	TITLE_WARM,
	TITLE_MCP_SERVER,
	TITLE_HTTP_SERVER,

	TITLE_ROLE_COUNT
};

#define TITLE_SUBJECT_MAX_BYTES 80u /* with the end; longer ones are cut */

/*
 * First in main(): keeps the place of the command line for titles, and returns a copy of it, which
 * is to be used instead. The copy lives as long as the process.
 */
char **title_init(char **argv);

/* Both the command line and the name (comm). `subject` may be NULL. */
void title_set(enum title_role role, const char *subject);

/* TITLE_INIT with the subject of the supervisor that this process was forked from, if it has one.
 */
void title_set_init(void);

/* The name alone, for one that shares the memory of another process. */
void title_set_name(const char *name);
