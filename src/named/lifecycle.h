#pragma once
/*
 * lifecycle - operations on a named sandbox as a whole: create, start, stop, pause, remove.
 *
 * The command line and the servers share them. Each act checks the state against one table, takes
 * the sandbox's lock or asks its supervisor, and writes its result to the audit log.
 */
#include "base/err.h"
#include "state/auditline.h"
#include "named/named.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct gatekeeper;
struct images;
struct policy_setting;

struct lifecycle_request {
	const struct ak *ak;
	const char *name;
	const struct policy *policy;
	struct images *image; /* open; NULL: the host's files */
	char *const *labels;  /* NULL-terminated; or NULL */
	uint64_t ttl_ms;      /* 0: no expiry */
	char *const *layers;  /* of a checkpoint, highest first; NULL: none */
	const char *origin;   /* where the layers come from; NULL: none */
	const char *owner;    /* NULL: named_owner() */
	const char *init;     /* shell script for the first start; NULL: none */
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
	LIFECYCLE_DRY = 1 << 1, /* only count */
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

/* Postpones the expiry by by_ms; without an expiry, sets one by_ms from now. */
ERR_CHECKED int lifecycle_extend(const struct ak *ak, const char *name, uint64_t by_ms,
				 uint64_t *ret_expires_s, struct err *e);
/* Sets the interval of named/checkpointinterval, and how many are kept; 0: no interval. */
ERR_CHECKED int lifecycle_set_checkpoints(const struct ak *ak, const char *name, uint64_t every_ms,
					  uint64_t keep, struct err *e);

/* Changes some fields of the policy, at once if the sandbox is running. */
/* *ret_is_later: it is running, and the new disk size takes effect at its next start. */
ERR_CHECKED int lifecycle_update(const struct ak *ak, const char *name,
				 const struct policy_setting *settings, size_t count,
				 bool *ret_is_later, struct err *e);

/* Changes the network rules, at once if the sandbox is running. */
enum lifecycle_network { LIFECYCLE_ALLOW, LIFECYCLE_BLOCK, LIFECYCLE_RESET };
ERR_CHECKED int lifecycle_change_network(const struct ak *ak, const char *name,
					 enum lifecycle_network what, char *const *patterns,
					 struct err *e);

/* One sandbox of the list, as far as its files are readable. */
struct lifecycle_entry {
	struct named named; /* not open */
	struct named_run run;
	enum named_state state;
	const char *reason;            /* why it is stopped; may be NULL */
	char build[BUILDID_MAX_BYTES]; /* of its supervisor; "": not running or not known */
	bool is_expired;               /* its time is over; the next command or gc removes it */
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why its record is unreadable; "": it is readable */
};

struct lifecycle_list {
	struct lifecycle_entry *entries; /* sorted by name */
	size_t count;
};
ERR_CHECKED int lifecycle_list(const struct ak *ak, struct lifecycle_list *ret, struct err *e);
/* Removes the expired, stopped sandboxes of the list; failures are ignored. */
void lifecycle_sweep_expired(const struct ak *ak, const struct lifecycle_list *l);
ERR_CHECKED int lifecycle_info(const struct ak *ak, const char *name, struct lifecycle_entry *ret,
			       struct err *e);
/* True also for a paused sandbox. */
ERR_CHECKED int lifecycle_is_running(const struct ak *ak, const char *name, bool *ret,
				     struct err *e);
/* True if it is running under a supervisor of another build. */
bool lifecycle_is_outdated(const struct lifecycle_entry *entry);
void lifecycle_list_done(struct lifecycle_list *l);
void lifecycle_entry_done(struct lifecycle_entry *entry);

/* Counts what gc removed or would remove: leftovers of crashes, expired and dead sandboxes. */
struct lifecycle_garbage {
	unsigned expired, dead, leftovers, layers, pins, quarantined;
};
ERR_CHECKED int lifecycle_gc(const struct ak *ak, unsigned flags, struct lifecycle_garbage *ret,
			     struct err *e);

/* Writes an event of one sandbox to the audit log; `why` is NULL for success. */
void lifecycle_audit(const struct ak *ak, enum auditline_type type, const char *name,
		     const char *what, const struct err *why);
/* The same for a sandbox that can no longer be found by its name. */
void lifecycle_audit_of(const struct ak *ak, const struct audit_identity *who,
			enum auditline_type type, const char *name, const char *what,
			const struct err *why);
void lifecycle_audit_limit(const struct ak *ak, const char *name, const char *limit);
/* Logs the denials since *seen, and updates it. */
void lifecycle_audit_denials(const struct ak *ak, const char *name, const struct gatekeeper *k,
			     unsigned *seen);
