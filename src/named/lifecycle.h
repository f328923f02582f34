#pragma once
/*
 * lifecycle - operations on a named sandbox as a whole: create, start, stop, pause, remove.
 *
 * The command line and the servers share them. Each act checks the state against one table, takes
 * the sandbox's lock or asks its supervisor, and writes its result to the audit log.
 */
#include "base/err.h"
#include "named/services.h"
#include "state/auditline.h"
#include "named/named.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct gatekeeper;
struct images;

#define LIFECYCLE_LOCK_WAIT_MS 15000u /* for another command that is changing the sandbox */
#define LIFECYCLE_LOCK_LOOK_MS 50u    /* interval for checking its state meanwhile */

struct lifecycle_request {
	const struct ak *ak;
	const char *name;
	const struct policy *policy;
	struct images *image;            /* open; NULL: the host's files */
	char *const *labels;             /* NULL-terminated; or NULL */
	uint64_t ttl_ms;                 /* 0: no expiry */
	char *const *layers;             /* of a checkpoint, highest first; NULL: none */
	const char *origin;              /* where the layers come from; NULL: none */
	const char *owner;               /* NULL: named_owner() */
	const struct services *services; /* NULL: none */
	const char *init;                /* shell script for the first start; NULL: none */
};

/* Creates without starting. *ret is open and locked; named_done() unlocks it. */
ERR_CHECKED int lifecycle_create(const struct lifecycle_request *q, struct named *ret,
				 struct err *e);

ERR_CHECKED int lifecycle_start(const struct ak *ak, const char *name, struct err *e);
/*
 * Stops the sandbox if it is running, and takes its lock, also if another process is just starting
 * it. With the lock nobody else starts it; lifecycle_start_locked() does.
 */
ERR_CHECKED int lifecycle_lock_stopped(const struct ak *ak, struct named *n, bool *ret_was_running,
				       struct err *e);
/* Starts an open and locked sandbox; the lock passes to its supervisor. */
ERR_CHECKED int lifecycle_start_locked(const struct ak *ak, struct named *n, struct err *e);

enum lifecycle_flags {
	/*
	 * stop, restart: end at once, even if the supervisor does not answer. remove: the same for
	 * a running sandbox; a missing or damaged one is no error
	 */
	LIFECYCLE_FORCE = 1 << 0,
};

#define LIFECYCLE_STOP_DEFAULT_MS UINT64_MAX
ERR_CHECKED int lifecycle_stop(const struct ak *ak, const char *name, uint64_t timeout_ms,
			       unsigned flags, struct err *e);
/* Notices about the workspace that the last run left; each is returned once. NULL: none. */
char **lifecycle_take_notices(const struct ak *ak, const char *name);
ERR_CHECKED int lifecycle_restart(const struct ak *ak, const char *name, uint64_t timeout_ms,
				  unsigned flags, struct err *e);
ERR_CHECKED int lifecycle_pause(const struct ak *ak, const char *name, struct err *e);
ERR_CHECKED int lifecycle_resume(const struct ak *ak, const char *name, struct err *e);

ERR_CHECKED int lifecycle_remove(const struct ak *ak, const char *name, unsigned flags,
				 struct err *e);

/* Removes an open and locked sandbox whose time is over. */
void lifecycle_remove_expired(const struct ak *ak, struct named *n);
/*
 * For callers that found the sandbox not running: if its time is over, removes it and returns
 * ERR_NOT_FOUND; else 0.
 */
ERR_CHECKED int lifecycle_check_expiry(const struct ak *ak, struct named *n, struct err *e);

/* Writes an event of one sandbox to the audit log; `why` is NULL for success. */
void lifecycle_audit(const struct ak *ak, enum auditline_type type, const char *name,
		     const char *what, const struct err *why);
/* Writes the result of an act, which it returns. */
int lifecycle_audit_result(int r, const struct ak *ak, enum auditline_type type, const char *name,
			   const struct err *e);
/* The same as lifecycle_audit() for a sandbox that can no longer be found by its name. */
void lifecycle_audit_of(const struct ak *ak, const struct audit_identity *who,
			enum auditline_type type, const char *name, const char *what,
			const struct err *why);
void lifecycle_audit_limit(const struct ak *ak, const char *name, const char *limit);
/* Logs the denials since *seen, and updates it. */
void lifecycle_audit_denials(const struct ak *ak, const char *name, const struct gatekeeper *k,
			     unsigned *seen);
