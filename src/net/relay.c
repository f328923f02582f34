/*
 * relay - one direction of a connection; see relay.h.
 *
 * Theory of operation. All relays read into one shared buffer; only bytes that the other socket
 * does not accept are copied into the relay's own memory (`unsent`), and until these are sent the
 * relay does not read. So a thousand idle connections cost only their structs, and plain read and
 * write are faster than splice() here. A relay that has used up its bandwidth pauses until the next
 * timer.
 *
 * End-of-file is forwarded as a half-close, once everything before it is sent.
 */
#include "net/relay.h"

#include "base/clock.h"
#include "net/throttle.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>

#define READS_A_TURN 4

static bool has_unsent(const struct relay *l)
{
	return l->unsent.len > l->unsent_at;
}

static bool is_passing(int error)
{
	return error == EAGAIN || error == EINTR;
}

static size_t turn_size(const struct relay *l)
{
	size_t size = l->options.turn_max_bytes;
	uint64_t available = throttle_available(l->options.throttle, clock_now_ms());

	if (l->all->unsent_bytes > RELAY_PENDING_MAX_BYTES)
		size = RELAY_READ_SMALL_BYTES;
	if (size > sizeof(l->all->bytes))
		size = sizeof(l->all->bytes);
	return available < size ? (size_t)available : size;
}

/* A relay reads unless it has ended, has unsent bytes or waits for bandwidth. */
static void watch_if_wanted(struct relay *l)
{
	if (!l->has_ended && !l->is_paused && !has_unsent(l))
		(void)event_add(&l->readable, NULL);
}

static void pause_lane(struct relay *l)
{
	static const struct timeval soon = { .tv_usec = RELAY_PAUSE_MS * 1000 };
	struct relays *all = l->all;

	assert(!l->is_paused); /* inserting it twice would corrupt the list */
	(void)event_del(&l->readable);
	l->is_paused = true;
	TAILQ_INSERT_TAIL(&all->paused, l, in_paused);
	if (!evtimer_pending(&all->unpause, NULL))
		(void)evtimer_add(&all->unpause, &soon);
}

static void on_unpause(evutil_socket_t fd, short what, void *context)
{
	struct relays *all = context;
	struct relay *l;

	(void)fd;
	(void)what;
	while ((l = TAILQ_FIRST(&all->paused))) {
		TAILQ_REMOVE(&all->paused, l, in_paused);
		l->is_paused = false;
		watch_if_wanted(l);
	}
}

/* Half-closes the other side when everything is sent. The relay may be freed afterwards. */
static void finish(struct relay *l)
{
	if (!l->has_ended || l->is_shut || has_unsent(l))
		return;
	l->is_shut = true;
	(void)shutdown(l->options.to_fd, SHUT_WR);
	l->all->owner->on_shut(l);
}

bool relay_push(struct relay *l, const void *bytes, size_t len)
{
	ssize_t n = 0;

	if (len == 0)
		return true;
	if (!has_unsent(l)) {
		n = send(l->options.to_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && !is_passing(errno)) {
			l->all->owner->on_broken(l);
			return false;
		}
		n = n < 0 ? 0 : n;
		if ((size_t)n == len)
			return true;
		(void)event_add(&l->writable, NULL);
	}
	buf_add(&l->unsent, (const uint8_t *)bytes + n, len - (size_t)n);
	l->all->unsent_bytes += len - (size_t)n;
	assert(!l->unsent.is_cut); /* a relay only reads if it has nothing unsent */
	(void)event_del(&l->readable);
	return true;
}

static void on_end(struct relay *l)
{
	l->has_ended = true;
	(void)event_del(&l->readable);
	if (l->all->owner->on_end(l))
		finish(l);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct relay *l = context;
	struct relays *all = l->all;

	(void)what;
	for (int i = 0; i < READS_A_TURN; i++) {
		size_t size = turn_size(l);
		ssize_t n;

		if (size == 0) {
			pause_lane(l);
			return;
		}
		n = recv(fd, all->bytes, size, MSG_DONTWAIT);
		if (n < 0) {
			if (!is_passing(errno))
				all->owner->on_broken(l);
			return;
		}
		if (n == 0) {
			on_end(l);
			return;
		}
		throttle_spend(l->options.throttle, (uint64_t)n);
		*l->options.counts[0] += (uint64_t)n;
		*l->options.counts[1] += (uint64_t)n;
		if (!all->owner->on_bytes(l, all->bytes, (size_t)n))
			return;
		if ((size_t)n < size || has_unsent(l))
			return;
	}
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct relay *l = context;
	ssize_t n = send(fd, l->unsent.bytes + l->unsent_at, l->unsent.len - l->unsent_at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)what;
	if (n < 0) {
		if (!is_passing(errno))
			l->all->owner->on_broken(l);
		return;
	}
	l->unsent_at += (size_t)n;
	l->all->unsent_bytes -= (size_t)n;
	if (has_unsent(l))
		return;
	l->unsent_at = 0;
	buf_done(&l->unsent);
	buf_init(&l->unsent, l->options.unsent_max_bytes);
	(void)event_del(&l->writable);
	watch_if_wanted(l);
	finish(l);
}

/* ---- life ---- */

void relay_init_all(struct relays *all, struct event_base *base, const struct relay_owner *owner)
{
	all->base = base;
	all->owner = owner;
	all->unsent_bytes = 0;
	TAILQ_INIT(&all->paused);
	(void)evtimer_assign(&all->unpause, base, on_unpause, all);
}

void relay_done_all(struct relays *all)
{
	(void)evtimer_del(&all->unpause);
}

void relay_open(struct relay *l, struct relays *all, const struct relay_options *o)
{
	*l = (struct relay){ .all = all, .options = *o };
	buf_init(&l->unsent, o->unsent_max_bytes);
	(void)event_assign(&l->readable, all->base, o->from_fd, EV_READ | EV_PERSIST, on_readable,
			   l);
	(void)event_assign(&l->writable, all->base, o->to_fd, EV_WRITE | EV_PERSIST, on_writable,
			   l);
	(void)event_add(&l->readable, NULL);
}

void relay_done(struct relay *l)
{
	(void)event_del(&l->readable);
	(void)event_del(&l->writable);
	if (l->is_paused)
		TAILQ_REMOVE(&l->all->paused, l, in_paused);
	l->all->unsent_bytes -= l->unsent.len - l->unsent_at;
	buf_done(&l->unsent);
}
