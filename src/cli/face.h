#pragma once
/* face - executes a server program (agentkernel-mcp, agentkernel-serve) with its arguments. */
#include "base/err.h"
#include "cli/runoptions.h"

struct face {
	char *path;
	char **words; /* NULL-terminated */
	size_t count;
};

/* Finds the program; its first arguments are its name and our path. */
ERR_CHECKED int face_begin(struct face *f, const char *program, struct err *e);
void face_done(struct face *f);

void face_add(struct face *f, char *word); /* takes ownership */
void face_add_pair(struct face *f, const char *option, const char *value);
/* Passes the typed options, which are the ceiling of every call, and the rate limits. */
void face_add_ceiling(struct face *f, const struct request *r);

/* Executes the program; returns only on failure. */
ERR_CHECKED int face_become(const struct face *f, char *const *environ_list, struct err *e);
