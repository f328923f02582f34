/*
 * nameserver - answers every DNS query of the sandbox; see nameserver.h.
 *
 * Theory of operation. A query arrives by UDP (with its destination address, which must be the
 * source of the answer) or on a TCP stream (with a length prefix). decide() answers at once or
 * starts a lookup; then the query is kept as a struct pending until the lookup has ended.
 *
 * A query for records of a service ("_mongodb._tcp.a.example") may be governed by the rules of its
 * host (egress_records_name). Other queries for such a name, if the name itself is not allowed, get
 * "no data" without a lookup: NXDOMAIN would apply to its records too.
 *
 * The CPU time for all this is bounded (net/effort.h): above the budget nothing is read for a
 * while, and the kernel drops packets.
 *
 * Hostile input: every query. dns_parse() checks them; a stream that sends garbage is closed.
 * Replies of name servers do not reach this file: net/resolve parses them.
 */
#include "net/nameserver.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "net/dns.h"
#include "net/dnsrecord.h"
#include "net/effort.h"
#include "net/gate.h"
#include "net/journal.h"
#include "net/names.h"
#include "net/resolve.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define TTL_S 60u
#define PACKETS_A_TURN 64 /* then other events get their turn */
#define LENGTH_BYTES 2u

struct stream {
	struct nameserver *server;
	int fd;
	unsigned waiting; /* queries not answered yet */
	bool has_ended;   /* the client has closed its sending side */
	bool is_closed;   /* to be freed with the last answer */
	size_t have;
	struct event event;
	TAILQ_ENTRY(stream) link;
	uint8_t bytes[LENGTH_BYTES + DNS_QUERY_MAX_BYTES];
};

/* The destination of an answer. */
struct asker {
	struct stream *stream; /* NULL: UDP */
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
	struct in_addr from_v4;
	struct in6_addr from_v6;
};

struct pending {
	struct nameserver *server;
	struct asker asker;
	struct dns_query query;
	struct resolve_waiter waiter;
	TAILQ_ENTRY(pending) link;
	uint8_t question[12 + 256 + 4];
};

struct socket_event {
	struct nameserver *server;
	struct event event;
	int fd;
};

struct nameserver {
	struct gate *gate;
	struct socket_event v4, v6;
	unsigned pending_count, stream_count;
	bool is_paused; /* packet and stream events are removed */
	bool was_asked; /* since the last nameserver_is_idle() */
	TAILQ_HEAD(, pending) pending;
	TAILQ_HEAD(, stream) streams;
};

/* ---- sending ---- */

static void send_packet(const struct asker *a, const uint8_t *bytes, size_t len)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)&a->to,
		.msg_namelen = a->to_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
	};
	struct cmsghdr *head = (struct cmsghdr *)(void *)control;

	if (a->to.ss_family == AF_INET) {
		const struct in_pktinfo info = { .ipi_spec_dst = a->from_v4 };

		head->cmsg_level = IPPROTO_IP;
		head->cmsg_type = IP_PKTINFO;
		head->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(head), &info, sizeof(info));
		message.msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		const struct in6_pktinfo info = { .ipi6_addr = a->from_v6 };

		head->cmsg_level = IPPROTO_IPV6;
		head->cmsg_type = IPV6_PKTINFO;
		head->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(head), &info, sizeof(info));
		message.msg_controllen = CMSG_SPACE(sizeof(info));
	}
	(void)sendmsg(a->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* UDP may be lost */
}

static void close_stream(struct stream *s)
{
	if (!s->is_closed) {
		(void)event_del(&s->event);
		cleanup_closep(&s->fd);
		s->is_closed = true;
	}
	if (s->waiting > 0)
		return;
	TAILQ_REMOVE(&s->server->streams, s, link);
	s->server->stream_count--;
	free(s);
}

