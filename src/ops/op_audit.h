#pragma once
/*
 * op_audit - reads the audit log for a caller.
 *
 * A caller sees lines about sandboxes that it may use: of its owner (named/named), within the
 * ceiling, and identified by id, not by a name that another sandbox may have now. The policy of a
 * removed sandbox is unknown: then an owner sees its own sandbox's lines, and others only the
 * removal. The user sees everything.
 */
#include "state/auditline.h"

#include <stdint.h>

struct ak;
struct op_events;

/* `line` is the original line, `next_offset` the offset of the next one. */
typedef void op_audit_line_fn(void *context, const struct auditline *a, const char *line,
			      uint64_t next_offset);

struct op_audit_args {
	const char *name; /* only this sandbox, from the current file; NULL: all */
	uint64_t offset;  /* where to start reading all; one call reads at most 64 KiB */
	op_audit_line_fn *on_line;
	void *context;
};
struct op_audit_result {
	uint64_t next_offset;
};
ERR_CHECKED int op_audit(struct ak *ak, const struct op_audit_args *args,
			 const struct op_events *ev, struct op_audit_result *ret, struct err *e);
