/* flowcheck - checks the bytes of a connection's client; see flowcheck.h. */
#include "net/flowcheck.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/flowstate.h"
#include "net/gate.h"
#include "net/hello.h"
#include "policy/domain.h"

#include <string.h>
#include <sys/socket.h>

/* a head, and the bytes read with it */
#define HELD_MAX_BYTES (SNIFF_HEAD_MAX_BYTES + FLOWCHECK_READ_BYTES)

/* ---- which hosts are allowed ---- */

/*
 * A rule that opens an address, or a port of this machine, opens the service there under any name,
 * except blocked names, and not as a proxy to other hosts.
 */
static bool is_own_service(const struct flow *c, const struct sniff_ask *ask,
			   struct egress_decision *d)
{
	bool is_opened = c->is_by_address || (c->name && egress_is_host_name(c->name));

	d->is_allowed = is_opened && ask->port == 0 && d->reason != EGRESS_BY_RULE;
	return d->is_allowed;
}

/* Checks the target of a request or a server name as a connection to it would be. */
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
			d->is_allowed = true; /* this is the connection's own destination */
			return true;
		}
		egress_decide_address(g, &address, port, flowstate_get_owner(c, &address, port), d);
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

/* ---- refusing ---- */

static void write_last_words(struct flow *c, const char *bytes, size_t len)
{
	/* in the middle of an answer our text would be taken as part of it */
	if (c->has_server_spoken) {
		flowstate_arm_reset(c->client_fd);
		flowstate_arm_reset(c->server_fd);
		return;
	}
	/* best effort, then a normal close, so that the client can read it */
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

enum alert { ACCESS_DENIED = 49, DECODE_ERROR = 50 };

static void refuse_tls(struct flow *c, enum alert why)
{
	const char alert[] = { 0x15, 0x03, 0x03, 0x00, 0x02, 0x02 /* fatal */, (char)why };

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
			     name[0] ? name : flowstate_get_host(c, text), port, buf_text(&reason),
			     buf_text(&fix));
	if (ask->protocol == SNIFF_TLS)
		refuse_tls(c, ACCESS_DENIED);
	else if (ask->protocol != SNIFF_HTTP2)
		refuse_http(c, "403 Forbidden", buf_text(&reason));
}

/* `bytes` are refused; their first byte shows the protocol. */
static void refuse_bytes(struct flow *c, const uint8_t *bytes, size_t len, const char *problem)
{
	cleanup_buf struct buf reason;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_addf(&reason, "malformed: %s", problem);
	flowstate_note(c, JOURNAL_DENIED, buf_text(&reason));
	if (len > 0 && bytes[0] == HELLO_FIRST_BYTE)
		refuse_tls(c, DECODE_ERROR);
	else
		refuse_http(c, "400 Bad Request", buf_text(&reason));
}

void flowcheck_refuse(struct flow *c, const char *problem)
{
	refuse_bytes(c, (const uint8_t *)c->held.bytes, c->held.len, problem);
}

/* ---- holding ---- */

/* Returns false if the flow was freed because it holds too much. */
static bool hold(struct flow *c, const uint8_t *bytes, size_t len)
{
	struct flows *f = c->flows;
	size_t before = c->held.len;

	if (len > 0 && !c->is_held) {
		c->is_held = true;
		c->held_until_ms = clock_now_ms() + FLOWCHECK_HELD_MAX_S * 1000;
	}
	buf_add(&c->held, bytes, len);
	f->held_bytes += c->held.len - before;
	if (!c->held.is_cut && f->held_bytes <= FLOWCHECK_HELD_MAX_BYTES)
		return true;
	flowcheck_refuse(c, "too much that is not whole");
	flowstate_close(c);
	return false;
}

/* Keeps the bytes that sniff does not release in `held`. Returns false if the flow was freed. */
static bool keep_rest(struct flow *c, const uint8_t *bytes, size_t len, size_t released)
{
	if (bytes != (const uint8_t *)c->held.bytes) {
		if (!hold(c, bytes + released, len - released))
			return false;
	} else if (released > 0) {
		memmove(c->held.bytes, c->held.bytes + released, len - released);
		flowstate_set_held(c, len - released);
		c->held_until_ms =
			clock_now_ms() + FLOWCHECK_HELD_MAX_S * 1000; /* deadline of the next */
	}
	if (c->held.len == 0) {
		c->is_held = false;
		buf_done(&c->held);
		buf_init(&c->held, HELD_MAX_BYTES);
	}
	return true;
}

/* ---- inspecting ---- */

/*
 * Remembers the host for later rule changes. Earlier ones are over, except tunnels, since this one
 * is inside them. Returns false if there are too many tunnels.
 */
