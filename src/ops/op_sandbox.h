#pragma once
/* op_sandbox - named sandboxes: create, list, start, stop, change, remove. */
#include "named/control.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "ops/request.h"

struct op_events;

/* ---- creating ---- */

struct op_create_args {
	struct request *request; /* not resolved yet */
	const char *name;        /* NULL: the name in the project's file, if any */
	const char *from;        /* a checkpoint, else an image; NULL: the request's image */
	char *const *labels;
	uint64_t ttl_ms;    /* 0: no expiry */
	char *const *words; /* its main service's command; NULL: none */
	bool starts_it;     /* and remove it if the start fails */
};
struct op_create_result {
	char name[NAMED_NAME_MAX_BYTES + 1], id[NAMED_ID_BYTES + 1];
};
ERR_CHECKED int op_create(struct ak *ak, const struct op_create_args *args,
			  const struct op_events *ev, struct op_create_result *ret, struct err *e);

struct op_fork_args {
	const char *name, *new_name;
	unsigned count; /* 0: one sandbox NEW; else NEW-1, NEW-2, ... */
};
ERR_CHECKED int op_fork(struct ak *ak, const struct op_fork_args *args, const struct op_events *ev,
			struct err *e);

/* ---- listing ---- */

struct op_list_args {
	bool is_running; /* only running ones */
};
/* Lists those that are visible to the caller, then removes expired ones. */
ERR_CHECKED int op_list(struct ak *ak, const struct op_list_args *args, const struct op_events *ev,
			struct inventory_list *ret, struct err *e);

struct op_info_args {
	const char *name, *id; /* one of them; the other is NULL */
};
ERR_CHECKED int op_info(struct ak *ak, const struct op_info_args *args, const struct op_events *ev,
			struct inventory_entry *ret, struct err *e);

struct op_stats_args {
	const char *name;
};
ERR_CHECKED int op_stats(struct ak *ak, const struct op_stats_args *args,
			 const struct op_events *ev, struct control_stats *ret, struct err *e);

/* ---- state changes ---- */

struct op_move_args {
	const char *name;
	bool may_be_done;    /* already being in that state is no error */
	bool is_forced;      /* stop, restart: at once; remove: also a running one */
	uint64_t timeout_ms; /* stop, restart: between SIGTERM and SIGKILL */
};
struct op_move_result {
	bool was_done; /* it was already in that state */
};
typedef int op_move_fn(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
		       struct op_move_result *ret, struct err *e);
op_move_fn op_start, op_stop, op_restart, op_pause, op_resume, op_remove;

/* ---- changing ---- */

struct op_update_args {
	const char *name;
	const struct settings *settings;
};
ERR_CHECKED int op_update(struct ak *ak, const struct op_update_args *args,
			  const struct op_events *ev, struct err *e);

struct op_extend_args {
	const char *name;
	uint64_t by_ms;
};
struct op_extend_result {
	uint64_t expires_s;
};
ERR_CHECKED int op_extend(struct ak *ak, const struct op_extend_args *args,
			  const struct op_events *ev, struct op_extend_result *ret, struct err *e);
