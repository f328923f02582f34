#pragma once
/* networkview - the summed network log, and decisions about a target, for commands and workers. */
#include "base/buf.h"
#include "base/err.h"
#include "net/netlog.h"
#include "policy/policy.h"

#include <stdbool.h>

struct ak;

#define NETWORKVIEW_DEFAULT_PORT 443

/* Sums both files of the log, for one sandbox or (NULL) all; the latest last. */
ERR_CHECKED int networkview_sum(const struct ak *ak, const char *sandbox, struct netlog_sum *ret,
				struct err *e);

/* The decision about a connection, and its reason. */
struct networkview_answer {
	bool is_allowed;
	struct buf target, reason, fix;
	const char *note; /* or NULL */
};
void networkview_answer_init(struct networkview_answer *a);
void networkview_answer_done(struct networkview_answer *a);
/* `target` is "HOST", "HOST:PORT", an address with or without a port. */
ERR_CHECKED int networkview_decide(const struct policy *p, const char *target,
				   struct networkview_answer *ret, struct err *e);
