#pragma once
/*
 * eventcall - a call under way (rpc/call) in libevent's loop.
 *
 * Whoever started it is told when it is over, also after it was cancelled, and may release it then
 * or later; not before.
 */
#include "rpc/call.h"

#include <event2/event.h>
#include <stdbool.h>

struct eventcall {
	struct call call;
	struct event_base *base;
	struct event *events[CALL_POLL_MAX];
	unsigned event_count;
	struct event *timer;
	uint64_t progress_at_ms; /* 0: nobody wants to know */
	const char *owner;       /* whose sandboxes it may see; NULL: everyone's */

	void *context;
	void (*on_over)(void *context, json_t *result); /* takes the result */
	/* These may be NULL: more input can be added; output cannot be passed on at the moment;
	 * time has passed. */
	void (*on_input_taken)(void *context);
	bool (*is_full)(void *context);
	void (*on_progress)(void *context, const char *words);
};

#define EVENTCALL_PROGRESS_MS 5000u

void eventcall_init(struct eventcall *r, struct event_base *base);
void eventcall_done(struct eventcall *r); /* may run twice; one that is not over is killed */

/* `args` is borrowed; `more_rows` (may be NULL) is for the worker process alone. */
ERR_CHECKED int eventcall_start(struct eventcall *r, const struct call_options *o,
				const struct operation *operation, const json_t *args,
				const char *more_rows, struct err *e);
void eventcall_cancel(struct eventcall *r);
void eventcall_end_input(struct eventcall *r);
/* After bytes were added to its input. */
void eventcall_go_on(struct eventcall *r);
