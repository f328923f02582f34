/* dial - connects to the first of several addresses that answers; see dial.h. */
#include "net/dial.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/plan.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define KEEPALIVE_IDLE_S 300

struct attempt {
	struct dial *dial;
	int fd; /* -1: failed, or not started yet */
	struct event event;
};

struct dial {
	struct event_base *base;
	dial_fn *fn;
	void *context;
	uint16_t port;
	uint64_t deadline_ms;
	int error; /* of the last failed attempt */
	unsigned count, begun, open;
	struct event timer;
	struct address list[DIAL_ADDRESSES_MAX];
	struct attempt attempts[DIAL_ADDRESSES_MAX];
};

static void dial_free(struct dial *d)
{
	(void)evtimer_del(&d->timer);
	for (unsigned i = 0; i < d->begun; i++) {
		if (d->attempts[i].fd < 0)
			continue;
		(void)event_del(&d->attempts[i].event);
		cleanup_closep(&d->attempts[i].fd);
	}
	free(d);
}

void dial_cancel(struct dial *d)
{
	if (d)
		dial_free(d);
}

static void fail(struct dial *d, int error)
{
	dial_fn *fn = d->fn;
	void *context = d->context;

	dial_free(d);
	fn(context, -1, NULL, error);
}

static void succeed(struct attempt *a)
{
	struct dial *d = a->dial;
	dial_fn *fn = d->fn;
	void *context = d->context;
	struct address to = d->list[a - d->attempts];
	int fd = take_fd(&a->fd);

	dial_free(d);
	fn(context, fd, &to, 0);
}

/* Keepalive detects a dead peer, so that the sandbox eventually learns of it. */
static void tune(int fd)
{
	static const int on = 1, idle_s = KEEPALIVE_IDLE_S;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
}

static void next_attempt(struct dial *d);

static void fail_attempt(struct attempt *a, int error)
{
	struct dial *d = a->dial;

	d->error = error;
	cleanup_closep(&a->fd);
	d->open--;
	next_attempt(d);
}

static void on_connected(evutil_socket_t fd, short what, void *context)
{
	struct attempt *a = context;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		fail_attempt(a, error);
		return;
	}
	succeed(a);
}

static void begin(struct attempt *a, const struct address *to)
{
	struct dial *d = a->dial;
	struct sockaddr_storage sa;
	socklen_t len = address_to_sockaddr(to, d->port, &sa);
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		d->error = errno;
		return;
	}
	tune(fd);
	if (address_is_loopback(to))
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, PLAN_CONGESTION,
				 strlen(PLAN_CONGESTION));
	if (connect(fd, (const struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS) {
		d->error = errno;
		(void)close(fd);
		return;
	}
	a->fd = fd;
	d->open++;
	(void)event_assign(&a->event, d->base, fd, EV_WRITE, on_connected, a);
	(void)event_add(&a->event, NULL);
}

static struct timeval time_left(const struct dial *d)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t left_ms = d->deadline_ms > now_ms ? d->deadline_ms - now_ms : 0;

	return (struct timeval){ .tv_sec = (time_t)(left_ms / 1000),
				 .tv_usec = (suseconds_t)(left_ms % 1000 * 1000) };
}

/* Starts the next address, or gives up if none is left and none is in progress. */
static void next_attempt(struct dial *d)
{
	struct timeval stagger = { .tv_usec = DIAL_STAGGER_MS * 1000 };
	unsigned open_before = d->open;

	while (d->begun < d->count && d->open == open_before) {
		struct attempt *a = &d->attempts[d->begun];

		a->dial = d;
		a->fd = -1;
		begin(a, &d->list[d->begun++]);
	}
	if (d->open == 0)
		stagger = (struct timeval){ 0 }; /* the timer fails it: never from within */
	else if (d->begun == d->count)
		stagger = time_left(d);
	(void)evtimer_add(&d->timer, &stagger);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct dial *d = context;

	(void)fd;
	(void)what;
	if (d->open == 0)
		fail(d, d->error ? d->error : EHOSTUNREACH);
	else if (clock_now_ms() >= d->deadline_ms || d->begun == d->count)
		fail(d, ETIMEDOUT);
	else
		next_attempt(d);
}

bool dial_keep(struct dial *d, dial_filter_fn *is_wanted, void *context)
{
	unsigned kept = d->begun, open_before = d->open;
	struct timeval left;

	for (unsigned i = 0; i < d->begun; i++) {
		struct attempt *a = &d->attempts[i];

		if (a->fd < 0 || is_wanted(context, &d->list[i]))
			continue;
		(void)event_del(&a->event);
		cleanup_closep(&a->fd);
		d->open--;
	}
	for (unsigned i = d->begun; i < d->count; i++)
		if (is_wanted(context, &d->list[i]))
			d->list[kept++] = d->list[i];
	d->count = kept;
	if (open_before == 0) /* about to fail by itself */
		return true;
	if (d->begun < d->count) {
		if (d->open == 0)
			next_attempt(d);
		return true;
	}
	left = time_left(d); /* from now on the timer is the overall timeout */
	(void)evtimer_add(&d->timer, &left);
	return d->open > 0;
}

/* Alternates the address families, starting with the first address. */
static void interleave(struct dial *d, const struct address *list, unsigned count)
{
	bool is_taken[DIAL_ADDRESSES_MAX] = { false };
	uint8_t wanted_bits = count ? list[0].bits : 0;

	while (d->count < count) {
		unsigned pick = count;

		for (unsigned i = count; i-- > 0;)
			if (!is_taken[i] && (list[i].bits == wanted_bits || pick == count ||
					     list[pick].bits != wanted_bits))
				pick = i;
		is_taken[pick] = true;
		d->list[d->count++] = list[pick];
		wanted_bits = list[pick].bits == 32 ? 128 : 32;
	}
}

struct dial *dial_start(struct event_base *base, const struct address *list, unsigned count,
			uint16_t port, dial_fn *fn, void *context)
{
	struct dial *d = mem_alloc(sizeof(*d));

	assert(count <= DIAL_ADDRESSES_MAX);
	d->base = base;
	d->fn = fn;
	d->context = context;
	d->port = port;
	d->deadline_ms = clock_now_ms() + DIAL_TIMEOUT_MS;
	interleave(d, list, count);
	(void)evtimer_assign(&d->timer, base, on_timer, d);
	next_attempt(d);
	return d;
}
