/*
 * inbound - connections from the host to published ports of the sandbox; see inbound.h.
 *
 * Theory of operation. A connection is asked for over IPv4 and, if that is refused, over IPv6: a
 * server inside may listen on either loopback address. init answers with a socket that may still be
 * connecting; when it is writable its error decides. Only then are the client's bytes read, so a
 * client that is refused sees a reset, as without a sandbox.
 *
 * Hostile input: both sides. Their bytes are copied and never parsed; the number of connections,
 * the memory for unsent bytes (net/relay.h) and the time for connecting are bounded.
 */
#include "net/inbound.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dialin.h"
#include "base/mem.h"
#include "net/flowstate.h"
#include "net/gate.h"
#include "net/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define ACCEPTS_A_TURN 32
#define PAUSE_MS 100 /* when the host lacks a resource */

enum { TO_SANDBOX, TO_CLIENT, DIRECTIONS };

struct port {
	struct inbounds *all;
	uint32_t number;
	uint16_t inner;
	int listen_fd;
	unsigned count;
	bool is_listening; /* its event is registered */
	struct event readable;
	TAILQ_ENTRY(port) link;
};

struct connection {
	struct port *port;
	enum dialin_family family;
	int client_fd, answer_fd, server_fd;
	bool is_open;    /* the relays are */
	uint64_t end_ms; /* for connecting */
	struct event answered, connected;
	struct journal_row *row;
	struct relay relays[DIRECTIONS];
	TAILQ_ENTRY(connection) link;
};

struct inbounds {
	struct gate *gate;
	int dial_fd;
	bool is_over, is_resting;
	unsigned count;
	struct event rest;
	struct relays *relays; /* created with the first connection */
	TAILQ_HEAD(, port) ports;
	TAILQ_HEAD(, connection) connections;
};

static bool has_room(const struct port *p)
{
	return p->all->count < INBOUND_MAX && p->count < INBOUND_PORT_MAX;
}

static void update_listening(struct inbounds *b)
{
	struct port *p;

	TAILQ_FOREACH(p, &b->ports, link)
	{
		bool is_wanted = !b->is_over && !b->is_resting && has_room(p);

		if (p->is_listening == is_wanted)
			continue;
		p->is_listening = is_wanted;
		if (is_wanted)
			(void)event_add(&p->readable, NULL);
		else
			(void)event_del(&p->readable);
	}
}

/* ---- ends ---- */

/* The supervisor wakes a sleeping sandbox for the first connection, and lets none sleep with one.
 */
