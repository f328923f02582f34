#pragma once
/*
 * agentprogram - finds an agent's program on this machine, and what a sandbox must show of it.
 *
 * The host image has programs below /usr, /opt and /nix already. A program in a home directory
 * (nvm, npm's own prefix, an installer's) is shown read-only: its package, and the interpreter it
 * names.
 */
#include "base/err.h"

struct ak;

#define AGENTPROGRAM_MOUNTS_MAX 4u

struct agentprogram {
	char *path;                            /* what to execute, inside and outside */
	char *mounts[AGENTPROGRAM_MOUNTS_MAX]; /* directories and files to show, read-only */
	unsigned mount_count;
	char *search_path; /* PATH inside; NULL: the default */
};

/* ERR_NOT_FOUND if it is not installed. */
ERR_CHECKED int agentprogram_find(const struct ak *ak, const char *program,
				  struct agentprogram *ret, struct err *e);
void agentprogram_done(struct agentprogram *p); /* may run twice */
