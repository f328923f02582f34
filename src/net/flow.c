/*
 * flow - one connection of the sandbox, from its SYN to its end; see flow.h.
 *
 * Theory of operation. A flow is RESOLVING, then DIALING, then OPEN: two relays, one for each
 * direction (net/relay.h). The client's bytes are read only once the server is connected, and pass
 * net/flowcheck.h first.
 *
 * New rules. A connection was allowed for its host, for the address that the host resolved to, and
 * for every host that its client has named since. All of these are kept, and checked again when the
 * rules change (flow_judge_all). Bytes still held are checked against the new rules anyway.
 *
 * Ends. End-of-file is forwarded as a half-close, once everything before it is sent. A reset is
 * forwarded as a reset. Refused connections are reset too, because a normal close would look like
 * an empty answer.
 *
 * Limits. FLOWS_MAX flows, or as many as the descriptor limit allows. At the limit the oldest open
 * flow that has never carried a byte is closed; if there is none, the listener pauses and
 * connections wait in the kernel.
 *
 * Connections refused at once are charged by CPU time (net/effort.h); above the budget the listener
 * pauses too.
 *
 * Hostile input: all of the client's bytes, and the timing of both sides.
 */
#include "net/flow.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/effort.h"
#include "net/flowcheck.h"
#include "net/flowstate.h"
#include "net/gate.h"
#include "net/names.h"
#include "net/nameserver.h"
#include "net/plan.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define ACCEPTS_A_TURN 64
#define DESCRIPTORS_A_FLOW 2u
#define DESCRIPTORS_FOR_US 192u /* for the loop, the log, DNS and connection attempts */
#define PAUSE_MS 10

static_assert(RESOLVE_ADDRESSES_MAX <= DIAL_ADDRESSES_MAX, "more found than can be dialed");

/*
 * The kernel's socket buffers are charged to nobody, not even to the sandbox's memory limit. A few
 * connections may use the kernel's defaults; the more there are, the smaller each buffer, so that
 * all together stay below some hundred megabytes.
 */
static void bound_buffers(const struct flows *f, int fd)
{
	static const struct {
		unsigned above;
		int bytes;
	} steps[] = { { 512, 8 << 10 }, { 128, 32 << 10 }, { 16, 128 << 10 } };

	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		if (f->count <= steps[i].above)
			continue;
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &steps[i].bytes, sizeof(int));
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &steps[i].bytes, sizeof(int));
		return;
	}
}

/* ---- relays ---- */

static bool on_bytes(struct relay *l, const uint8_t *bytes, size_t len)
{
	struct flow *c = l->options.context;

	c->is_silent = false;
	return l == &c->relays[FLOW_TO_SERVER] ? flowcheck_on_client(c, bytes, len)
					       : flowcheck_on_server(c, bytes, len);
}

static bool on_end(struct relay *l)
{
	struct flow *c = l->options.context;

	return l != &c->relays[FLOW_TO_SERVER] || flowcheck_on_client_end(c);
}

static void on_shut(struct relay *l)
{
	struct flow *c = l->options.context;

	if (c->relays[FLOW_TO_SERVER].is_shut && c->relays[FLOW_TO_CLIENT].is_shut)
		flowstate_close(c);
}

static void on_broken(struct relay *l)
{
	flowstate_reset(l->options.context);
}

static const struct relay_owner relay_owner = {
	.on_bytes = on_bytes,
	.on_end = on_end,
	.on_shut = on_shut,
	.on_broken = on_broken,
};

static void open_lanes(struct flow *c)
{
	struct gate *g = c->flows->gate;
	struct relay_options up = {
		.context = c,
		.from_fd = c->client_fd,
		.to_fd = c->server_fd,
		.turn_max_bytes = FLOWCHECK_READ_BYTES,
		.unsent_max_bytes = flowcheck_get_held_max() + RELAY_READ_MAX_BYTES,
		.throttle = &g->sent,
		.counts = { &c->row->sent_bytes, &g->sent_bytes },
	};
	struct relay_options down = {
		.context = c,
		.from_fd = c->server_fd,
		.to_fd = c->client_fd,
		.turn_max_bytes = RELAY_READ_MAX_BYTES,
		.unsent_max_bytes = RELAY_READ_MAX_BYTES,
		.throttle = &g->received,
		.counts = { &c->row->received_bytes, &g->received_bytes },
	};

	relay_open(&c->relays[FLOW_TO_SERVER], &c->flows->relays, &up);
	relay_open(&c->relays[FLOW_TO_CLIENT], &c->flows->relays, &down);
}

/* ---- connecting ---- */

static void on_dialed(void *context, int fd, const struct address *to, int error)
{
	struct flow *c = context;

	c->dial = NULL;
	if (fd < 0) {
		flowstate_note(c, JOURNAL_FAILED, strerror(error));
		flowstate_reset(c);
		return;
	}
	bound_buffers(c->flows, fd);
	c->server_fd = fd;
	c->peer = *to;
	c->state = FLOW_OPEN;
	open_lanes(c);
}

