#pragma once
/*
 * running - a call under way (ops/call) in libevent's loop.
 *
 * Whoever started it is told when it is over, also after it was cancelled, and may release it then
 * or later; not before.
 */
#include "ops/call.h"

#include <event2/event.h>
#include <stdbool.h>

struct running {
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

#define RUNNING_PROGRESS_MS 5000u

void running_init(struct running *r, struct event_base *base);
void running_done(struct running *r); /* may run twice; one that is not over is killed */

/* `args` is borrowed; `more_rows` (may be NULL) is for the errand alone. */
ERR_CHECKED int running_start(struct running *r, const struct call_options *o,
			      const struct operation *operation, const json_t *args,
			      const char *more_rows, struct err *e);
void running_cancel(struct running *r);
void running_end_input(struct running *r);
/* After bytes were added to its input. */
void running_go_on(struct running *r);
