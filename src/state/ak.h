#pragma once
/*
 * ak - who uses agentkernel in this process, and where its files are.
 *
 * Opened once, at the start of the program, and passed to every function that reads or writes
 * what outlives a run: the caller's directory, home and environment, the state directory
 * (statedir.h) and the runtime directory, and, for a worker process, on whose behalf it acts.
 */
#include "policy/policy.h"

#define AK_PATH_MAX_BYTES 4096u
#define AK_NAME_MAX_BYTES 63u /* of a sandbox */
#define AK_ID_BYTES 32u       /* of a sandbox */
#define AK_OWNER_MAX_BYTES 80u
#define AK_CREATOR_BYTES 16u

/* On whose behalf this process acts, and so which sandboxes exist for it (named/named). */
struct ak_view {
	bool is_for_face;                        /* false: the user, at the command line */
	bool is_for_library;                     /* a face without a server, for messages */
	char owner[AK_OWNER_MAX_BYTES + 1];      /* "": the administrator */
	char creator[AK_CREATOR_BYTES + 1];      /* "": the user */
	char pinned_name[AK_NAME_MAX_BYTES + 1]; /* "": none */
	char pinned_id[AK_ID_BYTES + 1];
};

struct ak {
	struct policy_caller caller; /* borrows from .cwd and the environment */
	char *state_dir;             /* NULL: the caller has no home directory */
	char *runtime_dir;           /* NULL: there is none */
	struct ak_view view;
	int lifeline_fd; /* closed when whoever asked is gone: commands end then; 0: none */
	const struct policy *ceiling; /* of a server's callers; NULL: the user asks, without one */
	char cwd[AK_PATH_MAX_BYTES];
};

/* Cannot fail: what is missing is NULL, and an error where it is needed. */
void ak_open(struct ak *ak, char *const *environ_list);
void ak_close(struct ak *ak); /* may run twice */
