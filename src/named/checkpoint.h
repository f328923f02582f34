#pragma once
/*
 * checkpoint - a frozen, immutable copy of what a sandbox has written, and what can be made of it.
 *
 * checkpoints/ID/ in the state directory: `record` and `policy`, like a sandbox's; the files are
 * layers (named/layerstore) that a new sandbox has below its own. So making one from a checkpoint,
 * or putting a sandbox back to one, takes as long for a large one as for a small one.
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
	char *sandbox;    /* of which sandbox it was taken: its name then, */
	char *sandbox_id; /* and its id; NULL: it was imported */
	char *owner;      /* as the sandbox's (named/named) */
	char *creator;    /* the same */
	char *comment;    /* may be NULL */
	char *image;
	char *image_pin; /* NULL: the host's */
	char **layers;   /* highest first */
	uint64_t created_s;
	uint64_t bytes, entries; /* of the highest layer */
	bool has_disk_limit;
};
bool checkpoint_is_id(const char *text);    /* in its form; it need not be there */
void checkpoint_done(struct checkpoint *c); /* may run twice, and on a zeroed struct */

struct checkpoint_list {
	struct checkpoint *entries; /* oldest first */
	size_t count;
	bool has_damaged; /* there are some whose record cannot be read */
};
/* `sandbox` NULL: of all. Also those that named_is_visible() would leave out. */
ERR_CHECKED int checkpoint_list(const struct ak *ak, const char *sandbox,
				struct checkpoint_list *ret, struct err *e);
void checkpoint_list_done(struct checkpoint_list *l);

/* What a killed process left of one, made or removed; adds to *count. Nothing while one is made. */
ERR_CHECKED int checkpoint_sweep(const struct ak *ak, unsigned *count, struct err *e);

/* ERR_NOT_FOUND when there is none, or none that is visible (named/named). */
ERR_CHECKED int checkpoint_open(const struct ak *ak, const char *id, struct checkpoint *ret,
				struct err *e);
/* ERR_NOT_FOUND: it was imported and has none. */
ERR_CHECKED int checkpoint_load_policy(const struct ak *ak, const char *id, struct policy *ret,
				       struct err *e);

struct checkpoint_timing {
	uint64_t frozen_us, total_us;
};
/* Of a running sandbox, which is frozen for the copy only, or of a stopped one. */
ERR_CHECKED int checkpoint_create(const struct ak *ak, const char *sandbox, const char *comment,
				  struct checkpoint *ret, struct checkpoint_timing *ret_timing,
				  struct err *e);

/*
 * The sandbox becomes what the checkpoint is. One that runs is stopped and started again. The
 * layers' digests are checked.
 */
ERR_CHECKED int checkpoint_restore(const struct ak *ak, const char *sandbox, const char *id,
				   bool *ret_was_running, struct err *e);
ERR_CHECKED int checkpoint_remove(const struct ak *ak, const char *id, struct err *e);

/* A new sandbox on top of it, created and not started, with its policy or one made from that. */
struct checkpoint_use {
	const char *name;
	char *const *labels;
	uint64_t ttl_ms;
	const char *origin;
	const char *owner; /* NULL: for whom this process works */
};
ERR_CHECKED int checkpoint_make(const struct ak *ak, const char *id, const struct policy *policy,
				const struct checkpoint_use *use, struct err *e);

/*
 * Sandboxes that start where this one is, and run if it does: "NEW" for a count of 0, else "NEW-1"
 * to "NEW-count".
 */
ERR_CHECKED int checkpoint_fork(const struct ak *ak, const char *sandbox, const char *new_name,
				unsigned count, struct err *e);

/* Writes the record, and the policy unless it is NULL; from then on it counts. */
ERR_CHECKED int checkpoint_keep(const struct ak *ak, const struct checkpoint *c,
				const struct policy *p, struct err *e);