static void tell_supervisor(const char *words)
{
	(void)send(GATE_SUPERVISOR_FD, words, strlen(words), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void close_connection(struct connection *c)
{
	struct inbounds *b = c->port->all;

	if (c->is_open)
		for (int i = 0; i < DIRECTIONS; i++)
			relay_done(&c->relays[i]);
	if (c->answer_fd >= 0)
		(void)event_del(&c->answered);
	if (c->server_fd >= 0 && !c->is_open)
		(void)event_del(&c->connected);
	cleanup_closep(&c->answer_fd);
	cleanup_closep(&c->client_fd);
	cleanup_closep(&c->server_fd);
	TAILQ_REMOVE(&b->connections, c, link);
	c->port->count--;
	b->count--;
	free(c);
	if (b->count == 0)
		tell_supervisor(GATE_INBOUND "no");
	update_listening(b);
}

static void reset(struct connection *c)
{
	flowstate_arm_reset(c->client_fd);
	flowstate_arm_reset(c->server_fd);
	close_connection(c);
}

/* ---- bytes ---- */

static bool on_bytes(struct relay *l, const uint8_t *bytes, size_t len)
{
	return relay_push(l, bytes, len);
}

static bool on_end(struct relay *l)
{
	(void)l;
	return true;
}

static void on_shut(struct relay *l)
{
	struct connection *c = l->options.context;

	if (c->relays[TO_SANDBOX].is_shut && c->relays[TO_CLIENT].is_shut)
		close_connection(c);
}

static void on_broken(struct relay *l)
{
	reset(l->options.context);
}

static const struct relay_owner relay_owner = {
	.on_bytes = on_bytes,
	.on_end = on_end,
	.on_shut = on_shut,
	.on_broken = on_broken,
};

static struct relays *get_relays(struct inbounds *b)
{
	if (!b->relays) {
		b->relays = mem_alloc(sizeof(*b->relays));
		relay_init_all(b->relays, b->gate->base, &relay_owner);
	}
	return b->relays;
}

static void note(struct connection *c, enum journal_decision what, const char *reason)
{
	char text[ADDRESS_TEXT_MAX_BYTES] = "(gone)";
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct address peer;
	uint16_t port;

	if (getpeername(c->client_fd, (struct sockaddr *)&sa, &len) == 0 &&
	    address_from_sockaddr((const struct sockaddr *)&sa, &peer, &port))
		(void)address_format(&peer, text);
	c->row = journal_add(c->port->all->gate->journal, what, text, c->port->inner, reason, "");
}

static void begin_copying(struct connection *c)
{
	struct gate *g = c->port->all->gate;
	const struct relay_options in = {
		.context = c,
		.from_fd = c->client_fd,
		.to_fd = c->server_fd,
		.turn_max_bytes = RELAY_READ_MAX_BYTES,
		.unsent_max_bytes = RELAY_READ_MAX_BYTES,
		.throttle = &g->received,
		.counts = { &c->row->received_bytes, &g->received_bytes },
	};
	const struct relay_options out = {
		.context = c,
		.from_fd = c->server_fd,
		.to_fd = c->client_fd,
		.turn_max_bytes = RELAY_READ_MAX_BYTES,
		.unsent_max_bytes = RELAY_READ_MAX_BYTES,
		.throttle = &g->sent,
		.counts = { &c->row->sent_bytes, &g->sent_bytes },
	};

	c->is_open = true;
	relay_open(&c->relays[TO_SANDBOX], get_relays(c->port->all), &in);
	relay_open(&c->relays[TO_CLIENT], get_relays(c->port->all), &out);
}

/* ---- connecting ---- */

static void fail(struct connection *c, int error)
{
	note(c, JOURNAL_FAILED,
	     error == ECONNREFUSED ? "no server listens on this port inside" : strerror(error));
	reset(c);
}

static void on_answer(evutil_socket_t fd, short what, void *context);

static void ask(struct connection *c)
{
	struct inbounds *b = c->port->all;
	const struct dialin_target target = { .family = (uint16_t)c->family,
					      .port = c->port->inner };
	int r = b->dial_fd < 0 ? -EPIPE : dialin_ask(b->dial_fd, &target, &c->answer_fd);

	if (r < 0) {
		fail(c, -r);
		return;
	}
	(void)event_assign(&c->answered, b->gate->base, c->answer_fd, EV_READ, on_answer, c);
	(void)event_add(&c->answered, NULL);
}

/* IPv6 is tried if nothing listens on IPv4. */
static void on_refused(struct connection *c, int error)
{
	if (c->family != DIALIN_IPV4 || error != ECONNREFUSED) {
		fail(c, error);
		return;
	}
	cleanup_closep(&c->server_fd);
	c->family = DIALIN_IPV6;
	ask(c);
}

static void on_connected(evutil_socket_t fd, short what, void *context)
{
	static const int on = 1;
	struct connection *c = context;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		on_refused(c, error);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	note(c, JOURNAL_INBOUND, "published port");
	begin_copying(c);
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
	struct connection *c = context;
	int r = dialin_take(fd, &c->server_fd);

	(void)what;
	if (frame_may_pass(r)) {
		(void)event_add(&c->answered, NULL);
		return;
	}
	cleanup_closep(&c->answer_fd);
	if (r < 0) {
		on_refused(c, -r);
		return;
	}
	(void)event_assign(&c->connected, c->port->all->gate->base, c->server_fd, EV_WRITE,
			   on_connected, c);
	(void)event_add(&c->connected, NULL);
}

/* ---- accepting ---- */

static void take(struct port *p, int fd)
{
	static const int on = 1;
	struct connection *c = mem_alloc(sizeof(*c));

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	*c = (struct connection){ .port = p,
				  .family = DIALIN_IPV4,
				  .client_fd = fd,
				  .answer_fd = -1,
				  .server_fd = -1,
				  .end_ms = clock_now_ms() + INBOUND_DIAL_MS };
	TAILQ_INSERT_TAIL(&p->all->connections, c, link);
	p->count++;
	if (p->all->count++ == 0)
		tell_supervisor(GATE_INBOUND "yes");
	ask(c);
}

static void on_rested(evutil_socket_t fd, short what, void *context)
{
	struct inbounds *b = context;

	(void)fd;
	(void)what;
	b->is_resting = false;
	update_listening(b);
}

/* The host lacks some resource; retrying at once would only waste CPU time. */
static void rest(struct inbounds *b)
{
	static const struct timeval soon = { .tv_usec = PAUSE_MS * 1000 };

	b->is_resting = true;
	(void)evtimer_add(&b->rest, &soon);
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
	struct port *p = context;
	struct inbounds *b = p->all;

	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN && has_room(p); i++) {
		int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client_fd >= 0) {
			take(p, client_fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			rest(b);
		break;
	}
	update_listening(b);
}

void inbound_listen(struct inbounds *b, struct gatemessage *m)
{
	struct port *p = mem_alloc(sizeof(*p));

	*p = (struct port){ .all = b,
			    .number = m->number,
			    .inner = m->inner,
			    .listen_fd = take_fd(&m->listen_fd) };
	(void)event_assign(&p->readable, b->gate->base, p->listen_fd, EV_READ | EV_PERSIST,
			   on_connection, p);
	TAILQ_INSERT_TAIL(&b->ports, p, link);
	update_listening(b);
}

static void close_port(struct port *p)
{
	struct inbounds *b = p->all;
	struct connection *c, *next;

	for (c = TAILQ_FIRST(&b->connections); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->port == p)
			reset(c);
	}
	if (p->is_listening)
		(void)event_del(&p->readable);
	cleanup_closep(&p->listen_fd);
	TAILQ_REMOVE(&b->ports, p, link);
	free(p);
}

void inbound_unlisten(struct inbounds *b, uint32_t number)
{
	struct port *p, *next;

	for (p = TAILQ_FIRST(&b->ports); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->number == number)
			close_port(p);
	}
}

