#pragma once
/*
 * lifecycle - what can be done to a named sandbox as a whole: create, start, stop, pause, remove.
 *
 * Written once here for every face. Each act checks its move against one table of states, takes the
 * sandbox's lock or asks its supervisor, and leaves a line in the audit log, whether it went well
 * or not.
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
	struct images *image; /* open; NULL: the host's */
	char *const *labels;  /* ended by NULL; or NULL */
	uint64_t ttl_ms;      /* 0: for ever */
	char *const *layers;  /* of a checkpoint, highest first; NULL: none */
	const char *origin;   /* where those come from; NULL: none */
	const char *owner;    /* NULL: for whom this process works */
	const char *init;     /* a shell's text, run when it is started first; NULL: none */
};

/* Made, not started. *ret is open and locked; named_done() lets go. */
ERR_CHECKED int lifecycle_create(const struct lifecycle_request *q, struct named *ret,
				 struct err *e);

ERR_CHECKED int lifecycle_start(const struct ak *ak, const char *name, struct err *e);
/* One that is open and locked already: it is started, and the lock is its supervisor's then. */
ERR_CHECKED int lifecycle_start_locked(const struct ak *ak, struct named *n, struct err *e);

enum lifecycle_flags {
	/*
	 * stop, restart: it ends at once, whether its supervisor answers or not. remove: so does
	 * one that runs; one that is not there, or is damaged, is fine
	 */
	LIFECYCLE_FORCE = 1 << 0,
	LIFECYCLE_DRY = 1 << 1, /* only count */
};

#define LIFECYCLE_STOP_DEFAULT_MS UINT64_MAX
ERR_CHECKED int lifecycle_stop(const struct ak *ak, const char *name, uint64_t timeout_ms,
			       unsigned flags, struct err *e);
/* What the last run of a sandbox has left to be told about its workspace, once; or NULL. */
char **lifecycle_take_notices(const struct ak *ak, const char *name);
ERR_CHECKED int lifecycle_restart(const struct ak *ak, const char *name, uint64_t timeout_ms,
				  unsigned flags, struct err *e);
ERR_CHECKED int lifecycle_pause(const struct ak *ak, const char *name, struct err *e);
ERR_CHECKED int lifecycle_resume(const struct ak *ak, const char *name, struct err *e);

ERR_CHECKED int lifecycle_remove(const struct ak *ak, const char *name, unsigned flags,
				 struct err *e);

/* By its own supervisor, when its time is over: it is open and locked. */
void lifecycle_remove_expired(const struct ak *ak, struct named *n);
/*
 * For who finds that it does not run: ERR_NOT_FOUND in words where its time is over, and it is
 * removed. 0 otherwise.
 */
ERR_CHECKED int lifecycle_check_expiry(const struct ak *ak, struct named *n, struct err *e);

/* It is removed so much later than it would be, or so long from now if it would never be. */
ERR_CHECKED int lifecycle_extend(const struct ak *ak, const char *name, uint64_t by_ms,
				 uint64_t *ret_expires_s, struct err *e);

/* New values for some fields of its policy, at once where it runs. */
/* *ret_is_later: it runs, and its disk has the new size from its next start on. */
ERR_CHECKED int lifecycle_update(const struct ak *ak, const char *name,
				 const struct policy_setting *settings, size_t count,
				 bool *ret_is_later, struct err *e);

/* New rules for where it may connect to, at once where it runs. */
enum lifecycle_network { LIFECYCLE_ALLOW, LIFECYCLE_BLOCK, LIFECYCLE_RESET };
ERR_CHECKED int lifecycle_change_network(const struct ak *ak, const char *name,
					 enum lifecycle_network what, char *const *patterns,
					 struct err *e);

/* One of the list, as far as it can be read. */
struct lifecycle_entry {
	struct named named; /* not open */
	struct named_run run;
	enum named_state state;
	const char *reason;                  /* why it is stopped; may be NULL */
	char build[BUILDID_MAX_BYTES];       /* that runs it; "": it does not, or nobody knows */
	bool is_expired;                     /* its time is over: whoever next can removes it */
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* its record cannot be read: why; "" otherwise */
};

struct lifecycle_list {
	struct lifecycle_entry *entries; /* sorted by name */
	size_t count;
};
ERR_CHECKED int lifecycle_list(const struct ak *ak, struct lifecycle_list *ret, struct err *e);
/* Those of the list whose time is over and that nobody runs; what cannot be removed now stays. */
void lifecycle_sweep_expired(const struct ak *ak, const struct lifecycle_list *l);
ERR_CHECKED int lifecycle_info(const struct ak *ak, const char *name, struct lifecycle_entry *ret,
			       struct err *e);
/* True also for one that is paused. */
ERR_CHECKED int lifecycle_is_running(const struct ak *ak, const char *name, bool *ret,
				     struct err *e);
/* It runs, and another build than this one supervises it. */
bool lifecycle_is_outdated(const struct lifecycle_entry *entry);
void lifecycle_list_done(struct lifecycle_list *l);
void lifecycle_entry_done(struct lifecycle_entry *entry);

/* What crashes have left: cgroups, sockets, half-made and half-removed sandboxes, expired ones. */
struct lifecycle_garbage {
	unsigned expired, dead, leftovers, layers, pins, quarantined;
};
ERR_CHECKED int lifecycle_gc(const struct ak *ak, unsigned flags, struct lifecycle_garbage *ret,
			     struct err *e);

/* A line in the audit log about one sandbox; `why` is NULL when it went well. */
void lifecycle_audit(const struct ak *ak, enum auditline_type type, const char *name,
		     const char *what, const struct err *why);
/* About one that its name does not mean any more. */
void lifecycle_audit_of(const struct ak *ak, const struct audit_identity *who,
			enum auditline_type type, const char *name, const char *what,
			const struct err *why);
void lifecycle_audit_limit(const struct ak *ak, const char *name, const char *limit);
/* The denials that came since the last time; *seen counts them. */
void lifecycle_audit_denials(const struct ak *ak, const char *name, const struct gatekeeper *k,
			     unsigned *seen);
