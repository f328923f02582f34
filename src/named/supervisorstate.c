/* supervisorstate - the supervisor's state of a running sandbox; see supervisorstate.h. */
#include "named/supervisorstate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/control.h"
#include "protocol/order.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ORDER_WAIT_MS 2000u
#define ORDER_LOOK_MS 20

void supervisorstate_save_run(struct supervisorstate *k)
{
	struct err ignored;

	(void)!namedrun_save(k->options.named, &k->run, &ignored);
}

void supervisorstate_set_state(struct supervisorstate *k, enum named_state state)
{
	k->run.state = state;
	supervisorstate_save_run(k);
}

void supervisorstate_note_trouble(struct supervisorstate *k, const char *trouble)
{
	const char *before = k->run.checkpoint_trouble ? k->run.checkpoint_trouble : "";

	if (strcmp(before, trouble) == 0)
		return;
	if (trouble[0])
		logfile_say(&k->log, "cannot make a checkpoint: %s", trouble);
	free(k->run.checkpoint_trouble);
	k->run.checkpoint_trouble = trouble[0] ? mem_dup(trouble) : NULL;
	supervisorstate_save_run(k);
}

void supervisorstate_end(struct supervisorstate *k, const char *reason)
{
	if (!k->reason && reason) {
		k->reason = mem_dup(reason);
		logfile_say(&k->log, "it ends: %s", reason);
	}
	k->is_over = true;
}

/* ---- the workspace ---- */

void supervisorstate_look_at_names(struct supervisorstate *k)
{
	struct err e = { 0 };

	if (!k->is_over && newnames_look(&k->session.names, &e) < 0)
		supervisorstate_end(k, e.msg);
}

void supervisorstate_take_notices(const struct supervisorstate *k, unsigned first, struct buf *out)
{
	char *const *notices = k->session.names.notices;

	for (size_t i = first; i < keyrows_list_count(notices); i++)
		buf_add(out, notices[i], strlen(notices[i]) + 1);
}

/* ---- init ---- */

/*
 * An init that accepts no orders for ORDER_WAIT_MS ends the sandbox. The socket is non-blocking,
 * because processes inside can keep init from reading, and must not block us.
 */
void supervisorstate_order(struct supervisorstate *k, uint32_t kind, const void *body, size_t len,
			   const int *fds, unsigned fd_count)
{
	struct pollfd polled = { .fd = k->session.sandbox.orders_fd, .events = POLLOUT };
	uint64_t give_up_ms = clock_now_ms() + ORDER_WAIT_MS;
	int r = k->is_over ? -EPIPE : frame_send(polled.fd, kind, body, len, fds, fd_count);

	while (frame_may_pass(r) && clock_now_ms() < give_up_ms) {
		(void)poll(&polled, 1, ORDER_LOOK_MS);
		r = frame_send(polled.fd, kind, body, len, fds, fd_count);
	}
	if (frame_may_pass(r))
		supervisorstate_end(k, "init takes no orders");
	else if (r < 0)
		supervisorstate_end(k, "init died");
}

void supervisorstate_signal(struct supervisorstate *k, uint32_t id, int number, bool is_for_group)
{
	const struct order_signal body = { id, number, is_for_group };

	supervisorstate_order(k, ORDER_SIGNAL, &body, sizeof(body), NULL, 0);
}

/* ---- freezing and stopping ---- */

/* Starts the janitor first: if we are killed, it ends the frozen processes. */
static int freeze_group(struct supervisorstate *k, struct err *e)
{
	struct session *s = &k->session;

	if (janitor_start(&s->janitor, &s->cgroup, s->sandbox.pid_fd, e) == 0 &&
	    cgroup_freeze(&s->cgroup, e) == 0)
		return 0;
	janitor_dismiss(&s->janitor);
	return -1;
}

int supervisorstate_freeze(struct supervisorstate *k, struct err *e)
{
	const struct order_freeze body = { .number = k->freeze_number + 1 };

	if (k->is_stopping || k->is_over)
		return err_set(e, ERR_BUSY, "sandbox '%s' is stopping", k->options.named->name);
	if (k->freeze_count > 0) {
		k->freeze_count++;
		return 0;
	}
	if (cgroup_can_freeze(&k->session.cgroup)) {
		if (freeze_group(k, e) < 0) {
			logfile_say(&k->log, "cannot freeze: %s", e->msg);
			return -1;
		}
		k->is_still = true;
	} else {
		supervisorstate_order(k, ORDER_FREEZE, &body, sizeof(body), NULL, 0);
		k->freeze_number = body.number;
	}
	k->freeze_count = 1;
	logfile_say(&k->log, "frozen");
	return 0;
}

int supervisorstate_thaw(struct supervisorstate *k, struct err *e)
{
	if (k->freeze_count > 1 || k->freeze_count == 0) {
		k->freeze_count -= k->freeze_count > 0;
		return 0;
	}
	if (!cgroup_can_freeze(&k->session.cgroup))
		supervisorstate_order(k, ORDER_THAW, NULL, 0, NULL, 0);
	else if (cgroup_thaw(&k->session.cgroup, e) < 0)
		return -1;
	janitor_dismiss(&k->session.janitor);
	k->freeze_count = 0;
	k->is_still = false;
	logfile_say(&k->log, "thawed");
	return 0;
}

void supervisorstate_hang_up_freezers(struct supervisorstate *k)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_BUSY, "sandbox '%s' is stopping", k->options.named->name);
	for (unsigned i = 0; i < k->client_count; i++) {
		struct supervisorstate_client *client = &k->clients[i];

		if (client->awaited_request)
			control_fail(client->fd, &e);
		client->awaited_request = 0;
		if (client->is_freezing)
			(void)shutdown(client->fd, SHUT_RDWR);
	}
}

static void end_freezes(struct supervisorstate *k)
{
	struct err ignored;

	supervisorstate_hang_up_freezers(k);
	for (unsigned i = k->freeze_count; i > 0; i--)
		(void)!supervisorstate_thaw(k, &ignored);
	k->is_paused = k->is_dozing = false;
}

void supervisorstate_begin_stop(struct supervisorstate *k, uint64_t timeout_ms)
{
	if (k->is_stopping)
		return;
	k->is_stopping = true;
	logfile_say(&k->log, "stopping: SIGTERM now, SIGKILL in %llu ms",
		    (unsigned long long)timeout_ms);
	k->stop_at_ms = clock_now_ms() + timeout_ms;
	end_freezes(k);
	supervisorstate_signal(k, ORDER_ALL, SIGTERM, false);
	supervisorstate_signal(k, ORDER_ALL, SIGCONT, false);
}