static void dial(struct flow *c, const struct address *list, unsigned count)
{
	flowstate_note_decision(c, &c->decision, NULL);
	c->state = FLOW_DIALING;
	c->dial = dial_start(c->flows->gate->base, list, count, c->port, on_dialed, c);
}

static const char *lookup_words(enum resolve_status status)
{
	switch (status) {
	case RESOLVE_NOT_FOUND:
		return "no such name";
	case RESOLVE_LIMITED:
		return "too many lookups a second";
	case RESOLVE_FAILED:
		return "the name servers do not answer";
	default:
		return "the name has no address";
	}
}

/* Uses exactly the addresses that were checked: a second lookup could return others. */
static void on_resolved(void *context, const struct resolve_answer *found)
{
	struct flow *c = context;
	struct address allowed[RESOLVE_ADDRESSES_MAX];
	const struct address *refused = NULL;
	struct egress_decision d = { 0 }, last = { 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < found->count; i++) {
		egress_decide_resolved(&c->flows->gate->egress, &found->list[i], c->port,
				       flowstate_get_owner(c, &found->list[i], c->port), &d);
		if (d.is_allowed) {
			allowed[count++] = found->list[i];
		} else {
			refused = &found->list[i];
			last = d;
		}
	}
	if (count > 0) {
		dial(c, allowed, count);
		return;
	}
	if (refused)
		flowstate_note_decision(c, &last, refused);
	else
		flowstate_note(c, JOURNAL_FAILED, lookup_words(found->status));
	flowstate_reset(c);
}

static void refuse(struct flow *c)
{
	flowstate_note_decision(c, &c->decision, NULL);
	flowstate_reset(c);
}

static void begin_host(struct flow *c)
{
	struct address loopback[2];

	(void)address_parse("127.0.0.1", &loopback[0]);
	(void)address_parse("::1", &loopback[1]);
	dial(c, loopback, 2);
}

static void begin_name(struct flow *c)
{
	struct gate *g = c->flows->gate;

	egress_decide_name(&g->egress, c->name, c->port, &c->decision);
	if (!c->decision.is_allowed)
		refuse(c);
	else if (egress_is_host_name(c->name))
		begin_host(c);
	else
		resolve_ask(g->resolve, c->name, RESOLVE_ADDRESSES, on_resolved, c, &c->waiter);
}

static void decide_address(struct flow *c)
{
	struct egress_decision *d = &c->decision;

	egress_decide_address(&c->flows->gate->egress, &c->address, c->port,
			      flowstate_get_owner(c, &c->address, c->port), d);
	c->is_by_address = d->rule && d->rule->kind == EGRESS_NETWORK;
}

static void begin_address(struct flow *c)
{
	decide_address(c);
	if (c->decision.is_allowed)
		dial(c, &c->address, 1);
	else
		refuse(c);
}

/* ---- new rules ---- */

struct peer_check {
	struct flow *flow;
	struct address refused; /* the last refused one */
	struct egress_decision decision;
};

static bool is_peer_allowed(void *context, const struct address *to)
{
	struct peer_check *check = context;
	struct egress_decision d;

	egress_decide_resolved(&check->flow->flows->gate->egress, to, check->flow->port,
			       flowstate_get_owner(check->flow, to, check->flow->port), &d);
	if (d.is_allowed)
		return true;
	check->refused = *to;
	check->decision = d;
	return false;
}

/* Checks the addresses of the flow's name. Returns false if the flow was freed. */
static bool judge_peer(struct flow *c)
{
	struct peer_check check = { .flow = c };

	if (!c->name || egress_is_host_name(c->name))
		return true;
	if (c->state == FLOW_RESOLVING ||
	    (c->state == FLOW_DIALING && dial_keep(c->dial, is_peer_allowed, &check)) ||
	    (c->state == FLOW_OPEN && is_peer_allowed(&check, &c->peer)))
		return true;
	flowstate_note_decision(c, &check.decision, &check.refused);
	flowstate_reset(c);
	return false;
}

static void judge(struct flow *c)
{
	if (c->name)
		egress_decide_name(&c->flows->gate->egress, c->name, c->port, &c->decision);
	else
		decide_address(c);
	if (!c->decision.is_allowed)
		refuse(c);
	else
		(void)(judge_peer(c) && flowcheck_judge(c));
}

void flow_judge_all(struct flows *f)
{
	struct flow *c, *next;

	for (c = TAILQ_FIRST(&f->list); c; c = next) {
		next = TAILQ_NEXT(c, link);
		judge(c);
	}
}

/* ---- accepting ---- */

static bool is_sandbox_own(const struct address *a)
{
	static const uint8_t own_v6[16] = PLAN_OWN_V6;
	static const uint8_t own_v4[4] = { PLAN_OWN_V4 >> 24, PLAN_OWN_V4 >> 16 & 0xff,
					   PLAN_OWN_V4 >> 8 & 0xff, PLAN_OWN_V4 & 0xff };

	return address_is_loopback(a) ||
	       memcmp(a->bytes, a->bits == 32 ? own_v4 : own_v6, a->bits / 8u) == 0;
}

