/* pump - copies bytes without blocking; see pump.h. */
#include "engine/pump.h"

#include "base/cleanup.h"

#include <errno.h>
#include <unistd.h>

#define TERMINAL_EOF '\x04'

bool pump_is_open(const struct pump *p)
{
	return p->from_fd >= 0 || p->len > 0;
}

struct pollfd pump_poll(const struct pump *p)
{
	if (p->len > 0)
		return (struct pollfd){ .fd = p->to_fd, .events = POLLOUT };
	return (struct pollfd){ .fd = p->from_fd, .events = POLLIN };
}

static void end(struct pump *p)
{
	if (p->flags & PUMP_EOF_IS_BYTE && p->from_fd >= 0)
		(void)!write(p->to_fd, &(char){ TERMINAL_EOF }, 1);
	if (p->flags & PUMP_CLOSES_TO)
		cleanup_closep(&p->to_fd);
	p->from_fd = -1;
	p->len = 0;
}

static void on_readable(struct pump *p)
{
	ssize_t n = read(p->from_fd, p->piece, sizeof(p->piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* a terminal whose other side is closed says EIO */
		end(p);
		return;
	}
	if (p->to_buf) {
		buf_add(p->to_buf, p->piece, (size_t)n);
		return;
	}
	p->start = 0;
	p->len = (size_t)n;
}

static void on_writable(struct pump *p)
{
	ssize_t n = write(p->to_fd, p->piece + p->start, p->len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) { /* nobody reads any more */
		end(p);
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

void pump_drain(struct pump *p)
{
	while (pump_is_open(p)) {
		struct pollfd polled = pump_poll(p);

		/* a reader that does not read must not hold up the end: it has had its time */
		if (poll(&polled, 1, p->len > 0 ? 1000 : 0) <= 0)
			return;
		pump_on_ready(p);
	}
}
