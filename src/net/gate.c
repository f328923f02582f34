/*
 * gate - agentkernel-gate, the only way out of a sandbox, and the way in to its published ports.
 *
 * Theory of operation. The supervisor starts one gate per sandbox at the first packet, as an
 * ordinary user, with an empty environment and the descriptors of enum gate_descriptor. The gate
 * reads its rules, confines itself, and serves DNS (net/nameserver.h), connections of the sandbox
 * (net/flow.h) and connections to its published ports (net/inbound.h) in one event loop. It has no
 * other channel to the sandbox, and sends the supervisor only denials and traffic counts. A sandbox
 * without a network has no sockets for it: then the gate serves published ports alone.
 *
 * The supervisor may send new rules and ports at any time (net/gatemessage.h). Rules apply at once
 * and to everything: connections, lookups and dials that they forbid end, others are not affected.
 * A gate that cannot apply a message exits: without a gate there is no network, and the next one
 * starts with the new rules.
 *
 * It also exits after a period without traffic (GATE_IDLE_S): an idle sandbox has no gate. It exits
 * when the supervisor closes its socket: then data that the sandbox has already sent is still
 * forwarded, for LINGER_MS at most. If it dies, the sandbox has no network until the supervisor has
 * started another; names keep their addresses (net/names.h).
 *
 * Hostile input: everything from the sandbox; answers of name servers; bytes of other servers,
 * which are forwarded without parsing, except the status line after a CONNECT or Upgrade.
 */
#include "net/gate.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/title.h"
#include "net/confine.h"
#include "net/effort.h"
#include "net/flow.h"
#include "net/inbound.h"
#include "net/journal.h"
#include "net/names.h"
#include "net/nameserver.h"
#include "net/netns.h"
#include "net/ownaddress.h"
#include "net/gatemessage.h"
#include "net/resolve.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_FAILED 125
#define BURST_MS 50u /* burst, in time at full bandwidth */
#define BURST_MIN_BYTES 1500u
#define LINGER_MS 2000u
#define LINGER_LOOK_MS 5

struct options {
	const char *sandbox;
	uint64_t bandwidth_bytes_per_s;
	unsigned socket_count;
	uint32_t id;
};

struct server {
	struct gate gate;
	struct nameserver *nameserver;
	struct flows *flows; /* NULL, like the name server: the sandbox has no network */
	struct inbounds *inbounds;
	struct event *second, *supervisor, *linger;
	unsigned idle_s;
	bool ack_pending;                  /* must tell the supervisor that the rules are applied */
	uint64_t told_sent, told_received; /* bytes reported to the supervisor */
	uint64_t end_ms;                   /* deadline to exit once the supervisor is gone */
	int exit_code;
};

static int read_options(char **argv, struct options *ret, struct err *e)
{
	uint64_t sockets = 0, id = 0;

	for (int i = 1; i <= GATE_ARGUMENT_COUNT; i++)
		if (!argv[i])
			return err_set(e, ERR_INVALID, "agentkernel starts this program itself");
	ret->sandbox = argv[1];
	if (parse_count(argv[2], 0, GATEMESSAGE_RATE_MAX_BYTES_PER_S, &ret->bandwidth_bytes_per_s,
			e) < 0 ||
	    parse_count(argv[3], 0, NETNS_SOCKET_COUNT, &sockets, e) < 0 ||
	    parse_count(argv[4], 0, INT32_MAX, &id, e) < 0)
		return -1;
	ret->socket_count = (unsigned)sockets;
	ret->id = (uint32_t)id;
	return 0;
}