static void begin(struct flow *c)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (getsockname(c->client_fd, (struct sockaddr *)&sa, &len) < 0 ||
	    !address_from_sockaddr((const struct sockaddr *)&sa, &c->address, &c->port) ||
	    is_sandbox_own(&c->address)) {
		flowstate_reset(c); /* our own listener is not a valid destination */
	} else if (c->port == PLAN_DNS_PORT) {
		nameserver_take_stream(c->flows->nameserver, take_fd(&c->client_fd));
		flowstate_close(c);
	} else if (names_is_synthetic(&c->address)) {
		c->name = names_get_name(c->flows->gate->names, &c->address);
		if (c->name) {
			begin_name(c);
			return;
		}
		flowstate_note(
			c, JOURNAL_DENIED,
			"an address that stands for a name, but for none that was looked up");
		flowstate_reset(c);
	} else {
		begin_address(c);
	}
}

/* Closes the oldest flow that never carried a byte: the least likely to be missed. */
static void make_room(struct flows *f)
{
	struct flow *c;

	TAILQ_FOREACH(c, &f->list, link)
	{
		if (!c->is_silent || c->state != FLOW_OPEN)
			continue;
		flowstate_reset(c);
		return;
	}
}

static void take(struct flows *f, int fd)
{
	static const int on = 1;
	struct flow *c = mem_alloc(sizeof(*c));

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	bound_buffers(f, fd);
	c->flows = f;
	c->client_fd = fd;
	c->server_fd = -1;
	c->is_silent = true;
	flowcheck_init(c);
	TAILQ_INSERT_TAIL(&f->list, c, link);
	f->count++;
	begin(c);
}

/* The host lacks some resource; retrying at once would only waste CPU time. */
static void pause_listening(struct flows *f)
{
	static const struct timeval soon = { .tv_usec = PAUSE_MS * 1000 };

	(void)event_del(&f->listener);
	f->is_listening = false;
	(void)evtimer_add(&f->listen_again, &soon);
}

static void on_listen_again(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	flowstate_update_listening(context);
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
	struct flows *f = context;

	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		uint64_t begun_us = effort_begin();
		unsigned count_before;
		int client_fd;

		if (f->count + 1 >= f->max)
			make_room(f);
		if (f->count >= f->max)
			break;
		client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client_fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			    errno == ENOBUFS)
				pause_listening(f);
			return;
		}
		count_before = f->count;
		take(f, client_fd);
		if (f->count == count_before) /* refused at once, or a stream of queries */
			effort_end(f->gate->effort, begun_us);
		if (f->is_resting)
			break;
	}
	flowstate_update_listening(f);
}

/* ---- life ---- */

static unsigned count_affordable(void)
{
	struct rlimit limit;
	unsigned max = FLOWS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 2 * DESCRIPTORS_FOR_US)
		return DESCRIPTORS_FOR_US / DESCRIPTORS_A_FLOW;
	if ((limit.rlim_cur - DESCRIPTORS_FOR_US) / DESCRIPTORS_A_FLOW < max)
		max = (unsigned)((limit.rlim_cur - DESCRIPTORS_FOR_US) / DESCRIPTORS_A_FLOW);
	return max;
}

struct flows *flow_open_all(struct gate *g, struct nameserver *n, int listener_fd)
{
	struct flows *f = mem_alloc(sizeof(*f));

	f->gate = g;
	f->nameserver = n;
	f->max = count_affordable();
	TAILQ_INIT(&f->list);
	relay_init_all(&f->relays, g->base, &relay_owner);
	(void)evtimer_assign(&f->listen_again, g->base, on_listen_again, f);
	(void)event_assign(&f->listener, g->base, listener_fd, EV_READ | EV_PERSIST, on_connection,
			   f);
	flowstate_update_listening(f);
	return f;
}

void flow_close_all(struct flows *f)
{
	struct flow *c;

	if (!f)
		return;
	flow_stop_listening(f);
	while ((c = TAILQ_FIRST(&f->list))) {
		/* a reset would also discard data that the server has not read yet */
		if (c->state == FLOW_OPEN && c->relays[FLOW_TO_SERVER].is_shut)
			flowstate_close(c);
		else
			flowstate_reset(c);
	}
	(void)evtimer_del(&f->listen_again);
	relay_done_all(&f->relays);
	free(f);
}

void flow_stop_listening(struct flows *f)
{
	f->is_over = true;
	flowstate_update_listening(f);
}

void flow_pause(struct flows *f, bool is_paused)
{
	f->is_resting = is_paused;
	flowstate_update_listening(f);
}

bool flow_is_idle(const struct flows *f)
{
	return f->count == 0;
}

bool flow_is_sending(const struct flows *f)
{
	const struct flow *c;

	TAILQ_FOREACH(c, &f->list, link)
	if (c->state != FLOW_OPEN || !c->relays[FLOW_TO_SERVER].is_shut)
		return true;
	return false;
}

void flow_on_second(struct flows *f)
{
	uint64_t now_ms = clock_now_ms();
	struct flow *c, *next;

	for (c = TAILQ_FIRST(&f->list); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->is_held || c->held_until_ms > now_ms)
			continue;
		flowcheck_refuse(c, "not whole in time");
		flowstate_close(c);
	}
}
