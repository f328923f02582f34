#pragma once
/*
 * access - what a caller may do with an existing sandbox or checkpoint.
 *
 * The user, at the command line, may do anything (struct ak has no ceiling). Callers of a server
 * see only the sandboxes of their owner (named/named). They may use what callers with the same
 * server options created, because it was checked at its creation. They may stop and remove what
 * other callers of the same owner created. Everything else must be within the ceiling.
 */
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct checkpoint;

/* Who set the ceiling ("the server"), and the end of a refusal's message: who can raise it. */
const char *access_ceiling_owner(const struct ak *ak);
const char *access_ceiling_hint(const struct ak *ak);

enum access_use { ACCESS_USES_IT, ACCESS_ENDS_IT };

/* Afterwards the name refers only to the checked sandbox (named_pin()). */
ERR_CHECKED int access_check_sandbox(struct ak *ak, const char *name, enum access_use use,
				     struct err *e);
/* The same for use, and starts the sandbox if it is stopped. */
ERR_CHECKED int access_need_running(struct ak *ak, const char *name, struct err *e);
bool access_is_creators(const struct ak *ak, const char *creator, enum access_use use);
/* May it be used for a new sandbox, or removed? One without a policy was imported by the user. */
ERR_CHECKED int access_check_checkpoint(const struct ak *ak, const struct checkpoint *c,
					struct err *e);
/* Callers that may not be root in their own sandboxes may not choose a user in a named one. */
ERR_CHECKED int access_check_user(const struct ak *ak, const char *user, struct err *e);
/* The requested timeout, at most the ceiling's; 0: none. */
uint64_t access_timeout_ms(const struct ak *ak, uint64_t asked_ms);

/*
 * Resolves a path inside: absolute, "~" or "~/..." in the home of the sandbox's user, or relative
 * to its working directory; NULL is that directory. *ret is absolute; the caller frees it.
 */
ERR_CHECKED int access_resolve_path(const struct ak *ak, const char *sandbox, const char *text,
				    char **ret, struct err *e);
/* The same with the sandbox's policy already loaded. */
ERR_CHECKED int access_resolve_path_by(const struct policy *p, const char *text, char **ret,
				       struct err *e);