/* ---- life ---- */

struct inbounds *inbound_new(struct gate *g, int dial_fd)
{
	struct inbounds *b = mem_alloc(sizeof(*b));

	b->gate = g;
	b->dial_fd = dial_fd;
	TAILQ_INIT(&b->ports);
	TAILQ_INIT(&b->connections);
	(void)evtimer_assign(&b->rest, g->base, on_rested, b);
	return b;
}

void inbound_free(struct inbounds *b)
{
	if (!b)
		return;
	b->is_over = true;
	while (!TAILQ_EMPTY(&b->ports))
		close_port(TAILQ_FIRST(&b->ports));
	(void)evtimer_del(&b->rest);
	if (b->relays)
		relay_done_all(b->relays);
	free(b->relays);
	free(b);
}

void inbound_stop_listening(struct inbounds *b)
{
	b->is_over = true;
	update_listening(b);
}

bool inbound_is_idle(const struct inbounds *b)
{
	return b->count == 0;
}

bool inbound_is_sending(const struct inbounds *b)
{
	const struct connection *c;

	TAILQ_FOREACH(c, &b->connections, link)
	if (c->is_open && !c->relays[TO_CLIENT].is_shut)
		return true;
	return false;
}

void inbound_on_second(struct inbounds *b)
{
	uint64_t now_ms = clock_now_ms();
	struct connection *c, *next;

	for (c = TAILQ_FIRST(&b->connections); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->is_open && now_ms >= c->end_ms)
			fail(c, ETIMEDOUT);
	}
}
