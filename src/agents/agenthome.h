#pragma once
/*
 * agenthome - writes the settings that an agent needs inside into its sandbox's home.
 *
 * policy/agent.c has the files. They are written after a start, if missing: a file that the agent,
 * its user or the project's `init` has created stays unchanged.
 */
#include "policy/agent.h"
#include "policy/policy.h"

struct ak;

/*
 * The sandbox must be running; `policy` is its policy, `given` has the agent's variables
 * ("NAME=value", NULL-terminated, or NULL). Nothing is written through a mount.
 */
ERR_CHECKED int agenthome_fill(const struct ak *ak, const char *sandbox,
			       const struct policy *policy, const struct agent *a,
			       char *const *given, struct err *e);
