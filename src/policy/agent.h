#pragma once
/*
 * agent - the coding agents that we know: what they are called, what they need.
 *
 * To add one, add a row in agent.c.
 */
#include "policy/mode.h"

/* A file in the home of its sandbox, without which it does not work inside. */
struct agent_file {
	const char *path; /* beneath its home; NULL: the end of a list */
	const char *key;  /* only where this variable is given; NULL: always */
	const char *text;
};

struct agent {
	const char *name;
	const char *program; /* as it is found on PATH */
	const char *package; /* of npm */
	enum mode_id mode;
	const char *const *keys; /* variables that hold its keys; NULL-ended */
	const char *key_alias;   /* of keys, one that gets the value of the first if it is not set
				    itself; or NULL */
	const char *const *env;  /* what it has to be told; "NAME=value", NULL-ended */
	const char *settings;    /* where it keeps its settings in a project: protected inside */
	const struct agent_file *files; /* of the same path the first whose key is given counts */
};

extern const struct agent agent_all[];
extern const size_t agent_count;

/* NULL when there is no such agent. */
const struct agent *agent_find(const char *name);