/* Answers fit an empty send buffer; a client that reads too slowly loses its stream. */
static void send_stream(struct stream *s, const uint8_t *bytes, size_t len)
{
	uint8_t framed[LENGTH_BYTES + DNS_STREAM_MAX_BYTES];

	if (s->is_closed)
		return;
	framed[0] = (uint8_t)(len >> 8);
	framed[1] = (uint8_t)len;
	memcpy(framed + LENGTH_BYTES, bytes, len);
	if (send(s->fd, framed, len + LENGTH_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    (ssize_t)(len + LENGTH_BYTES))
		(void)shutdown(s->fd, SHUT_RDWR); /* its event will then close it */
}

static void reply(const struct asker *a, const uint8_t *query, const struct dns_query *q,
		  const struct dns_answer *answer)
{
	uint8_t out[DNS_STREAM_MAX_BYTES];
	size_t packet_max =
		q->udp_max_bytes < DNS_MESSAGE_MAX_BYTES ? q->udp_max_bytes : DNS_MESSAGE_MAX_BYTES;
	size_t max = a->stream ? DNS_STREAM_MAX_BYTES : packet_max;
	size_t len = dns_answer(query, q, answer, max, out);

	if (a->stream)
		send_stream(a->stream, out, len);
	else
		send_packet(a, out, len);
}

/* ---- deciding ---- */

static void set_loopback(uint16_t type, struct dns_answer *a)
{
	if (type != DNS_TYPE_A && type != DNS_TYPE_AAAA)
		return;
	a->kind = DNS_ADDRESS;
	(void)address_parse(type == DNS_TYPE_A ? "127.0.0.1" : "::1", &a->address);
}

static void set_synthetic(struct gate *g, const struct dns_query *q, struct dns_answer *a)
{
	if (q->type != DNS_TYPE_A)
		return;
	if (names_get_address(g->names, q->name, &a->address))
		a->kind = DNS_ADDRESS;
	else
		a->rcode = DNS_SERVER_FAILURE;
}

static void set_pointer(struct gate *g, const struct dns_query *q, struct dns_answer *a)
{
	struct address address;

	if (q->type != DNS_TYPE_PTR)
		return;
	a->pointer =
		dns_parse_reverse(q->name, &address) ? names_get_name(g->names, &address) : NULL;
	if (a->pointer)
		a->kind = DNS_POINTER;
	else
		a->rcode = DNS_NAME_ERROR;
}

/* The type to look up: a record type, or RESOLVE_ADDRESSES, which also shows if a name exists. */
static uint16_t asked_type(const struct dns_query *q)
{
	return dnsrecord_type_word(q->type) ? q->type : RESOLVE_ADDRESSES;
}

/* The name whose rules decide about a query. */
static const char *judged_name(const struct gate *g, const struct dns_query *q)
{
	return asked_type(q) == RESOLVE_ADDRESSES ? q->name
						  : egress_records_name(&g->egress, q->name);
}

static bool may_ask(const struct gate *g, const struct dns_query *q)
{
	return egress_can_allow(&g->egress, judged_name(g, q));
}

/* For a service's records the suggested fix allows its host: nobody connects to a service name. */
static void note_denied(struct gate *g, const struct dns_query *q)
{
	bool is_address = asked_type(q) == RESOLVE_ADDRESSES;
	cleanup_buf struct buf reason;
	cleanup_buf struct buf fix;
	struct egress_decision d;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_init(&fix, BUF_TEXT_MAX_BYTES);
	egress_decide_name(&g->egress, judged_name(g, q), 0, &d);
	egress_format_reason(&g->egress, &d, &reason);
	egress_format_fix(&d, is_address ? q->name : domain_service_host(q->name), NULL, 0, &fix);
	(void)journal_add(g->journal, JOURNAL_DENIED, q->name, 0, buf_text(&reason), buf_text(&fix));
}

static void note_lookup(struct gate *g, const struct dns_query *q)
{
	const char *type = dnsrecord_type_word(q->type);
	char reason[32] = "asked outside";

	if (resolve_is_known(g->resolve, q->name, asked_type(q)))
		return;
	if (type)
		(void)snprintf(reason, sizeof(reason), "asked outside (%s)", type);
	(void)journal_add(g->journal, JOURNAL_LOOKUP, q->name, 0, reason, "");
}

static void set_records(const struct resolve_answer *found, struct dns_answer *a)
{
	a->kind = DNS_RECORDS;
	a->records = found->records;
	a->ttl_s = found->ttl_s;
}

static void finish_lookup(struct gate *g, const struct dns_query *q,
			  const struct resolve_answer *found, struct dns_answer *a)
{
	switch (found->status) {
	case RESOLVE_FOUND:
		if (found->records)
			set_records(found, a);
		else
			set_synthetic(g, q, a);
		break;
	case RESOLVE_NO_DATA:
		break;
	case RESOLVE_NOT_FOUND:
		a->rcode = DNS_NAME_ERROR;
		break;
	case RESOLVE_FAILED:
	case RESOLVE_LIMITED:
		a->rcode = DNS_SERVER_FAILURE;
		break;
	}
}

static void finish(struct pending *p, const struct dns_answer *a)
{
	struct nameserver *n = p->server;
	struct stream *s = p->asker.stream;

	reply(&p->asker, p->question, &p->query, a);
	if (s && --s->waiting == 0 && (s->is_closed || s->has_ended))
		close_stream(s);
	TAILQ_REMOVE(&n->pending, p, link);
	n->pending_count--;
	free(p);
}

static void on_resolved(void *context, const struct resolve_answer *found)
{
	struct pending *p = context;
	struct dns_answer a = { .ttl_s = TTL_S };

	finish_lookup(p->server->gate, &p->query, found, &a);
	finish(p, &a);
}

void nameserver_judge_all(struct nameserver *n)
{
	const struct dns_answer no = { .ttl_s = TTL_S, .rcode = DNS_NAME_ERROR };
	struct pending *p, *next;

	for (p = TAILQ_FIRST(&n->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (may_ask(n->gate, &p->query))
			continue;
		note_denied(n->gate, &p->query);
		resolve_forget(&p->waiter);
		finish(p, &no);
	}
}

static void look_up(struct nameserver *n, const struct asker *asker, const uint8_t *query,
		    const struct dns_query *q)
{
	struct pending *p;

	if (n->pending_count == NAMESERVER_WAITING_MAX)
		return;
	note_lookup(n->gate, q);
	p = mem_alloc(sizeof(*p));
	p->server = n;
	p->asker = *asker;
	p->query = *q;
	assert(12u + q->question_len <= sizeof(p->question));
	memcpy(p->question, query, 12u + q->question_len);
	if (asker->stream)
		asker->stream->waiting++;
	TAILQ_INSERT_TAIL(&n->pending, p, link);
	n->pending_count++;
	resolve_ask(n->gate->resolve, q->name, asked_type(q), on_resolved, p, &p->waiter);
}

static bool is_below(const char *name, const char *parent)
{
	size_t len = strlen(name), parent_len = strlen(parent);

	return len > parent_len + 1 && name[len - parent_len - 1] == '.' &&
	       strcmp(name + len - parent_len, parent) == 0;
}

/* Is it a service name whose records may be looked up? */
static bool is_open_service(const struct gate *g, const char *name)
{
	return domain_service_host(name) != name &&
	       egress_can_allow(&g->egress, egress_records_name(&g->egress, name));
}

/* Returns false if the answer has to wait for a lookup. */
static bool decide(struct gate *g, const struct dns_query *q, struct dns_answer *a)
{
	if (!q->has_name || !q->is_internet) {
		a->rcode = DNS_NAME_ERROR;
	} else if (strcmp(q->name, "localhost") == 0 || is_below(q->name, "localhost")) {
		set_loopback(q->type, a);
	} else if (is_below(q->name, "in-addr.arpa") || is_below(q->name, "ip6.arpa")) {
		set_pointer(g, q, a);
	} else if (!may_ask(g, q)) {
		if (is_open_service(g, q->name))
			return true; /* no data */
		note_denied(g, q);
		a->rcode = DNS_NAME_ERROR;
	} else if (egress_is_host_name(judged_name(g, q))) {
		set_synthetic(g, q, a);
	} else {
		return false;
	}
	return true;
}

static void serve(struct nameserver *n, const struct asker *asker, const uint8_t *bytes, size_t len)
{
	struct dns_answer a = { .ttl_s = TTL_S };
	struct dns_query q;
	enum dns_rcode rcode;

	n->was_asked = true;
	switch (dns_parse(bytes, len, &q, &rcode)) {
	case DNS_DROP:
		return;
	case DNS_WRONG:
		a.rcode = rcode;
		break;
	case DNS_QUERY:
		if (!decide(n->gate, &q, &a)) {
			look_up(n, asker, bytes, &q);
			return;
		}
		break;
	}
	reply(asker, bytes, &q, &a);
}

/* ---- packets ---- */

static bool find_destination(struct msghdr *message, struct asker *a)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			a->from_v4 = info.ipi_addr;
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			a->from_v6 = info.ipi6_addr;
			return true;
		}
	}
	return false;
}

