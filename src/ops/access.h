#pragma once
/*
 * access - what whoever asks may do with a sandbox or a checkpoint that exists.
 *
 * The user, at the command line, may do anything (struct ak has no ceiling). Callers of a server
 * see only what is their owner's (named/named). What the same callers made is theirs to use: it
 * was judged when they made it. What other callers of the same owner made they may stop and
 * remove. Everything else has to be within the ceiling.
 */
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct checkpoint;

/* At the end of a refusal. */
#define ACCESS_CEILING_HINT                                                                        \
	"only the user can allow more, in agentkernel.toml or with options of the server"

enum access_use { ACCESS_USES_IT, ACCESS_ENDS_IT };

/* From here on the name means the sandbox that was checked (named_pin()). */
ERR_CHECKED int access_check_sandbox(struct ak *ak, const char *name, enum access_use use,
				     struct err *e);
/* The same for using it, and it runs afterwards: a stopped one is started. */
ERR_CHECKED int access_need_running(struct ak *ak, const char *name, struct err *e);
bool access_is_creators(const struct ak *ak, const char *creator, enum access_use use);
/* May it be used for a new sandbox, and removed? One without a policy was imported by the user. */
ERR_CHECKED int access_check_checkpoint(const struct ak *ak, const struct checkpoint *c,
					struct err *e);
/* Callers who may not be root in a sandbox of their own may not choose a user in a named one. */
ERR_CHECKED int access_check_user(const struct ak *ak, const char *user, struct err *e);
/* What was asked for, or the ceiling's if that is less; 0: none. */
uint64_t access_timeout_ms(const struct ak *ak, uint64_t asked_ms);

/*
 * A path inside as callers give it: absolute, "~" or "~/..." in the home of the sandbox's user, or
 * relative to its working directory; NULL is that directory. *ret is absolute, and the caller's to
 * free.
 */
ERR_CHECKED int access_resolve_path(const struct ak *ak, const char *sandbox, const char *text,
				    char **ret, struct err *e);
/* The same where the sandbox's policy is at hand. */
ERR_CHECKED int access_resolve_path_by(const struct policy *p, const char *text, char **ret,
				       struct err *e);
