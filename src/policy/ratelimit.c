/* ratelimit - limits the calls of a caller to a tool; see ratelimit.h. */
#include "policy/ratelimit.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* `moments` is a ring buffer; once it is full, `next` is the oldest entry. */
struct pair {
	char *caller, *tool;
	uint64_t *moments;
	uint64_t count, next;
};

struct ratelimit {
	uint64_t calls, window_ms;
	struct pair *pairs;
	unsigned pair_count;
};

struct ratelimit *ratelimit_new(uint64_t calls, uint64_t window_ms)
{
	struct ratelimit *r = mem_alloc(sizeof(*r));

	assert(calls > 0 && window_ms > 0);
	*r = (struct ratelimit){ .calls = calls, .window_ms = window_ms };
	return r;
}

static void pair_done(struct pair *p)
{
	free(p->caller);
	free(p->tool);
	free(p->moments);
}

void ratelimit_free(struct ratelimit *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->pair_count; i++)
		pair_done(&r->pairs[i]);
	free(r->pairs);
	free(r);
}

void ratelimit_freep(struct ratelimit **r)
{
	ratelimit_free(*r);
	*r = NULL;
}

static uint64_t last_moment(const struct ratelimit *r, const struct pair *p)
{
	return p->count ? p->moments[(p->next + r->calls - 1) % r->calls] : 0;
}

static struct pair *make_room(struct ratelimit *r)
{
	struct pair *oldest;

	if (r->pair_count < RATELIMIT_PAIRS_MAX) {
		r->pairs = mem_grow(r->pairs, r->pair_count + 1, sizeof(*r->pairs));
		return &r->pairs[r->pair_count++];
	}
	oldest = &r->pairs[0];
	for (unsigned i = 1; i < r->pair_count; i++)
		if (last_moment(r, &r->pairs[i]) < last_moment(r, oldest))
			oldest = &r->pairs[i];
	pair_done(oldest);
	return oldest;
}

static struct pair *find(struct ratelimit *r, const char *caller, const char *tool)
{
	struct pair *p;

	for (unsigned i = 0; i < r->pair_count; i++)
		if (strcmp(r->pairs[i].caller, caller) == 0 && strcmp(r->pairs[i].tool, tool) == 0)
			return &r->pairs[i];
	p = make_room(r);
	*p = (struct pair){ .caller = mem_dup(caller), .tool = mem_dup(tool) };
	return p;
}

int ratelimit_take(struct ratelimit *r, const char *caller, const char *tool, uint64_t now_ms,
		   uint64_t *ret_wait_ms, struct err *e)
{
	struct pair *p = find(r, caller, tool);
	uint64_t free_at_ms;

	assert(r->calls > 0);
	if (p->count == r->calls) {
		free_at_ms = p->moments[p->next] + r->window_ms;
		if (now_ms < free_at_ms) {
			*ret_wait_ms = free_at_ms - now_ms;
			return err_set(e, ERR_LIMIT,
				       "'%s' was called %" PRIu64 " times in %" PRIu64
				       " s, which is the limit ([tools] rate_limit); try again in "
				       "%" PRIu64 " ms",
				       tool, r->calls, r->window_ms / 1000, *ret_wait_ms);
		}
	}
	if (p->count < r->calls)
		p->moments = mem_grow(p->moments, ++p->count, sizeof(*p->moments));
	p->moments[p->next] = now_ms;
	p->next = (p->next + 1) % r->calls;
	return 0;
}
