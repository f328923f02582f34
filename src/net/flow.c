/*
 * flow - one connection of the sandbox, from its SYN to its end; see flow.h.
 *
 * Theory of operation. A flow is RESOLVING, then DIALING, then OPEN. Open, it is two lanes, one
 * each way: read from one socket, write to the other. All lanes read into one shared buffer;
 * only what the other socket does not take is copied into memory of the lane's own (`unsent`),
 * and until that is gone the lane does not read. So a thousand idle connections cost nothing
 * but their structs, and plain read and write beat splice() here.
 *
 * The client's lane holds bytes back (`held`) for as long as sniff has not released them. A
 * client is read only once the server is connected.
 *
 * New rules. A connection was allowed for its host, for the address that turned out to have, and
 * for every host that its client has named since (`asked`, where that is another). All of that is
 * kept, and asked once more when the rules change (flow_judge_all). Bytes that are still held
 * meet the new rules by themselves.
 *
 * Ends. End-of-file goes on as a half-close, once all before it is sent. A reset goes on as a
 * reset. What we refuse is reset, too: closing it softly would look like an empty answer.
 *
 * Limits. FLOWS_MAX flows, or as many as we may have descriptors. At the limit the flow that has
 * been silent for longest, if any has never carried a byte, makes room; otherwise the listener
 * pauses and connections wait in the kernel. Memory for unsent bytes is bounded by reading
 * little at a time once FLOW_PENDING_MAX_BYTES wait.
 *
 * Hostile input: all of the client's bytes, and the timing of both sides.
 */
#include "net/flow.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/gate.h"
#include "net/journal.h"
#include "net/nameserver.h"
#include "net/names.h"
#include "net/plan.h"
#include "net/resolve.h"
#include "net/sniff.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define ACCEPTS_A_TURN 64
#define READS_A_TURN 4
#define DESCRIPTORS_A_FLOW 2u
#define DESCRIPTORS_FOR_US 192u /* the loop, the log, DNS, attempts to connect */
#define HELD_READ_BYTES (16u << 10)
#define HELD_MAX_BYTES                                                                             \
	(SNIFF_HEAD_MAX_BYTES + HELD_READ_BYTES) /* a head, and what came with it                  \
						  */
#define PAUSE_MS 10
#define UNSENT_MAX_BYTES (HELD_MAX_BYTES + FLOW_READ_MAX_BYTES)

static_assert(RESOLVE_ADDRESSES_MAX <= DIAL_ADDRESSES_MAX, "more found than can be dialed");

enum state { RESOLVING, DIALING, OPEN };
enum { TO_SERVER, TO_CLIENT };

/* Whom the client was allowed to ask for: within each tunnel the last, and how it got there. */
struct asked {
	struct asked *next; /* the one before */
	struct sniff_ask ask;
};

struct lane {
	struct flow *flow;
	int to_fd;      /* the flow's */
	bool has_ended; /* nothing more will be read */
	bool is_shut;   /* and the other side knows */
	bool is_paused; /* waits for bandwidth */
	struct buf unsent;
	size_t unsent_at;
	struct throttle *throttle;
	uint64_t *counted, *total; /* in the journal, and of all flows */
	struct event readable, writable;
	TAILQ_ENTRY(lane) in_paused;
};

struct flow {
	struct flows *flows;
	enum state state;
	int client_fd, server_fd;
	const char *name; /* NULL: an address; borrowed from names */
	struct address address;
	uint16_t port;
	struct egress_decision decision;
	bool is_by_address; /* a rule for addresses opened it, whatever its name */
	bool has_server_spoken;
	bool is_silent;  /* no byte yet, either way */
	bool is_sniffed; /* the client's bytes need no more looking at */
	bool is_held;    /* and is among those with a deadline */
	uint64_t held_until_ms;
	struct sniff sniff;
	struct buf held;
	struct asked *asked; /* newest first; nothing that `name` and `port` say already */
	unsigned tunnel_count;
	struct address peer; /* OPEN */
	struct journal_row *row;
	struct resolve_waiter waiter;
	struct dial *dial;
	struct lane lanes[2];
	TAILQ_ENTRY(flow) link;
};

