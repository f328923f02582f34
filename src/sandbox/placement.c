/* placement - a warm sandbox waits to be told what it shows; see placement.h. */
#include "sandbox/placement.h"

#include "base/cleanup.h"
#include "base/signals.h"
#include "protocol/order.h"
#include "host/privs.h"
#include "protocol/report.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <poll.h>

/* Also polls the lifeline, because the supervisor may die while we wait. */
static int wait_for_order(struct placement *p, struct err *e)
{
	struct pollfd polled[] = { { .fd = p->orders_fd, .events = POLLIN },
				   { .fd = p->lifeline_fd, .events = POLLIN } };
	int r;

	do
		r = poll(polled, COUNT_OF(polled), -1);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_sys(e, errno, "wait for a claim");
	if (polled[1].revents)
		return err_set(e, ERR_SYSTEM, "the supervisor ended while the sandbox waited");
	r = frame_receive(p->orders_fd, FRAME_WAIT, &p->frame);
	if (r < 0)
		return err_sys(e, -r, "receive what the sandbox should show");
	if (r == 0 || p->frame.kind != ORDER_PLACES || p->frame.fd_count == 0)
		return err_set(e, ERR_SYSTEM, "nobody said what the sandbox should show");
	p->placed_fd = take_fd(&p->frame.fds[0]);
	return 0;
}

/* Slow steps of sandbox/native and sandbox/serve, done early, while no client waits for this one.
 */
static int prepare_init(const struct placement *p, struct err *e)
{
	signals_reset();
	if (privs_bound_init(e) < 0 || privs_seclude(e) < 0)
		return -1;
	return seccomp_begin_mounting(p->seccomp_variant, e);
}

int placement_await(struct placement *p, struct rootfs_options *o, struct err *e)
{
	if (prepare_init(p, e) < 0)
		return -1;
	report_started(p->report_fd);
	if (wait_for_order(p, e) < 0)
		return -1;
	return places_parse(&p->frame, &p->places, &o->shown, e);
}
