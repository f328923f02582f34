#pragma once
/*
 * checkpoint - an immutable copy of a sandbox's written files; create, restore, fork, remove.
 *
 * checkpoints/ID/ in the state directory has a `record` and a `policy`, like a sandbox's; the files
 * are layers (named/layerstore) that a new sandbox has below its own. So creating a sandbox from a
 * checkpoint, or restoring one, takes the same time for any size.
 */
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

#define CHECKPOINT_DIR "checkpoints"
#define CHECKPOINT_ID_BYTES 12u
#define CHECKPOINT_COMMENT_MAX_BYTES 1024u
#define CHECKPOINT_FORKS_MAX 1000u

struct checkpoint {
	char id[CHECKPOINT_ID_BYTES + 1];
	char *sandbox;    /* the name of the source sandbox at that time */
	char *sandbox_id; /* id of the source sandbox; NULL: imported */
	char *owner;      /* the sandbox's owner (named/named) */
	char *creator;    /* the sandbox's creator */
	char *comment;    /* may be NULL */
	char *image;
	char *image_pin; /* NULL: the host's files */
	char **layers;   /* highest first */
	uint64_t created_s;
	uint64_t bytes, entries; /* of what the sandbox had written */
	uint64_t alone_bytes;    /* what its removal frees; valid if has_cost */
	bool has_cost;           /* not in the record: see named/checkpointcost */
	bool has_disk_limit;
	bool is_automatic; /* made by its sandbox's interval (named/checkpointinterval) */
};
bool checkpoint_is_id(const char *text);    /* checks the form only */
void checkpoint_done(struct checkpoint *c); /* may run twice, and on a zeroed struct */

struct checkpoint_list {
	struct checkpoint *entries; /* oldest first */
	size_t count;
	bool has_damaged; /* some records could not be read */
};
/* `sandbox` NULL: lists those of all sandboxes. Does not filter by named_is_visible(). */
ERR_CHECKED int checkpoint_list(const struct ak *ak, const char *sandbox,
				struct checkpoint_list *ret, struct err *e);
void checkpoint_list_done(struct checkpoint_list *l);

/* Removes remains of killed checkpoint commands; adds to *count. Skipped while one is created. */
ERR_CHECKED int checkpoint_sweep(const struct ak *ak, unsigned *count, struct err *e);

/* ERR_NOT_FOUND if there is none, or if it is not visible to the caller (named_is_visible). */
ERR_CHECKED int checkpoint_open(const struct ak *ak, const char *id, struct checkpoint *ret,
				struct err *e);
/* ERR_NOT_FOUND: an imported checkpoint has no policy. */
ERR_CHECKED int checkpoint_load_policy(const struct ak *ak, const char *id, struct policy *ret,
				       struct err *e);

struct checkpoint_timing {
	uint64_t frozen_us, total_us;
};
struct checkpoint_request {
	const char *sandbox;
	const char *comment; /* NULL: none */
	bool is_automatic;   /* for struct checkpoint */
	bool may_skip;       /* makes none if nothing has changed since the sandbox's latest one */
};
/*
 * Copies a stopped sandbox, or a running one, which is frozen only while the copy is made. With
 * may_skip, an id of "" means that none was made.
 */
ERR_CHECKED int checkpoint_create(const struct ak *ak, const struct checkpoint_request *q,
				  struct checkpoint *ret, struct checkpoint_timing *ret_timing,
				  struct err *e);
/* Removes the oldest automatic checkpoints of this sandbox (by its id) until `keep` are left. */
ERR_CHECKED int checkpoint_thin(const struct ak *ak, const char *sandbox_id, uint64_t keep,
				struct err *e);

/*
 * Replaces the sandbox's files by the checkpoint's, after checking the layers' digests. A running
 * sandbox is then stopped and started again, which takes the same time for any size.
 */
ERR_CHECKED int checkpoint_restore(const struct ak *ak, const char *sandbox, const char *id,
				   bool *ret_was_running, struct err *e);
ERR_CHECKED int checkpoint_remove(const struct ak *ak, const char *id, struct err *e);

/* Creates a sandbox on top of a checkpoint without starting it, with the given policy. */
struct checkpoint_use {
	const char *name;
	char *const *labels;
	uint64_t ttl_ms;
	const char *origin;
	const char *owner; /* NULL: named_owner() */
};
ERR_CHECKED int checkpoint_make(const struct ak *ak, const char *id, const struct policy *policy,
				const struct checkpoint_use *use, struct err *e);

/*
 * Copies the sandbox's current files into new sandboxes, which run if it does: "NEW" for a count of
 * 0, else "NEW-1" to "NEW-count".
 */
ERR_CHECKED int checkpoint_fork(const struct ak *ak, const char *sandbox, const char *new_name,
				unsigned count, struct err *e);

/* Writes the record, and the policy unless NULL; then the checkpoint exists. */
ERR_CHECKED int checkpoint_keep(const struct ak *ak, const struct checkpoint *c,
				const struct policy *p, struct err *e);
