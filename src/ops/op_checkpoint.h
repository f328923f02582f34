#pragma once
/* op_checkpoint - checkpoints of named sandboxes: create, list, restore, remove. */
#include "named/checkpoint.h"

struct ak;
struct op_events;

struct op_checkpoint_args {
	const char *name;    /* of the sandbox */
	const char *comment; /* NULL: none */
	const char *every;   /* an interval at which more are made, or "off"; NULL: leaves it */
	uint64_t keep;       /* how many of these; 0: the default */
};
struct op_checkpoint_result {
	struct checkpoint made; /* an id of "": none, because the interval was ended */
	struct checkpoint_timing timing;
	uint64_t every_ms, keep; /* as set by this call; 0: not set */
};
void op_checkpoint_result_done(struct op_checkpoint_result *r);
ERR_CHECKED int op_checkpoint(struct ak *ak, const struct op_checkpoint_args *args,
			      const struct op_events *ev, struct op_checkpoint_result *ret,
			      struct err *e);

struct op_checkpoint_list_args {
	const char *name; /* of one sandbox; NULL: of all */
	const char *id;   /* only this one, by its id or comment; NULL: all */
	bool has_costs;   /* find out what each costs alone */
};
/* Lists those that are visible to the caller. */
ERR_CHECKED int op_checkpoint_list(struct ak *ak, const struct op_checkpoint_list_args *args,
				   const struct op_events *ev, struct checkpoint_list *ret,
				   struct err *e);

struct op_restore_args {
	const char *name;
	const char *id; /* a checkpoint; callers of a server may use its comment */
};
ERR_CHECKED int op_restore(struct ak *ak, const struct op_restore_args *args,
			   const struct op_events *ev, struct err *e);

struct op_checkpoint_remove_args {
	const char *id; /* as above */
};
ERR_CHECKED int op_checkpoint_remove(struct ak *ak, const struct op_checkpoint_remove_args *args,
				     const struct op_events *ev, struct err *e);
