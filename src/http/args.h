#pragma once
/*
 * args - the arguments of an operation (policy/operation), from the path and body of a request.
 *
 * A body's members are the operation's parameters: what the operation does not know is refused
 * when they are read (ops/arguments). Other words of the published SDK for the same things are in
 * one table; nothing is left out in silence.
 */
#include "http/webcall.h"

/* `body` is NULL for a route without one; *ret is a new reference. */
webcall_args_fn args_about, args_create, args_detached, args_download, args_exec, args_file,
	args_file_read, args_file_write, args_id, args_name, args_nothing, args_run, args_snapshot,
	args_upload, args_uuid;

/* What the query says, as far as the route knows it; the rest is refused. */
ERR_CHECKED int args_add_query(const struct webcall *x, json_t *args, struct err *e);

/* The body has this one member and no other; `kind` is an object or an array, of at most `max`. */
ERR_CHECKED int args_expect_only(const json_t *body, const char *name, json_type kind, size_t max,
				 json_t **ret, struct err *e);
/* One command of a batch: as the body of /run. */
ERR_CHECKED int args_batched(const json_t *item, json_t **ret, struct err *e);
