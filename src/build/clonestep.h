#pragma once
/*
 * clonestep - clones a repository that is a build's context: by git in a sandbox among this machine's
 * programs, so that the gate decides what is reached and nothing of the caller's is seen.
 */
#include "base/err.h"
#include "policy/policy.h"

struct ak;

/*
 * "ADDRESS[#REF[:DIRECTORY]]" into `dir`, an empty directory; *ret_subdir is the directory in it, ""
 * for the top; the caller frees it. Takes a process of its own, which ends before this returns.
 */
ERR_CHECKED int clonestep_run(const struct ak *ak, struct policy *policy, const char *address,
			      const char *dir, char **ret_subdir, struct err *e);
