#pragma once
/*
 * agenthome - settings that an agent needs in the home of its sandbox to work inside.
 *
 * policy/agent.c has the rows. They are written after a start, if they are not there: a file that
 * the agent, its user or the project's `init` has made stays as it is.
 */
#include "policy/agent.h"
#include "policy/policy.h"

struct ak;

/*
 * The sandbox has to run; `policy` is the one it was made with, `given` holds the variables that
 * the agent gets ("NAME=value", NULL-ended, or NULL). Nothing is written through a mount.
 */
ERR_CHECKED int agenthome_fill(const struct ak *ak, const char *sandbox,
			       const struct policy *policy, const struct agent *a,
			       char *const *given, struct err *e);
