#pragma once
/*
 * eventcall - a call under way (rpc/call) in libevent's loop.
 *
 * on_over is called when the call ends, also after it was cancelled; the owner may free it then or
 * later, but not before.
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
	uint64_t progress_at_ms; /* 0: no progress wanted */
	const char *owner;       /* whose sandboxes it may see; NULL: all */

	void *context;
	void (*on_over)(void *context, json_t *result); /* takes ownership of the result */
	/* May be NULL: more input can be added; is the receiver of output full; progress is due. */
	void (*on_input_taken)(void *context);
	bool (*is_full)(void *context);
	void (*on_progress)(void *context, const char *words);
};

#define EVENTCALL_PROGRESS_MS 5000u

void eventcall_init(struct eventcall *r, struct event_base *base);
void eventcall_done(struct eventcall *r); /* may run twice; kills a running call */

/* Borrows `args`; `more_rows` (may be NULL) is only for the worker process. */
ERR_CHECKED int eventcall_start(struct eventcall *r, const struct call_options *o,
				const struct operation *operation, const json_t *args,
				const char *more_rows, struct err *e);
void eventcall_cancel(struct eventcall *r);
void eventcall_end_input(struct eventcall *r);
/* Call after adding bytes to its input. */
void eventcall_go_on(struct eventcall *r);
