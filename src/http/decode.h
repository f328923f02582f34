#pragma once
/*
 * decode - turns the path and body of a request into an operation's arguments (policy/operation).
 *
 * A body's members are the operation's parameters: what the operation does not know is refused
 * when they are read (rpc/arguments). Other words of the published SDK for the same things are in
 * one table; nothing is left out in silence.
 */
#include "http/webcall.h"

/* `body` is NULL for a route without one; *ret is a new reference. */
webcall_args_fn decode_about, decode_create, decode_detached, decode_download, decode_exec,
	decode_file, decode_file_read, decode_file_write, decode_id, decode_name, decode_nothing,
	decode_run, decode_snapshot, decode_upload, decode_uuid;

/* Adds the query parameters that the route knows; refuses others. */
ERR_CHECKED int decode_add_query(const struct webcall *x, json_t *args, struct err *e);

/* The body must have exactly this member: an object or an array of at most `max` entries. */
ERR_CHECKED int decode_expect_only(const json_t *body, const char *name, json_type kind, size_t max,
				   json_t **ret, struct err *e);
/* One command of a batch, like the body of /run. */
ERR_CHECKED int decode_batched(const json_t *item, json_t **ret, struct err *e);
