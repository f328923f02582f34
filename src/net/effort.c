/* effort - limits the gate's CPU time for queries and refusals; see effort.h. */
#include "net/effort.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/throttle.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <time.h>

struct effort {
	struct throttle budget_us;
	struct event timer;
	bool is_paused;
	effort_fn *fn;
	void *context;
};

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct effort *f = context;

	(void)fd;
	(void)what;
	f->is_paused = false;
	f->fn(f->context, false);
}

struct effort *effort_new(struct event_base *base, effort_fn *fn, void *context)
{
	struct effort *f = mem_alloc(sizeof(*f));

	f->fn = fn;
	f->context = context;
	throttle_init(&f->budget_us, EFFORT_US_PER_S, EFFORT_BURST_US, clock_now_ms());
	(void)evtimer_assign(&f->timer, base, on_timer, f);
	return f;
}

void effort_free(struct effort *f)
{
	(void)evtimer_del(&f->timer);
	free(f);
}

uint64_t effort_begin(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void effort_end(struct effort *f, uint64_t begun_us)
{
	static const struct timeval pause = { .tv_usec = EFFORT_PAUSE_MS * 1000 };
	uint64_t used_us = effort_begin() - begun_us;

	(void)throttle_available(&f->budget_us, clock_now_ms()); /* refills the bucket */
	throttle_spend(&f->budget_us, used_us);
	if (f->is_paused || throttle_available(&f->budget_us, clock_now_ms()) > 0)
		return;
	f->is_paused = true;
	(void)evtimer_add(&f->timer, &pause);
	f->fn(f->context, true);
}
