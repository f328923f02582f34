/* op_reach - prepares connections into a sandbox; see op_reach.h. */
#include "ops/op_reach.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dialin.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/control.h"
#include "named/reconfigure.h"
#include "named/wake.h"
#include "ops/access.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_US 3000
#define PROBE_WAIT_MS 1000

void op_reach_result_init(struct op_reach_result *r)
{
	*r = (struct op_reach_result){ .dial_fd = -1, .control_fd = -1 };
}

void op_reach_result_done(struct op_reach_result *r)
{
	free(r->owner);
	keyrows_list_free(&r->public_ports);
	cleanup_closep(&r->dial_fd);
	cleanup_closep(&r->control_fd);
	op_reach_result_init(r);
}

static int ask(struct op_reach_result *r, uint32_t port, struct control_reached *ret, struct err *e)
{
	const struct control_reach body = { .port = port };
	CLEANUP(frame_done) struct frame f = { 0 };

	if (control_ask(r->control_fd, CONTROL_REACH, &body, sizeof(body), &f, e) < 0)
		return -1;
	if (f.len != sizeof(*ret) || f.fd_count != 1)
		return err_set(e, ERR_REMOTE, "the supervisor gave a strange answer");
	memcpy(ret, f.bytes, sizeof(*ret));
	cleanup_closep(&r->dial_fd);
	r->dial_fd = take_fd(&f.fds[0]);
	return 0;
}

/* Does a server listen there? Nothing is sent to it. */
static bool is_open(int dial_fd, uint32_t port, enum dialin_family family)
{
	const struct dialin_target target = { .family = (uint16_t)family, .port = (uint16_t)port };
	struct pollfd polled = { .fd = -1, .events = POLLIN };
	cleanup_fd int answer_fd = -1;
	cleanup_fd int fd = -1;
	socklen_t len = sizeof(int);
	int error = 0;

	if (dialin_ask(dial_fd, &target, &answer_fd) < 0)
		return false;
	polled.fd = answer_fd;
	(void)poll(&polled, 1, PROBE_WAIT_MS);
	if (dialin_take(answer_fd, &fd) < 0)
		return false;
	polled = (struct pollfd){ .fd = fd, .events = POLLOUT };
	return poll(&polled, 1, PROBE_WAIT_MS) > 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

/* A service that never answers is found out by the connection itself. */
static int await_port(struct op_reach_result *r, uint32_t port, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + REACH_READY_WAIT_MS;
	struct control_reached reached;

	for (;;) {
		if (ask(r, port, &reached, e) < 0)
			return -1;
		if (reached.readiness != CONTROL_PORT_STARTING || clock_now_ms() >= end_ms)
			return 0;
		if (is_open(r->dial_fd, port, DIALIN_IPV4) ||
		    is_open(r->dial_fd, port, DIALIN_IPV6))
			return 0;
		(void)usleep(LOOK_US);
	}
}

/*
 * A port that its owner made public is reached whatever the sandbox may do. To look is allowed:
 * whoever asks still has to be let in.
 */
static int check_access(struct ak *ak, const struct op_reach_args *args, const struct named *n,
			struct err *e)
{
	char port[16];

	(void)snprintf(port, sizeof(port), "%u", args->port);
	if (args->is_looking || keyrows_list_has(n->public_ports, port))
		return 0;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) == 0)
		return 0;
	if (e->code != ERR_DENIED)
		return -1;
	return err_set(e, ERR_DENIED,
		       "sandbox '%s' may do more than callers of this server, so its port %u is "
		       "closed to them ('agentkernel port public %s %u' opens it)",
		       args->name, args->port, args->name, args->port);
}

int op_reach(struct ak *ak, const struct op_reach_args *args, const struct op_events *ev,
	     struct op_reach_result *ret, struct err *e)
{
	CLEANUP(op_reach_result_done) struct op_reach_result r;
	CLEANUP(named_done) struct named n;
	struct control_reached main_one;

	(void)ev;
	op_reach_result_init(&r);
	named_init(&n);
	if (named_open(ak, args->name, &n, e) < 0 || check_access(ak, args, &n, e) < 0)
		return -1;
	memcpy(r.id, n.id, sizeof(r.id));
	r.owner = n.owner ? mem_dup(n.owner) : NULL;
	for (char *const *port = n.public_ports; port && *port; port++)
		(void)keyrows_list_add(&r.public_ports, *port);
	if (args->is_looking) {
		*ret = r;
		op_reach_result_init(&r);
		return 0;
	}
	if (wake_connect(ak, &n, &r.control_fd, e) < 0)
		return e->code == ERR_NOT_FOUND ? err_set(e, ERR_BUSY,
							  "sandbox '%s' is not running "
							  "(agentkernel start %s)",
							  args->name, args->name)
						: -1;
	if (ask(&r, 0, &main_one, e) < 0)
		return -1;
	r.main_port = main_one.port;
	if ((args->port || r.main_port) &&
	    await_port(&r, args->port ? args->port : r.main_port, e) < 0)
		return -1;
	if (control_do(r.control_fd, CONTROL_HOLD, NULL, 0, e) < 0)
		return -1;
	*ret = r;
	op_reach_result_init(&r);
	return 0;
}

int op_port_access(struct ak *ak, const struct op_port_access_args *args,
		   const struct op_events *ev, struct err *e)
{
	(void)ev;
	if (args->port < 1 || args->port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "no port %u", args->port);
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return reconfigure_access(ak, args->name, args->port, args->is_public, e);
}