struct flows {
	struct gate *gate;
	struct nameserver *nameserver;
	bool is_listening; /* its event is there */
	bool is_over;      /* and will not come back */
	unsigned count, max;
	size_t unsent_bytes, held_bytes; /* of all flows */
	struct event listener, unpause;
	TAILQ_HEAD(, flow) list; /* oldest first */
	TAILQ_HEAD(, lane) paused;
	uint8_t bytes[FLOW_READ_MAX_BYTES]; /* what is being read, of any flow */
};

/* ---- ends ---- */

static void update_listening(struct flows *f)
{
	bool is_wanted = !f->is_over && f->count < f->max;

	if (is_wanted == f->is_listening)
		return;
	f->is_listening = is_wanted;
	if (is_wanted)
		(void)event_add(&f->listener, NULL);
	else
		(void)event_del(&f->listener);
}

static void lane_done(struct lane *l)
{
	struct flows *f = l->flow->flows;

	(void)event_del(&l->readable);
	(void)event_del(&l->writable);
	if (l->is_paused)
		TAILQ_REMOVE(&f->paused, l, in_paused);
	f->unsent_bytes -= l->unsent.len - l->unsent_at;
	buf_done(&l->unsent);
}

/*
 * What the kernel keeps for a connection counts for nobody: not for the sandbox, whose limit it
 * would have to be. A few connections may have all the kernel thinks right; the more there are,
 * the less each gets, so that all of them together stay below some hundred megabytes.
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

/* Closing with this option set sends a reset. */
static void arm_reset(int fd)
{
	static const struct linger none = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static void set_held_len(struct flow *c, size_t len)
{
	c->flows->held_bytes -= c->held.len - len;
	c->held.len = len;
}

static void forget_ask(struct flow *c)
{
	struct asked *last = c->asked;

	c->asked = last->next;
	free(last);
}

static void close_flow(struct flow *c)
{
	struct flows *f = c->flows;

	if (c->state == OPEN) {
		lane_done(&c->lanes[TO_SERVER]);
		lane_done(&c->lanes[TO_CLIENT]);
	}
	resolve_forget(&c->waiter);
	dial_cancel(c->dial);
	while (c->asked)
		forget_ask(c);
	set_held_len(c, 0);
	buf_done(&c->held);
	cleanup_closep(&c->client_fd);
	cleanup_closep(&c->server_fd);
	TAILQ_REMOVE(&f->list, c, link);
	f->count--;
	free(c);
	update_listening(f);
}

static void reset_flow(struct flow *c)
{
	arm_reset(c->client_fd);
	arm_reset(c->server_fd);
	close_flow(c);
}

/* ---- words for the journal ---- */

static const char *host_text(const struct flow *c, char out[ADDRESS_TEXT_MAX_BYTES])
{
	return c->name ? c->name : address_format(&c->address, out);
}

static void note(struct flow *c, enum journal_decision what, const char *reason)
{
	char text[ADDRESS_TEXT_MAX_BYTES];

	c->row =
		journal_add(c->flows->gate->journal, what, host_text(c, text), c->port, reason, "");
}

static void note_decision(struct flow *c, const struct egress_decision *d,
			  const struct address *resolved)
{
	cleanup_buf struct buf reason;
	cleanup_buf struct buf fix;
	char text[ADDRESS_TEXT_MAX_BYTES];
	const struct address *address = resolved ? resolved : c->name ? NULL : &c->address;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_init(&fix, BUF_TEXT_MAX_BYTES);
	if (resolved)
		buf_addf(&reason, "it has the address %s: ", address_format(resolved, text));
	egress_format_reason(&c->flows->gate->egress, d, &reason);
	egress_format_fix(d, c->name, address, c->port, &fix);
	c->row = journal_add(c->flows->gate->journal,
			     d->is_allowed ? JOURNAL_ALLOWED : JOURNAL_DENIED, host_text(c, text),
			     c->port, buf_text(&reason), buf_text(&fix));
}

/* ---- the client's first bytes ---- */

static enum egress_owner owner_of(const struct address *a)
{
	return dial_is_own_address(a) ? EGRESS_OURS : EGRESS_NOT_OURS;
}

/*
 * Who opens an address, or a port of this machine, opens what lives there, under whatever name it
 * is addressed; but for names that are blocked, and not as a way to elsewhere.
 */
static bool is_own_service(const struct flow *c, const struct sniff_ask *ask,
			   struct egress_decision *d)
{
	bool is_opened = c->is_by_address || (c->name && egress_is_host_name(c->name));

	d->is_allowed = is_opened && ask->port == 0 && d->reason != EGRESS_BY_RULE;
	return d->is_allowed;
}

/* The target of a request or a server name, judged by the rules as a connection would be. */
static bool is_ask_allowed(struct flow *c, const struct sniff_ask *ask, struct egress_decision *d,
			   char name[DOMAIN_MAX_BYTES + 1])
{
	const struct egress *g = &c->flows->gate->egress;
	uint16_t port = ask->port ? ask->port : c->port;
	struct domain_problem ignored;
	struct address address;

	name[0] = '\0';
	if (ask->has_name && address_parse(ask->name, &address)) {
		(void)address_format(&address, name);
		if (!c->name && address_is_equal(&address, &c->address) && port == c->port) {
			d->is_allowed = true; /* that is where this connection goes */
			return true;
		}
		egress_decide_address(g, &address, port, owner_of(&address), d);
		return d->is_allowed || is_own_service(c, ask, d);
	}
	if (ask->has_name &&
	    !domain_normalize(ask->name, strlen(ask->name), DOMAIN_WIRE, name, &ignored)) {
		*d = (struct egress_decision){ .reason = EGRESS_BY_DEFAULT };
		return false;
	}
	egress_decide_name(g, ask->has_name ? name : NULL, port, d);
	return d->is_allowed || is_own_service(c, ask, d);
}

static void write_last_words(struct flow *c, const char *bytes, size_t len)
{
	/* in the middle of an answer our words would be read as part of it */
	if (c->has_server_spoken) {
		arm_reset(c->client_fd);
		arm_reset(c->server_fd);
		return;
	}
	/* best effort; then closed softly so that it is read */
	(void)send(c->client_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(c->client_fd, SHUT_WR);
}

static void refuse_http(struct flow *c, const char *status, const char *why)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_addf(&out,
		 "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\n"
		 "Content-Length: %zu\r\n\r\nagentkernel: %s\n",
		 status, strlen("agentkernel: \n") + strlen(why), why);
	write_last_words(c, out.bytes, out.len);
}

static void refuse_tls(struct flow *c)
{
	/* a fatal alert: access_denied */
	static const char alert[] = { 0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31 };

	write_last_words(c, alert, sizeof(alert));
}

static void refuse_ask(struct flow *c, const struct sniff_ask *ask, const struct egress_decision *d,
		       const char *name)
{
	cleanup_buf struct buf reason;
	cleanup_buf struct buf fix;
	char text[ADDRESS_TEXT_MAX_BYTES];
	uint16_t port = ask->port ? ask->port : c->port;
	struct address address;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_init(&fix, BUF_TEXT_MAX_BYTES);
	if (!ask->has_name)
		buf_addf(&reason, "the %s names no host: ",
			 ask->protocol == SNIFF_TLS ? "TLS hello" : "request");
	else if (!name[0])
		buf_add_text(&reason, "asked for by a name that no host has");
	if (!ask->has_name || name[0])
		egress_format_reason(&c->flows->gate->egress, d, &reason);
	if (name[0])
		egress_format_fix(d, name, address_parse(name, &address) ? &address : NULL, port,
				  &fix);
	c->row = journal_add(c->flows->gate->journal, JOURNAL_DENIED,
			     name[0] ? name : host_text(c, text), port, buf_text(&reason),
			     buf_text(&fix));
	if (ask->protocol == SNIFF_TLS)
		refuse_tls(c);
	else if (ask->protocol != SNIFF_HTTP2)
		refuse_http(c, "403 Forbidden", buf_text(&reason));
}

static void refuse_bad(struct flow *c, const char *problem)
{
	cleanup_buf struct buf reason;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_addf(&reason, "malformed: %s", problem);
	note(c, JOURNAL_DENIED, buf_text(&reason));
	if (c->held.len > 0 && (uint8_t)c->held.bytes[0] == HELLO_FIRST_BYTE)
		refuse_tls(c);
	else
		refuse_http(c, "400 Bad Request", buf_text(&reason));
}

/* ---- lanes ---- */

static size_t turn_size(struct lane *l)
{
	struct flow *c = l->flow;
	struct flows *f = c->flows;
	size_t size = sizeof(f->bytes);
	uint64_t available = throttle_available(l->throttle, clock_now_ms());

	if (f->unsent_bytes > FLOW_PENDING_MAX_BYTES)
		size = FLOW_READ_SMALL_BYTES;
	if (l == &c->lanes[TO_SERVER] && !c->is_sniffed && size > HELD_READ_BYTES)
		size = HELD_READ_BYTES;
	return available < size ? (size_t)available : size;
}

/* A lane reads when it has not ended, has nothing unsent and is not waiting for bandwidth. */
static void watch_if_wanted(struct lane *l)
{
	if (!l->has_ended && !l->is_paused && l->unsent.len == l->unsent_at)
		(void)event_add(&l->readable, NULL);
}

static void pause_lane(struct lane *l)
{
	static const struct timeval soon = { .tv_usec = PAUSE_MS * 1000 };
	struct flows *f = l->flow->flows;

	assert(!l->is_paused); /* on the list twice it would tear the list */
	(void)event_del(&l->readable);
	l->is_paused = true;
	TAILQ_INSERT_TAIL(&f->paused, l, in_paused);
	if (!evtimer_pending(&f->unpause, NULL))
		(void)evtimer_add(&f->unpause, &soon);
}

static void on_unpause(evutil_socket_t fd, short what, void *context)
{
	struct flows *f = context;
	struct lane *l;

	(void)fd;
	(void)what;
	while ((l = TAILQ_FIRST(&f->paused))) {
		TAILQ_REMOVE(&f->paused, l, in_paused);
		l->is_paused = false;
		watch_if_wanted(l);
	}
	update_listening(f);
}

/* Half-closes the far side when all is said. Returns false when that was the flow's end. */
static bool finish_lane(struct lane *l)
{
	struct flow *c = l->flow;

	if (!l->has_ended || l->is_shut || l->unsent.len > l->unsent_at)
		return true;
	l->is_shut = true;
	(void)shutdown(l->to_fd, SHUT_WR);
	if (!c->lanes[TO_SERVER].is_shut || !c->lanes[TO_CLIENT].is_shut)
		return true;
	close_flow(c);
	return false;
}

static bool is_passing(int error)
{
	return error == EAGAIN || error == EINTR;
}

/* Sends what can be sent, keeps the rest. Returns false when the flow is gone. */
static bool push(struct lane *l, const uint8_t *bytes, size_t len)
{
	struct flows *f = l->flow->flows;
	ssize_t n = 0;

	if (len == 0)
		return true;
	if (l->unsent.len == l->unsent_at) {
		n = send(l->to_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && !is_passing(errno)) {
			reset_flow(l->flow);
			return false;
		}
		n = n < 0 ? 0 : n;
		if ((size_t)n == len)
			return true;
		(void)event_add(&l->writable, NULL);
	}
	buf_add(&l->unsent, bytes + n, len - (size_t)n);
	f->unsent_bytes += len - (size_t)n;
	assert(!l->unsent.is_cut); /* a lane reads only when it has nothing unsent */
	(void)event_del(&l->readable);
	return true;
}

/* Returns false when that is too much, and the flow is gone. */
static bool hold(struct flow *c, const uint8_t *bytes, size_t len)
{
	struct flows *f = c->flows;
	size_t before = c->held.len;

	if (len > 0 && !c->is_held) {
		c->is_held = true;
		c->held_until_ms = clock_now_ms() + FLOW_HELD_MAX_S * 1000;
	}
	buf_add(&c->held, bytes, len);
	f->held_bytes += c->held.len - before;
	if (!c->held.is_cut && f->held_bytes <= FLOW_HELD_MAX_BYTES)
		return true;
	refuse_bad(c, "too much that is not whole");
	close_flow(c);
	return false;
}

/* What sniff does not release stays in `held`. Returns false when the flow is gone. */
static bool keep_rest(struct flow *c, const uint8_t *bytes, size_t len, size_t released)
{
	if (bytes != (const uint8_t *)c->held.bytes) {
		if (!hold(c, bytes + released, len - released))
			return false;
	} else if (released > 0) {
		memmove(c->held.bytes, c->held.bytes + released, len - released);
		set_held_len(c, len - released);
		c->held_until_ms = clock_now_ms() + FLOW_HELD_MAX_S * 1000; /* the next one's */
	}
	if (c->held.len == 0) {
		c->is_held = false;
		buf_done(&c->held);
		buf_init(&c->held, HELD_MAX_BYTES);
	}
	return true;
}

/*
 * For new rules. What was asked for before is over, but for tunnels, inside which this one is.
 * Returns false when there are too many of them.
 */
static bool remember_ask(struct flow *c, const struct sniff_ask *ask, const char *name)
{
	struct asked *a;

	if (c->asked && c->asked->ask.protocol != SNIFF_HTTP_CONNECT)
		forget_ask(c);
	if (ask->protocol == SNIFF_HTTP_CONNECT && ++c->tunnel_count > FLOW_TUNNELS_MAX)
		return false;
	if (c->name && ask->has_name && strcmp(name, c->name) == 0 &&
	    (ask->port == 0 || ask->port == c->port))
		return true; /* it goes where the connection goes */
	a = mem_alloc(sizeof(*a));
	a->next = c->asked;
	a->ask = *ask;
	c->asked = a;
	return true;
}

/* Returns false when the answer was no, and the flow is gone. */
static bool answer_ask(struct flow *c, const struct sniff_ask *ask)
{
	struct egress_decision d = { 0 };
	char name[DOMAIN_MAX_BYTES + 1];

	if (!is_ask_allowed(c, ask, &d, name)) {
		refuse_ask(c, ask, &d, name);
		close_flow(c);
		return false;
	}
	if (!remember_ask(c, ask, name)) {
		refuse_bad(c, "too many tunnels within tunnels");
		close_flow(c);
		return false;
	}
	sniff_allow(&c->sniff);
	return true;
}

/*
 * Shows the client's bytes to sniff and passes on what it releases. `bytes` are all that is not
 * yet passed on: either held, or just read with nothing held before. Returns false when the flow
 * is gone.
 */
static bool inspect(struct flow *c, const uint8_t *bytes, size_t len)
{
	struct lane *l = &c->lanes[TO_SERVER];
	enum sniff_verdict verdict;
	size_t released = 0;

	do {
		struct sniff_result result = { 0 };

		verdict = sniff_client(&c->sniff, bytes + released, len - released, &result);
		if (verdict == SNIFF_PASS) {
			c->is_sniffed = true;
			result.release = len - released;
		}
		if (!push(l, bytes + released, result.release))
			return false;
		released += result.release;
		if (verdict == SNIFF_BAD) {
			refuse_bad(c, result.problem);
			close_flow(c);
			return false;
		}
		if (verdict == SNIFF_ASK && !answer_ask(c, &result.ask))
			return false;
	} while (verdict == SNIFF_ASK);
	return keep_rest(c, bytes, len, released);
}

static bool on_client_bytes(struct flow *c, const uint8_t *bytes, size_t len)
{
	if (c->is_sniffed)
		return push(&c->lanes[TO_SERVER], bytes, len);
	if (c->held.len == 0)
		return inspect(c, bytes, len);
	return hold(c, bytes, len) && inspect(c, (const uint8_t *)c->held.bytes, c->held.len);
}

/* The server's word may decide what the client's next bytes are. */
static bool on_server_bytes(struct flow *c, const uint8_t *bytes, size_t len)
{
	c->has_server_spoken = true;
	if (!push(&c->lanes[TO_CLIENT], bytes, len))
		return false;
	if (c->is_sniffed || !sniff_wants_server(&c->sniff))
		return true;
	sniff_server(&c->sniff, bytes, len);
	return c->held.len == 0 || inspect(c, (const uint8_t *)c->held.bytes, c->held.len);
}

/*
 * The client has said all it will say. Held bytes can never become whole now; words that were
 * on no way to anything we know are passed on.
 */
static bool on_end(struct lane *l)
{
	struct flow *c = l->flow;

	l->has_ended = true;
	(void)event_del(&l->readable);
	if (l == &c->lanes[TO_SERVER] && c->held.len > 0) {
		if (!sniff_can_end(&c->sniff, (const uint8_t *)c->held.bytes, c->held.len)) {
			refuse_bad(c, "ended in the middle");
			close_flow(c);
			return false;
		}
		c->is_sniffed = true;
		if (!push(l, (const uint8_t *)c->held.bytes, c->held.len))
			return false;
		set_held_len(c, 0);
		c->is_held = false;
	}
	return finish_lane(l);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct lane *l = context;
	struct flow *c = l->flow;
	struct flows *f = c->flows;

	(void)what;
	for (int i = 0; i < READS_A_TURN; i++) {
		size_t size = turn_size(l);
		ssize_t n;

		if (size == 0) {
			pause_lane(l);
			return;
		}
		n = recv(fd, f->bytes, size, MSG_DONTWAIT);
		if (n < 0 && is_passing(errno))
			return;
		if (n < 0) {
			reset_flow(c);
			return;
		}
		if (n == 0) {
			(void)on_end(l);
			return;
		}
		c->is_silent = false;
		throttle_spend(l->throttle, (uint64_t)n);
		*l->counted += (uint64_t)n;
		*l->total += (uint64_t)n;
		if (!(l == &c->lanes[TO_SERVER] ? on_client_bytes(c, f->bytes, (size_t)n)
						: on_server_bytes(c, f->bytes, (size_t)n)))
			return;
		if ((size_t)n < size || l->unsent.len > l->unsent_at)
			return;
	}
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct lane *l = context;
	struct flows *f = l->flow->flows;
	ssize_t n = send(fd, l->unsent.bytes + l->unsent_at, l->unsent.len - l->unsent_at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)what;
	if (n < 0) {
		if (!is_passing(errno))
			reset_flow(l->flow);
		return;
	}
	l->unsent_at += (size_t)n;
	f->unsent_bytes -= (size_t)n;
	if (l->unsent_at < l->unsent.len)
		return;
	l->unsent_at = 0;
	buf_done(&l->unsent);
	buf_init(&l->unsent, UNSENT_MAX_BYTES);
	(void)event_del(&l->writable);
	watch_if_wanted(l);
	(void)finish_lane(l);
}

static void open_lane(struct flow *c, int which, int from_fd, int to_fd)
{
	struct gate *g = c->flows->gate;
	struct lane *l = &c->lanes[which];

	l->flow = c;
	l->to_fd = to_fd;
	l->throttle = which == TO_SERVER ? &g->sent : &g->received;
	l->counted = which == TO_SERVER ? &c->row->sent_bytes : &c->row->received_bytes;
	l->total = which == TO_SERVER ? &g->sent_bytes : &g->received_bytes;
	buf_init(&l->unsent, UNSENT_MAX_BYTES);
	(void)event_assign(&l->readable, g->base, from_fd, EV_READ | EV_PERSIST, on_readable, l);
	(void)event_assign(&l->writable, g->base, to_fd, EV_WRITE | EV_PERSIST, on_writable, l);
	(void)event_add(&l->readable, NULL);
}

/* ---- connecting ---- */

static void on_dialed(void *context, int fd, const struct address *to, int error)
{
	struct flow *c = context;

	c->dial = NULL;
	if (fd < 0) {
		note(c, JOURNAL_FAILED, strerror(error));
		reset_flow(c);
		return;
	}
	bound_buffers(c->flows, fd);
	c->server_fd = fd;
	c->peer = *to;
	c->state = OPEN;
	open_lane(c, TO_SERVER, c->client_fd, fd);
	open_lane(c, TO_CLIENT, fd, c->client_fd);
}

static void dial(struct flow *c, const struct address *list, unsigned count)
{
	note_decision(c, &c->decision, NULL);
	c->state = DIALING;
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

/* The checked addresses are the ones that are used: nobody gets to ask again in between. */
static void on_resolved(void *context, const struct resolve_answer *found)
{
	struct flow *c = context;
	struct address allowed[RESOLVE_ADDRESSES_MAX];
	const struct address *refused = NULL;
	struct egress_decision d = { 0 }, last = { 0 };
	unsigned count = 0;

	for (unsigned i = 0; i < found->count; i++) {
		egress_decide_resolved(&c->flows->gate->egress, &found->list[i], c->port,
				       owner_of(&found->list[i]), &d);
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
		note_decision(c, &last, refused);
	else
		note(c, JOURNAL_FAILED, lookup_words(found->status));
	reset_flow(c);
}

static void refuse(struct flow *c)
{
	note_decision(c, &c->decision, NULL);
	reset_flow(c);
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
		resolve_ask(g->resolve, c->name, on_resolved, c, &c->waiter);
}

static void decide_address(struct flow *c)
{
	struct egress_decision *d = &c->decision;

	egress_decide_address(&c->flows->gate->egress, &c->address, c->port, owner_of(&c->address),
			      d);
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
	struct address refused; /* the last that was */
	struct egress_decision decision;
};

static bool is_peer_allowed(void *context, const struct address *to)
{
	struct peer_check *check = context;
	struct egress_decision d;

	egress_decide_resolved(&check->flow->flows->gate->egress, to, check->flow->port,
			       owner_of(to), &d);
	if (d.is_allowed)
		return true;
	check->refused = *to;
	check->decision = d;
	return false;
}

/* The addresses that the flow's name has. Returns false when the flow is gone. */
static bool judge_peer(struct flow *c)
{
	struct peer_check check = { .flow = c };

	if (!c->name || egress_is_host_name(c->name))
		return true;
	if (c->state == RESOLVING ||
	    (c->state == DIALING && dial_keep(c->dial, is_peer_allowed, &check)) ||
	    (c->state == OPEN && is_peer_allowed(&check, &c->peer)))
		return true;
	note_decision(c, &check.decision, &check.refused);
	reset_flow(c);
	return false;
}

/* Whom the client asked for. Returns false when the flow is gone. */
static bool judge_asked(struct flow *c)
{
	char name[DOMAIN_MAX_BYTES + 1];

	for (const struct asked *a = c->asked; a; a = a->next) {
		struct egress_decision d = { 0 };

		if (is_ask_allowed(c, &a->ask, &d, name))
			continue;
		refuse_ask(c, &a->ask, &d, name);
		close_flow(c);
		return false;
	}
	return true;
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
		(void)(judge_peer(c) && judge_asked(c));
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
		reset_flow(c); /* our own listener is not a place to go to */
	} else if (c->port == PLAN_DNS_PORT) {
		nameserver_take_stream(c->flows->nameserver, take_fd(&c->client_fd));
		close_flow(c);
	} else if (names_is_synthetic(&c->address)) {
		c->name = names_get_name(c->flows->gate->names, &c->address);
		if (c->name) {
			begin_name(c);
			return;
		}
		note(c, JOURNAL_DENIED,
		     "an address that stands for a name, but for none that was looked up");
		reset_flow(c);
	} else {
		begin_address(c);
	}
}

/* One that never carried a byte; the oldest such is the least likely to be missed. */
static void make_room(struct flows *f)
{
	struct flow *c;

	TAILQ_FOREACH(c, &f->list, link)
	{
		if (!c->is_silent || c->state != OPEN)
			continue;
		reset_flow(c);
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
	sniff_init(&c->sniff);
	buf_init(&c->held, HELD_MAX_BYTES);
	TAILQ_INSERT_TAIL(&f->list, c, link);
	f->count++;
	begin(c);
}

/* The machine is out of something; trying at once again would only burn its processor. */
static void pause_listening(struct flows *f)
{
	static const struct timeval soon = { .tv_usec = PAUSE_MS * 1000 };

	(void)event_del(&f->listener);
	f->is_listening = false;
	(void)evtimer_add(&f->unpause, &soon);
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
	struct flows *f = context;

	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
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
		take(f, client_fd);
	}
	update_listening(f);
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
	TAILQ_INIT(&f->paused);
	(void)evtimer_assign(&f->unpause, g->base, on_unpause, f);
	(void)event_assign(&f->listener, g->base, listener_fd, EV_READ | EV_PERSIST, on_connection,
			   f);
	update_listening(f);
	return f;
}

void flow_close_all(struct flows *f)
{
	struct flow *c;

	if (!f)
		return;
	flow_stop_listening(f);
	while ((c = TAILQ_FIRST(&f->list))) {
		/* a reset would also take back what the server has not read yet */
		if (c->state == OPEN && c->lanes[TO_SERVER].is_shut)
			close_flow(c);
		else
			reset_flow(c);
	}
	(void)evtimer_del(&f->unpause);
	free(f);
}

void flow_stop_listening(struct flows *f)
{
	f->is_over = true;
	update_listening(f);
}

bool flow_is_idle(const struct flows *f)
{
	return f->count == 0;
}

bool flow_is_sending(const struct flows *f)
{
	const struct flow *c;

	TAILQ_FOREACH(c, &f->list, link)
	if (c->state != OPEN || !c->lanes[TO_SERVER].is_shut)
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
		refuse_bad(c, "not whole in time");
		close_flow(c);
	}
}
