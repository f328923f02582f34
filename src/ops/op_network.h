#pragma once
/* op_network - where sandboxes may connect to: the log, a question, new rules. */
#include "named/lifecycle.h"
#include "net/netlog.h"
#include "ops/networkview.h"

struct ak;
struct op_events;

struct op_network_log_args {
	const char *name; /* NULL: of all sandboxes, for the user only */
};
ERR_CHECKED int op_network_log(struct ak *ak, const struct op_network_log_args *args,
			       const struct op_events *ev, struct netlog_sum *ret, struct err *e);

struct op_network_check_args {
	const char *name;            /* NULL: of the policy below */
	const struct policy *policy; /* what a new sandbox would have */
	const char *target;          /* "HOST", "HOST:PORT", an address with or without a port */
};
ERR_CHECKED int op_network_check(struct ak *ak, const struct op_network_check_args *args,
				 const struct op_events *ev, struct networkview_answer *ret,
				 struct err *e);

struct op_network_change_args {
	const char *name;
	char *const *block, *const *allow; /* ended by NULL; or NULL: none */
	bool resets;                       /* instead: the rules that it was created with */
};
/*
 * Within the ceiling. Only the callers that made a sandbox can allow it more hosts: what the user
 * has put into one of their own may not go to more places because a caller says so.
 */
ERR_CHECKED int op_network_change(struct ak *ak, const struct op_network_change_args *args,
				  const struct op_events *ev, struct err *e);
