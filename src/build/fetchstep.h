#pragma once
/*
 * fetchstep - fetches what an ADD names by an address: in a sandbox, so that the gate decides what is
 * reached, with the rules of every RUN.
 *
 * Runs in a process of its own, which is the sandbox's supervisor; in it the image helper is the
 * client, among this machine's own programs.
 */
#include "base/err.h"
#include "policy/policy.h"

struct ak;

struct fetchstep {
	const struct ak *ak;
	struct policy *policy; /* changed here: the process ends afterwards */
	const char *program;   /* path of the image helper */
	const char *address;
	const char *checksum; /* "sha256:..."; NULL: none is known */
	int out_fd;           /* gets the bytes */
	int lifeline_fd;
};

ERR_CHECKED int fetchstep_run(const struct fetchstep *s, struct err *e);
