/* eventcall - a running call in libevent's loop; see eventcall.h. */
#include "http/eventcall.h"

#include "base/clock.h"
#include "base/keyrows.h"
#include "rpc/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_AGAIN_MS 50

static void watch(struct eventcall *r);

void eventcall_init(struct eventcall *r, struct event_base *base)
{
	*r = (struct eventcall){ .base = base };
	call_init(&r->call);
}

/*
 * Call before its descriptors are closed: a process that is just being started may hold a copy for
 * a moment, and epoll would keep reporting the old file, under a number that is reused by then.
 */
static void forget_events(struct eventcall *r)
{
	while (r->event_count > 0)
		event_free(r->events[--r->event_count]);
}

void eventcall_done(struct eventcall *r)
{
	forget_events(r);
	if (r->timer)
		event_free(r->timer);
	r->timer = NULL;
	call_done(&r->call);
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct eventcall *r = context;
	const struct pollfd polled = {
		.fd = fd, .revents = (what & EV_READ ? POLLIN : 0) | (what & EV_WRITE ? POLLOUT : 0)
	};

	forget_events(r);
	call_on_ready(&r->call, &polled, 1);
	if (r->call.is_over) {
		r->on_over(r->context, call_take_result(&r->call));
		return;
	}
	if (r->call.has_more_input && r->on_input_taken)
		r->on_input_taken(r->context);
	watch(r);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct eventcall *r = context;
	uint64_t now_ms = clock_now_ms();
	char words[64];

	(void)fd;
	(void)what;
	(void)call_on_time(&r->call, now_ms);
	if (r->progress_at_ms && now_ms >= r->progress_at_ms) {
		(void)snprintf(words, sizeof(words), "running for %" PRIu64 " s",
			       (now_ms - r->call.started_ms) / 1000);
		r->progress_at_ms = now_ms + EVENTCALL_PROGRESS_MS;
		r->on_progress(r->context, words);
	}
	watch(r);
}

static bool is_full(const struct eventcall *r)
{
	return r->is_full && r->is_full(r->context);
}

/* Re-registers events: the set of descriptors changes after each one. */
static void watch(struct eventcall *r)
{
	struct pollfd polled[CALL_POLL_MAX];
	unsigned count = call_poll(&r->call, polled);
	int wait_ms = call_on_time(&r->call, clock_now_ms());
	struct timeval later;
	bool is_blocked = is_full(r);

	forget_events(r);
	for (unsigned i = 0; i < count; i++) {
		bool is_output = polled[i].fd == r->call.fds[CALL_STDOUT] ||
				 polled[i].fd == r->call.fds[CALL_STDERR];
		struct event *event;

		if (is_output && is_blocked)
			continue;
		event = event_new(r->base, polled[i].fd,
				  polled[i].events & POLLOUT ? EV_WRITE : EV_READ, on_ready, r);
		event_add(event, NULL);
		r->events[r->event_count++] = event;
	}
	if ((is_blocked || r->progress_at_ms) && (wait_ms < 0 || wait_ms > LOOK_AGAIN_MS))
		wait_ms = LOOK_AGAIN_MS;
	if (wait_ms < 0)
		return;
	if (!r->timer)
		r->timer = event_new(r->base, -1, 0, on_timer, r);
	later = (struct timeval){ wait_ms / 1000, wait_ms % 1000 * 1000 };
	event_add(r->timer, &later);
}

int eventcall_start(struct eventcall *r, const struct call_options *o,
		    const struct operation *operation, const json_t *args, const char *more_rows,
		    struct err *e)
{
	struct arguments arguments;
	int ok;

	arguments_init(&arguments);
	ok = arguments_read(operation, args, &arguments, e);
	if (ok == 0) {
		if (r->owner)
			keyrows_put(&arguments.rows, WIRE_OWNER, r->owner);
		if (more_rows)
			buf_add(&arguments.rows, more_rows, strlen(more_rows) + 1);
		arguments.has_input = arguments.has_input || r->call.has_more_input;
		ok = call_start(&r->call, o, operation, &arguments, e);
	}
	arguments_done(&arguments);
	if (ok == 0)
		watch(r);
	return ok;
}

void eventcall_cancel(struct eventcall *r)
{
	forget_events(r);
	call_end_input(&r->call);
	call_cancel(&r->call);
	watch(r);
}

void eventcall_end_input(struct eventcall *r)
{
	forget_events(r);
	call_end_input(&r->call);
	watch(r);
}

void eventcall_go_on(struct eventcall *r)
{
	watch(r);
}