/* First step: a program that parses packets must not have root's privileges. */
static int become(uint32_t id, struct err *e)
{
	if (id != 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
		return err_sys(e, errno, "give up root's power");
	return 0;
}

static void set_bandwidth(struct gate *g, uint64_t rate)
{
	uint64_t burst = rate * BURST_MS / 1000;

	if (burst < BURST_MIN_BYTES)
		burst = BURST_MIN_BYTES;
	throttle_init(&g->sent, rate, burst, clock_now_ms());
	throttle_init(&g->received, rate, burst, clock_now_ms());
}

/* False: cannot be sent now. */
static bool tell(const char *words)
{
	return send(GATE_SUPERVISOR_FD, words, strlen(words), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void tell_traffic(struct server *s)
{
	const struct gate *g = &s->gate;
	char words[64];

	if (g->sent_bytes == s->told_sent && g->received_bytes == s->told_received)
		return;
	(void)snprintf(words, sizeof(words), GATE_TRAFFIC "%" PRIu64 " %" PRIu64, g->sent_bytes,
		       g->received_bytes);
	if (!tell(words))
		return;
	s->told_sent = g->sent_bytes;
	s->told_received = g->received_bytes;
}

static void tell_that_rules_hold(struct server *s)
{
	if (s->ack_pending && tell(GATE_RULES_APPLIED))
		s->ack_pending = false;
}

static bool is_idle(const struct server *s)
{
	return inbound_is_idle(s->inbounds) &&
	       (!s->flows || (flow_is_idle(s->flows) && nameserver_is_idle(s->nameserver)));
}

static bool is_sending(const struct server *s)
{
	return inbound_is_sending(s->inbounds) || (s->flows && flow_is_sending(s->flows));
}

static void on_second(evutil_socket_t fd, short what, void *context)
{
	struct server *s = context;

	(void)fd;
	(void)what;
	if (s->flows)
		flow_on_second(s->flows);
	inbound_on_second(s->inbounds);
	journal_flush(s->gate.journal, JOURNAL_PERIODIC);
	tell_that_rules_hold(s);
	tell_traffic(s);
	s->idle_s = is_idle(s) ? s->idle_s + 1 : 0;
	if (s->idle_s < GATE_IDLE_S)
		return;
	(void)tell(GATE_IS_IDLE);
	(void)event_base_loopbreak(s->gate.base);
}

static void on_linger(evutil_socket_t fd, short what, void *context)
{
	struct server *s = context;

	(void)fd;
	(void)what;
	if (clock_now_ms() >= s->end_ms || !is_sending(s))
		(void)event_base_loopbreak(s->gate.base);
}

/* Sends it to the supervisor, and to stderr if a user started us. */
static void say_trouble(const struct err *e)
{
	char words[sizeof(GATE_TROUBLE) + ERR_MESSAGE_MAX_BYTES];

	(void)snprintf(words, sizeof(words), GATE_TROUBLE "%s", e->msg);
	(void)tell(words);
	(void)fprintf(stderr, "agentkernel-gate: %s\n", e->msg);
}

static void linger(struct server *s)
{
	static const struct timeval look = { .tv_usec = LINGER_LOOK_MS * 1000 };

	(void)event_del(s->supervisor);
	s->end_ms = clock_now_ms() + LINGER_MS;
	if (s->flows)
		flow_stop_listening(s->flows);
	inbound_stop_listening(s->inbounds);
	on_linger(-1, 0, s);
	(void)event_add(s->linger, &look);
}

/* Decisions point into the rules that made them, so the old rules are freed at the end. */
static void obey(struct server *s, struct gatemessage *o)
{
	struct gate *g = &s->gate;
	struct egress old = g->egress;

	g->egress = o->egress;
	o->egress = (struct egress){ 0 };
	if (o->bandwidth_bytes_per_s != g->sent.rate_per_s)
		set_bandwidth(g, o->bandwidth_bytes_per_s);
	if (s->flows) {
		flow_judge_all(s->flows);
		nameserver_judge_all(s->nameserver);
	}
	egress_done(&old);
	s->ack_pending = true;
	tell_that_rules_hold(s);
}

static void on_supervisor(evutil_socket_t fd, short what, void *context)
{
	CLEANUP(gatemessage_done) struct gatemessage m;
	struct server *s = context;
	struct err e = { 0 };

	(void)what;
	gatemessage_init(&m);
	if (gatemessage_receive(fd, &m, &e) < 0) {
		say_trouble(&e);
		s->exit_code = EXIT_FAILED;
		(void)event_base_loopbreak(s->gate.base);
	} else if (m.kind == GATEMESSAGE_RULES) {
		obey(s, &m);
	} else if (m.kind == GATEMESSAGE_LISTEN) {
		inbound_listen(s->inbounds, &m);
	} else if (m.kind == GATEMESSAGE_UNLISTEN) {
		inbound_unlisten(s->inbounds, m.number);
	} else if (m.kind == GATEMESSAGE_END) {
		linger(s);
	}
}

static void on_effort(void *context, bool is_paused)
{
	struct server *s = context;

	nameserver_pause(s->nameserver, is_paused);
	flow_pause(s->flows, is_paused);
}

static int start(struct server *s, const struct options *o, struct err *e)
{
	static const struct timeval second = { .tv_sec = 1 };
	bool has_v6 = o->socket_count > NETNS_DNS_V6;
	struct gate *g = &s->gate;

	g->base = event_base_new();
	if (!g->base)
		return err_set(e, ERR_SYSTEM, "start the event loop");
	if (gatemessage_read(GATE_RULES_FD, &g->egress, e) < 0 ||
	    names_open(GATE_NAMES_FD, &g->names, e) < 0)
		return -1;
	if (ownaddress_open(&g->routes_fd, e) < 0)
		return -1;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return err_set(e, ERR_SYSTEM, "start the resolver");
	if (resolve_new(g->base, &g->resolve, e) < 0)
		return -1;
	g->journal = journal_new(GATE_LOG_FD, GATE_SUPERVISOR_FD, GATE_SHARE_FD, o->sandbox);
	set_bandwidth(g, o->bandwidth_bytes_per_s);
	g->effort = effort_new(g->base, on_effort, s);
	s->inbounds = inbound_new(g, GATE_DIAL_FD);
	if (o->socket_count > 0) {
		s->nameserver = nameserver_new(g, GATE_FIRST_SOCKET_FD + NETNS_DNS_V4,
					       has_v6 ? GATE_FIRST_SOCKET_FD + NETNS_DNS_V6 : -1);
		s->flows = flow_open_all(g, s->nameserver, GATE_FIRST_SOCKET_FD + NETNS_TCP);
	}
	s->second = event_new(g->base, -1, EV_PERSIST, on_second, s);
	s->linger = event_new(g->base, -1, EV_PERSIST, on_linger, s);
	s->supervisor =
		event_new(g->base, GATE_SUPERVISOR_FD, EV_READ | EV_PERSIST, on_supervisor, s);
	if (!s->second || !s->linger || !s->supervisor)
		return err_set(e, ERR_SYSTEM, "start the event loop");
	(void)event_add(s->second, &second);
	(void)event_add(s->supervisor, NULL);
	return 0;
}

static void stop(struct server *s)
{
	inbound_free(s->inbounds);
	flow_close_all(s->flows);
	tell_traffic(s);
	if (s->nameserver)
		nameserver_free(s->nameserver);
	effort_free(s->gate.effort);
	resolve_free(s->gate.resolve);
	journal_flush(s->gate.journal, JOURNAL_LAST);
	journal_free(s->gate.journal);
	names_free(s->gate.names);
	egress_done(&s->gate.egress);
	for (struct event **event = (struct event *[]){ s->second, s->linger, s->supervisor, NULL };
	     *event; event++)
		event_free(*event);
	cleanup_closep(&s->gate.routes_fd);
	event_base_free(s->gate.base);
}

int main(int argc, char **argv)
{
	cleanup_free char **words = title_init(argv);
	struct server s = { 0 };
	struct options o;
	struct err e = { 0 };

	(void)argc;
	argv = words;
	title_set(TITLE_GATE, argv[0] ? argv[1] : NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	confine_set_limits();
	if (read_options(argv, &o, &e) < 0 || become(o.id, &e) < 0 || start(&s, &o, &e) < 0 ||
	    confine_self(&e) < 0) {
		say_trouble(&e);
		return EXIT_FAILED;
	}
	(void)event_base_dispatch(s.gate.base);
	stop(&s);
	return s.exit_code;
}
