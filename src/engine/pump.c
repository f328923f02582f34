/* pump - copies bytes from one descriptor to another; see pump.h. */
#include "engine/pump.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_EOF '\x04'

void pump_init(struct pump *p, int from_fd, int to_fd, unsigned flags)
{
	p->from_fd = from_fd;
	p->to_fd = to_fd;
	p->to_buf = NULL;
	p->flags = flags;
	p->start = p->len = 0;
	p->has_met_stop = false;
}

void pump_done(struct pump *p)
{
	if (p->flags & PUMP_OWNS_FROM)
		cleanup_closep(&p->from_fd);
	if (p->flags & PUMP_OWNS_TO)
		cleanup_closep(&p->to_fd);
	p->from_fd = p->to_fd = -1;
	p->len = 0;
}

bool pump_is_open(const struct pump *p)
{
	return p->from_fd >= 0 || p->len > 0;
}

bool pump_has_lost_reader(const struct pump *p)
{
	return p->from_fd >= 0 && p->to_fd < 0 && !p->to_buf;
}

bool pump_has_met_stop(const struct pump *p)
{
	return p->has_met_stop;
}

struct pollfd pump_poll(const struct pump *p)
{
	if (p->len > 0)
		return (struct pollfd){ .fd = p->to_fd, .events = POLLOUT };
	return (struct pollfd){ .fd = p->from_fd, .events = POLLIN };
}

/* Sends the EOF character twice: after an unfinished line, the first only ends that line. */
static void on_end_of_input(struct pump *p)
{
	if (!(p->flags & PUMP_EOF_IS_BYTE) || p->to_fd < 0) {
		pump_done(p);
		return;
	}
	p->from_fd = -1;
	p->start = 0;
	p->len = 2;
	p->piece[0] = p->piece[1] = TERMINAL_EOF;
}

static void on_readable(struct pump *p)
{
	ssize_t n = read(p->from_fd, p->piece, sizeof(p->piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* reading a terminal whose other side is closed fails with EIO */
		on_end_of_input(p);
		return;
	}
	if (p->flags & PUMP_STOPS) {
		const char *stop = memchr(p->piece, PUMP_STOP, (size_t)n);

		p->has_met_stop = stop;
		n = stop ? stop - p->piece : n;
	}
	if (p->to_buf)
		buf_add(p->to_buf, p->piece, (size_t)n);
	if (p->to_fd < 0)
		return;
	p->start = 0;
	p->len = (size_t)n;
}

/* If we own the source, closes it, so that the writer gets SIGPIPE; else drops its bytes. */
static void on_lost_reader(struct pump *p)
{
	if (p->flags & PUMP_OWNS_FROM) {
		pump_done(p);
		return;
	}
	if (p->flags & PUMP_OWNS_TO)
		cleanup_closep(&p->to_fd);
	p->to_fd = -1;
	p->len = 0;
}

static void on_writable(struct pump *p)
{
	ssize_t n = write(p->to_fd, p->piece + p->start, p->len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		on_lost_reader(p);
		return;
	}
	p->start += (size_t)n;
	p->len -= (size_t)n;
}

void pump_on_ready(struct pump *p)
{
	if (p->len > 0)
		on_writable(p);
	else if (p->from_fd >= 0)
		on_readable(p);
}

void pump_drain(struct pump *p, int stop_fd, int wait_ms)
{
	while (pump_is_open(p) && !(p->flags & PUMP_INPUT)) {
		struct pollfd polled[] = { pump_poll(p), { .fd = stop_fd, .events = POLLIN } };

		/* what an ended writer left is readable at once */
		if (poll(polled, 2, p->len > 0 ? wait_ms : 0) <= 0 || !polled[0].revents)
			return;
		pump_on_ready(p);
	}
}
