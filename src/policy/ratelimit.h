#pragma once
/*
 * ratelimit - so many calls of one caller to one tool in any window of time.
 *
 * Exact: the moments of the last calls are kept, so no burst at the seam of two windows gets
 * through. What is refused does not count. Pure: who asks says what time it is.
 */
#include "base/err.h"

#include <stdint.h>

#define RATELIMIT_PAIRS_MAX 4096u /* of a caller and a tool; the longest unused one makes way */

struct ratelimit;

struct ratelimit *ratelimit_new(uint64_t calls, uint64_t window_ms);
void ratelimit_free(struct ratelimit *r); /* NULL is fine */
void ratelimit_freep(struct ratelimit **r);

/* ERR_LIMIT with the time to wait, which *ret_wait_ms has as well; otherwise the call counts. */
ERR_CHECKED int ratelimit_take(struct ratelimit *r, const char *caller, const char *tool,
			       uint64_t now_ms, uint64_t *ret_wait_ms, struct err *e);
