#pragma once
/*
 * ratelimit - limits the calls of one caller to one tool in any window of time.
 *
 * Exact: the times of the last calls are kept, so no burst can pass at the border of two windows.
 * Refused calls do not count. Reads no clock: the caller passes the time.
 */
#include "base/err.h"

#include <stdint.h>

#define RATELIMIT_PAIRS_MAX 4096u /* of a caller and a tool; the least recently used is evicted */

struct ratelimit;

struct ratelimit *ratelimit_new(uint64_t calls, uint64_t window_ms);
void ratelimit_free(struct ratelimit *r); /* NULL is fine */
void ratelimit_freep(struct ratelimit **r);

/* Counts the call, or fails with ERR_LIMIT and the time to wait, also in *ret_wait_ms. */
ERR_CHECKED int ratelimit_take(struct ratelimit *r, const char *caller, const char *tool,
			       uint64_t now_ms, uint64_t *ret_wait_ms, struct err *e);
