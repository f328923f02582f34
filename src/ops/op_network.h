#pragma once
/* op_network - network log, decisions and rules of sandboxes. */
#include "named/reconfigure.h"
#include "net/netlog.h"
#include "ops/networkview.h"

struct ak;
struct op_events;

struct op_network_log_args {
	const char *name; /* NULL: of all sandboxes, only for the user */
};
ERR_CHECKED int op_network_log(struct ak *ak, const struct op_network_log_args *args,
			       const struct op_events *ev, struct netlog_sum *ret, struct err *e);

struct op_network_check_args {
	const char *name;            /* NULL: use the policy below */
	const struct policy *policy; /* of a new sandbox */
	const char *target;          /* "HOST", "HOST:PORT", an address with or without a port */
};
ERR_CHECKED int op_network_check(struct ak *ak, const struct op_network_check_args *args,
				 const struct op_events *ev, struct networkview_answer *ret,
				 struct err *e);

struct op_network_change_args {
	const char *name;
	char *const *block, *const *allow; /* NULL-terminated; or NULL: none */
	bool resets;                       /* instead: restore the rules of its creation */
};
/*
 * Within the ceiling. Only callers that created a sandbox can allow it more hosts: a caller must
 * not open more connections for data that the user put into a sandbox.
 */
ERR_CHECKED int op_network_change(struct ak *ak, const struct op_network_change_args *args,
				  const struct op_events *ev, struct err *e);