static bool remember_ask(struct flow *c, const struct sniff_ask *ask, const char *name)
{
	struct flow_asked *a;

	if (c->asked && c->asked->ask.protocol != SNIFF_HTTP_CONNECT)
		flowstate_forget_ask(c);
	if (ask->protocol == SNIFF_HTTP_CONNECT && ++c->tunnel_count > FLOWCHECK_TUNNELS_MAX)
		return false;
	if (c->name && ask->has_name && strcmp(name, c->name) == 0 &&
	    (ask->port == 0 || ask->port == c->port))
		return true; /* the connection's own destination */
	a = mem_alloc(sizeof(*a));
	a->next = c->asked;
	a->ask = *ask;
	c->asked = a;
	return true;
}

/* Returns false if the host was refused and the flow freed. */
static bool answer_ask(struct flow *c, const struct sniff_ask *ask)
{
	struct egress_decision d = { 0 };
	char name[DOMAIN_MAX_BYTES + 1];

	if (!is_ask_allowed(c, ask, &d, name)) {
		refuse_ask(c, ask, &d, name);
		flowstate_close(c);
		return false;
	}
	if (!remember_ask(c, ask, name)) {
		flowcheck_refuse(c, "too many tunnels within tunnels");
		flowstate_close(c);
		return false;
	}
	sniff_allow(&c->sniff);
	return true;
}

/*
 * Passes the client's bytes to sniff and forwards what it releases. `bytes` are all that were not
 * forwarded yet: either held, or just read with nothing held. Returns false if the flow was freed.
 */
static bool inspect(struct flow *c, const uint8_t *bytes, size_t len)
{
	struct relay *l = &c->relays[FLOW_TO_SERVER];
	enum sniff_verdict verdict;
	size_t released = 0;

	do {
		struct sniff_result result = { 0 };

		verdict = sniff_client(&c->sniff, bytes + released, len - released, &result);
		if (verdict == SNIFF_PASS) {
			c->is_sniffed = true;
			l->options.turn_max_bytes = RELAY_READ_MAX_BYTES;
			result.release = len - released;
		}
		if (!relay_push(l, bytes + released, result.release))
			return false;
		released += result.release;
		if (verdict == SNIFF_BAD) {
			refuse_bytes(c, bytes + released, len - released, result.problem);
			flowstate_close(c);
			return false;
		}
		if (verdict == SNIFF_ASK && !answer_ask(c, &result.ask))
			return false;
	} while (verdict == SNIFF_ASK);
	return keep_rest(c, bytes, len, released);
}

bool flowcheck_on_client(struct flow *c, const uint8_t *bytes, size_t len)
{
	if (c->is_sniffed)
		return relay_push(&c->relays[FLOW_TO_SERVER], bytes, len);
	if (c->held.len == 0)
		return inspect(c, bytes, len);
	return hold(c, bytes, len) && inspect(c, (const uint8_t *)c->held.bytes, c->held.len);
}

/* The server's answer may determine how the client's next bytes are parsed. */
bool flowcheck_on_server(struct flow *c, const uint8_t *bytes, size_t len)
{
	c->has_server_spoken = true;
	if (!relay_push(&c->relays[FLOW_TO_CLIENT], bytes, len))
		return false;
	if (c->is_sniffed || !sniff_wants_server(&c->sniff))
		return true;
	sniff_server(&c->sniff, bytes, len);
	return c->held.len == 0 || inspect(c, (const uint8_t *)c->held.bytes, c->held.len);
}

/*
 * The client has closed its side, so held bytes can never be completed: they are refused if they
 * are part of a known protocol, and forwarded otherwise.
 */
bool flowcheck_on_client_end(struct flow *c)
{
	if (c->held.len == 0)
		return true;
	if (!sniff_can_end(&c->sniff, (const uint8_t *)c->held.bytes, c->held.len)) {
		flowcheck_refuse(c, "ended in the middle");
		flowstate_close(c);
		return false;
	}
	c->is_sniffed = true;
	if (!relay_push(&c->relays[FLOW_TO_SERVER], c->held.bytes, c->held.len))
		return false;
	flowstate_set_held(c, 0);
	c->is_held = false;
	return true;
}

/* ---- start, and new rules ---- */

void flowcheck_init(struct flow *c)
{
	sniff_init(&c->sniff);
	buf_init(&c->held, HELD_MAX_BYTES);
}

size_t flowcheck_get_held_max(void)
{
	return HELD_MAX_BYTES;
}

bool flowcheck_judge(struct flow *c)
{
	char name[DOMAIN_MAX_BYTES + 1];

	for (const struct flow_asked *a = c->asked; a; a = a->next) {
		struct egress_decision d = { 0 };

		if (is_ask_allowed(c, &a->ask, &d, name))
			continue;
		refuse_ask(c, &a->ask, &d, name);
		flowstate_close(c);
		return false;
	}
	return true;
}
