#pragma once
/*
 * op_audit - what the audit log tells whoever asks.
 *
 * A line is told to whoever may use the sandbox that it is about: of the caller's owner
 * (named/named), within the ceiling, and that very sandbox, by its id, not another of the same
 * name. Of one that is gone nobody can tell what it was allowed to do: an owner is told of what it
 * did itself, anyone else only that it was removed. The user is told everything.
 */
#include "state/auditline.h"

#include <stdint.h>

struct ak;
struct op_events;

/* `line` is the whole of it, `next_offset` where the next one begins. */
typedef void op_audit_line_fn(void *context, const struct auditline *a, const char *line,
			      uint64_t next_offset);

struct op_audit_args {
	const char *name; /* only about this sandbox; what happened lately. NULL: about all */
	uint64_t offset;  /* of the log, where all begins; at most 64 KiB are read in one call */
	op_audit_line_fn *on_line;
	void *context;
};
struct op_audit_result {
	uint64_t next_offset;
};
ERR_CHECKED int op_audit(struct ak *ak, const struct op_audit_args *args,
			 const struct op_events *ev, struct op_audit_result *ret, struct err *e);