static void on_packet(evutil_socket_t fd, short what, void *context)
{
	struct socket_event *s = context;
	uint8_t bytes[DNS_QUERY_MAX_BYTES + 1];
	uint64_t begun_us = effort_begin();

	(void)what;
	for (int i = 0; i < PACKETS_A_TURN; i++) {
		_Alignas(struct cmsghdr) char control[256];
		struct asker a = { .fd = fd };
		struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
		struct msghdr message = {
			.msg_name = &a.to,
			.msg_namelen = sizeof(a.to),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

		if (n < 0)
			break;
		a.to_len = message.msg_namelen;
		if (find_destination(&message, &a))
			serve(s->server, &a, bytes, (size_t)n);
	}
	effort_end(s->server->gate->effort, begun_us);
}

/* ---- streams ---- */

static void serve_stream(struct stream *s)
{
	while (s->have >= LENGTH_BYTES && !s->is_closed) {
		size_t len = (size_t)s->bytes[0] << 8 | s->bytes[1];
		struct asker a = { .stream = s };

		if (len > DNS_QUERY_MAX_BYTES) {
			close_stream(s);
			return;
		}
		if (s->have < LENGTH_BYTES + len)
			return;
		serve(s->server, &a, s->bytes + LENGTH_BYTES, len);
		s->have -= LENGTH_BYTES + len;
		memmove(s->bytes, s->bytes + LENGTH_BYTES + len, s->have);
	}
}

static void read_stream(struct stream *s)
{
	ssize_t n = recv(s->fd, s->bytes + s->have, sizeof(s->bytes) - s->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* the client may have closed only its sending side and still wait for answers */
		s->has_ended = n == 0 && s->waiting > 0;
		if (s->has_ended)
			(void)event_del(&s->event);
		else
			close_stream(s);
		return;
	}
	s->have += (size_t)n;
	serve_stream(s);
}

static void on_stream(evutil_socket_t fd, short what, void *context)
{
	struct stream *s = context;
	struct nameserver *n = s->server;
	uint64_t begun_us = effort_begin();

	(void)fd;
	if (what & EV_TIMEOUT)
		close_stream(s);
	else
		read_stream(s);
	effort_end(n->gate->effort, begun_us);
}

static void watch_stream(struct stream *s)
{
	static const struct timeval idle = { .tv_sec = NAMESERVER_STREAM_IDLE_S };

	(void)event_add(&s->event, &idle);
}

void nameserver_take_stream(struct nameserver *n, int fd)
{
	struct stream *s;

	if (n->stream_count == NAMESERVER_STREAMS_MAX) {
		(void)close(fd);
		return;
	}
	s = mem_alloc(sizeof(*s));
	s->server = n;
	s->fd = fd;
	TAILQ_INSERT_TAIL(&n->streams, s, link);
	n->stream_count++;
	(void)event_assign(&s->event, n->gate->base, fd, EV_READ | EV_PERSIST, on_stream, s);
	if (!n->is_paused)
		watch_stream(s);
}

/* ---- life ---- */

static void pause_socket(struct socket_event *s, bool is_paused)
{
	if (s->fd < 0)
		return;
	if (is_paused)
		(void)event_del(&s->event);
	else
		(void)event_add(&s->event, NULL);
}

void nameserver_pause(struct nameserver *n, bool is_paused)
{
	struct stream *s;

	n->is_paused = is_paused;
	pause_socket(&n->v4, is_paused);
	pause_socket(&n->v6, is_paused);
	TAILQ_FOREACH(s, &n->streams, link)
	{
		if (s->is_closed || s->has_ended)
			continue;
		if (is_paused)
			(void)event_del(&s->event);
		else
			watch_stream(s);
	}
}

static void watch(struct nameserver *n, struct socket_event *s, int fd)
{
	s->server = n;
	s->fd = fd;
	if (fd < 0)
		return;
	(void)event_assign(&s->event, n->gate->base, fd, EV_READ | EV_PERSIST, on_packet, s);
	(void)event_add(&s->event, NULL);
}

struct nameserver *nameserver_new(struct gate *g, int v4_fd, int v6_fd)
{
	struct nameserver *n = mem_alloc(sizeof(*n));

	n->gate = g;
	TAILQ_INIT(&n->pending);
	TAILQ_INIT(&n->streams);
	watch(n, &n->v4, v4_fd);
	watch(n, &n->v6, v6_fd);
	return n;
}

bool nameserver_is_idle(struct nameserver *n)
{
	bool was_asked = n->was_asked;

	n->was_asked = false;
	return !was_asked && n->pending_count == 0 && n->stream_count == 0;
}

void nameserver_free(struct nameserver *n)
{
	struct pending *p;

	if (!n)
		return;
	if (n->v4.fd >= 0)
		(void)event_del(&n->v4.event);
	if (n->v6.fd >= 0)
		(void)event_del(&n->v6.event);
	/* analysers do not understand TAILQ_REMOVE: NOLINTBEGIN(clang-analyzer-unix.Malloc) */
	while ((p = TAILQ_FIRST(&n->pending))) {
		resolve_forget(&p->waiter);
		if (p->asker.stream)
			p->asker.stream->waiting--;
		TAILQ_REMOVE(&n->pending, p, link);
		free(p);
	}
	while (!TAILQ_EMPTY(&n->streams))
		close_stream(TAILQ_FIRST(&n->streams));
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	free(n);
}
