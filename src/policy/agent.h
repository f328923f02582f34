#pragma once
/*
 * agent - the supported coding agents: names, packages, keys and settings.
 *
 * To add one, add a row in agent.c.
 */
#include "policy/mode.h"

/* A file in the agent's home directory that it needs to work inside the sandbox. */
struct agent_file {
	const char *path; /* relative to the home directory; NULL ends the list */
	const char *key;  /* write it only if this variable is set; NULL: always */
	const char *text;
};

struct agent {
	const char *name;
	const char *program; /* name of the executable in PATH */
	const char *package; /* on npm */
	enum mode_id mode;
	const char *const *keys; /* variables that hold its keys; NULL-ended */
	const char *key_alias;   /* the one of `keys` that gets the first one's value if it is
				  * not set itself; or NULL */
	const char *const *env;  /* variables it needs: "NAME=value", NULL-ended */
	const char *settings;    /* its settings directory in a project, protected inside */
	const struct agent_file *files; /* per path the first entry whose key is set wins */
};

extern const struct agent agent_all[];
extern const size_t agent_count;

/* NULL if there is no such agent. */
const struct agent *agent_find(const char *name);
