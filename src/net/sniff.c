/*
 * sniff - finds the host that a connection's client asks for; see sniff.h.
 *
 * Theory of operation
 *
 * A connection is in one state, and each state is a function that parses the held bytes. It either
 * returns a verdict, or changes the state and lets the next function parse (STEP_AGAIN). The
 * transitions:
 *
 *	START ─▶ HELLO ─▶ AFTER_HELLO ─▶ PASS               TLS
 *	         HELLO ◀─ AFTER_HELLO                       the server wants another hello
 *	START ─▶ GUESS ─────────────────────────▶ PASS      not HTTP, or HTTP/2
 *	START ─▶ GUESS ─▶ WATCH ────────────────▶ PASS      a first line of something else
 *	START ─▶ GUESS ─▶ HEAD ─▶ BODY ─▶ HEAD ─▶ ...       HTTP
 *	                  HEAD ─▶ AFTER_UPGRADE ─▶ PASS     101, else HEAD
 *	                  HEAD ─▶ AFTER_CONNECT ─▶ START    2xx, else HEAD
 *
 * Once a connection is HTTP it stays HTTP, or is closed: if it could fall back to PASS, a harmless
 * first request would allow anything after it.
 *
 * HELLO, GUESS and HEAD end within SNIFF_HEAD_MAX_BYTES. Only this file enforces that: they get no
 * more bytes, and whatever is incomplete by then is refused. They remember their position, so no
 * byte is parsed more than a few times.
 *
 * A TLS 1.3 server may answer a hello by asking for a second one (HelloRetryRequest), and some
 * servers use the server name of that one. It is not encrypted and is checked like the first.
 *
 * CONNECT and Upgrade are followed only in the first request. There the server's first bytes are
 * its answer; later they could answer any earlier request, and an attacker could choose which.
 */
#include "net/sniff.h"

#include "net/httphead.h"
#include "net/httptoken.h"

#include <assert.h>
#include <string.h>

enum state {
	STATE_START,
	STATE_HELLO,
	STATE_AFTER_HELLO,
	STATE_GUESS,
	STATE_WATCH,
	STATE_HEAD,
	STATE_BODY,
	STATE_AFTER_UPGRADE,
	STATE_AFTER_CONNECT,
	STATE_PASS,
	STATE_BAD,

	STATE_COUNT
};

enum step {
	STEP_MORE = SNIFF_MORE,
	STEP_ASK = SNIFF_ASK,
	STEP_PASS = SNIFF_PASS,
	STEP_BAD = SNIFF_BAD,
	STEP_AGAIN, /* the state has changed: call its function */
};

void sniff_init(struct sniff *s)
{
	memset(s, 0, sizeof(*s));
	s->state = STATE_START;
	hello_init(&s->hello);
	httpguess_init(&s->guess);
}

static enum step go_to(struct sniff *s, enum state state)
{
	s->state = (uint8_t)state;
	return STEP_AGAIN;
}

static enum step refuse(struct sniff *s, const char *problem, struct sniff_result *ret)
{
	s->state = STATE_BAD;
	ret->problem = problem;
	return STEP_BAD;
}

/* Nothing is complete yet and `len` bytes are held: waits, or refuses at the maximum. */
static enum step wait_for_more(struct sniff *s, size_t len, struct sniff_result *ret)
{
	if (len >= SNIFF_HEAD_MAX_BYTES)
		return refuse(s, "more than 64 KiB without saying whom it is for", ret);
	return STEP_MORE;
}

static size_t at_most_a_head(size_t len)
{
	return len < SNIFF_HEAD_MAX_BYTES ? len : SNIFF_HEAD_MAX_BYTES;
}

/* `target` is NULL if the client named no host. */
static enum step ask(struct sniff *s, enum sniff_protocol protocol, const struct authority *target,
		     struct sniff_result *ret)
{
	s->is_asked = true;
	ret->ask.protocol = protocol;
	ret->ask.has_name = target != NULL;
	if (target) {
		memcpy(ret->ask.name, target->name, sizeof(ret->ask.name));
		ret->ask.port = target->port;
	}
	return STEP_ASK;
}

/* ---- the states ---- */

/*
 * Around its hellos a client may send a change cipher spec, which has no meaning, an alert, and
 * early data. None of these names a host.
 */
static bool is_other_record(uint8_t type)
{
	return type == 0x14 || type == 0x15 || type == 0x17;
}

#define OLD_HELLO_BYTES 4u

/* An SSL 2 hello: a length with its high bit set, the message type, TLS's major version. */
static bool may_be_old_hello(const uint8_t *bytes, size_t len)
{
	return (len < 3 || bytes[2] == 0x01) && (len < 4 || bytes[3] == 0x03);
}

/* Refuses an alert before the hello, which some servers skip, and a hello in the form of SSL 2. */
static enum step step_start(struct sniff *s, const uint8_t *bytes, size_t len,
			    struct sniff_result *ret)
{
	if (len == 0)
		return STEP_MORE;
	if (bytes[0] == HELLO_FIRST_BYTE)
		return go_to(s, STATE_HELLO);
	if (bytes[0] >= 0x80 ? len < OLD_HELLO_BYTES && may_be_old_hello(bytes, len)
			     : len < 2 && is_other_record(bytes[0]))
		return STEP_MORE;
	if (bytes[0] >= 0x80 ? may_be_old_hello(bytes, len)
			     : is_other_record(bytes[0]) && bytes[1] == 0x03)
		return refuse(s, "TLS: something else before the hello", ret);
	return go_to(s, STATE_GUESS);
}

/* Follows at most two hellos: the protocol has no more. */
static enum step release_hello(struct sniff *s, struct sniff_result *ret)
{
	ret->release += s->hello.next;
	s->is_allowed = false;
	return go_to(s, s->is_hello_later ? STATE_PASS : STATE_AFTER_HELLO);
}

/* Size of the complete records of that kind at the start. */
static size_t measure_other_records(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (len - at >= HELLO_RECORD_HEADER_BYTES && is_other_record(bytes[at])) {
		size_t record_len =
			HELLO_RECORD_HEADER_BYTES + ((size_t)bytes[at + 3] << 8 | bytes[at + 4]);

		if (len - at < record_len)
			break;
		at += record_len;
	}
	return at;
}

static enum step step_hello(struct sniff *s, const uint8_t *bytes, size_t len,
			    struct sniff_result *ret)
{
	struct authority target = { 0 };
	bool has_name = false;
	const char *problem;

	if (s->is_allowed)
		return release_hello(s, ret);
	if (s->is_hello_later) {
		size_t others = measure_other_records(bytes, len);

		ret->release += others;
		bytes += others;
		len -= others;
		if (len == 0 || is_other_record(bytes[0]))
			return wait_for_more(s, len, ret);
		if (bytes[0] != HELLO_FIRST_BYTE)
			return refuse(s, "TLS: not a record where a second hello is due", ret);
	}
	problem = hello_scan(&s->hello, bytes, at_most_a_head(len));
	if (problem)
		return refuse(s, problem, ret);
	if (!s->hello.is_whole)
		return wait_for_more(s, len, ret);
	problem = hello_parse(&s->hello, bytes, &target, &has_name);
	if (problem)
		return refuse(s, problem, ret);
	return ask(s, SNIFF_TLS, has_name ? &target : NULL, ret);
}

static enum step step_guess(struct sniff *s, const uint8_t *bytes, size_t len,
			    struct sniff_result *ret)
{
	if (s->is_allowed)
		return go_to(s, STATE_PASS);
	switch (httpguess_scan(&s->guess, bytes, at_most_a_head(len))) {
	case HTTPGUESS_OTHER:
		return go_to(s, STATE_PASS);
	case HTTPGUESS_WATCH:
		s->scanned = 0;
		return go_to(s, STATE_WATCH);
	case HTTPGUESS_HTTP:
		return go_to(s, STATE_HEAD);
	case HTTPGUESS_HTTP2:
		return ask(s, SNIFF_HTTP2, NULL, ret);
	case HTTPGUESS_BAD:
		return refuse(s, "HTTP: not a request line, but nearly one", ret);
	case HTTPGUESS_MORE:
		break;
	}
	return wait_for_more(s, len, ret);
}

/* Releases all bytes except the few that could be the start of "HTTP/". */
static enum step step_watch(struct sniff *s, const uint8_t *bytes, size_t len,
			    struct sniff_result *ret)
{
	size_t seen = s->scanned; /* checked before, and held */

	switch (httpguess_watch(&s->watch, bytes + seen, len - seen)) {
	case HTTPGUESS_OTHER:
		return go_to(s, STATE_PASS);
	case HTTPGUESS_MORE:
		s->scanned = s->watch.matched;
		ret->release += len - s->watch.matched;
		return STEP_MORE;
	default:
		return refuse(s, "HTTP: unknown method", ret);
	}
}

/* Determines the state after this head, used once the host was allowed. */
static const char *plan_after_head(struct sniff *s, const struct httphead *head)
{
	s->after_head = STATE_BODY;
	if (head->is_chunked)
		httpbody_init_chunked(&s->body);
	else
		httpbody_init_length(&s->body, head->body_bytes);
	if (head->form == HTTPHEAD_CONNECT && s->is_later)
		return "HTTP: CONNECT after another request";
	if (head->form == HTTPHEAD_CONNECT)
		s->after_head = STATE_AFTER_CONNECT;
	else if (head->wants_upgrade && !s->is_later)
		s->after_head = STATE_AFTER_UPGRADE;
	return NULL;
}

static enum step ask_about_head(struct sniff *s, const uint8_t *bytes, struct sniff_result *ret)
{
	static const enum sniff_protocol protocol[] = {
		[HTTPHEAD_ORIGIN] = SNIFF_HTTP,
		[HTTPHEAD_ABSOLUTE] = SNIFF_HTTP_PROXY,
		[HTTPHEAD_CONNECT] = SNIFF_HTTP_CONNECT,
	};
	struct httphead head;
	const char *problem = httphead_parse(bytes, s->head_bytes, &head);

	if (!problem)
		problem = plan_after_head(s, &head);
	if (problem)
		return refuse(s, problem, ret);
	return ask(s, protocol[head.form], head.has_target ? &head.target : NULL, ret);
}

static enum step release_head(struct sniff *s, size_t len, struct sniff_result *ret)
{
	assert(len >= s->head_bytes); /* the bytes of the question are still held */
	ret->release += s->head_bytes;
	s->scanned = 0;
	s->head_bytes = 0;
	s->is_allowed = false;
	s->is_later = true;
	return go_to(s, s->after_head);
}

static enum step step_head(struct sniff *s, const uint8_t *bytes, size_t len,
			   struct sniff_result *ret)
{
	const char *problem;

	if (s->is_allowed)
		return release_head(s, len, ret);
	if (s->head_bytes == 0) {
		problem =
			httphead_find_end(&s->scanned, bytes, at_most_a_head(len), &s->head_bytes);
		if (problem)
			return refuse(s, problem, ret);
	}
	if (s->head_bytes == 0)
		return wait_for_more(s, len, ret);
	return ask_about_head(s, bytes, ret);
}

static enum step step_body(struct sniff *s, const uint8_t *bytes, size_t len,
			   struct sniff_result *ret)
{
	size_t used = 0;
	const char *problem = httpbody_read(&s->body, bytes, len, &used);

	ret->release += used;
	if (problem)
		return refuse(s, problem, ret);
	return httpbody_is_done(&s->body) ? go_to(s, STATE_HEAD) : STEP_MORE;
}

static enum step step_wait(struct sniff *s, const uint8_t *bytes, size_t len,
			   struct sniff_result *ret)
{
	(void)s;
	(void)bytes;
	(void)len;
	(void)ret;
	return STEP_MORE;
}

static enum step step_pass(struct sniff *s, const uint8_t *bytes, size_t len,
			   struct sniff_result *ret)
{
	(void)s;
	(void)bytes;
	ret->release += len;
	return STEP_PASS;
}

static enum step step_bad(struct sniff *s, const uint8_t *bytes, size_t len,
			  struct sniff_result *ret)
{
	(void)bytes;
	(void)len;
	return refuse(s, "refused before", ret);
}

static enum step (*const step_of[STATE_COUNT])(struct sniff *, const uint8_t *, size_t,
					       struct sniff_result *) = {
	[STATE_START] = step_start,
	[STATE_HELLO] = step_hello,
	[STATE_AFTER_HELLO] = step_wait,
	[STATE_GUESS] = step_guess,
	[STATE_WATCH] = step_watch,
	[STATE_HEAD] = step_head,
	[STATE_BODY] = step_body,
	[STATE_AFTER_UPGRADE] = step_wait,
	[STATE_AFTER_CONNECT] = step_wait,
	[STATE_PASS] = step_pass,
	[STATE_BAD] = step_bad,
};

enum sniff_verdict sniff_client(struct sniff *s, const uint8_t *bytes, size_t len,
				struct sniff_result *ret)
{
	enum step step;

	memset(ret, 0, sizeof(*ret));
	do {
		step = step_of[s->state](s, bytes + ret->release, len - ret->release, ret);
	} while (step == STEP_AGAIN);
	return (enum sniff_verdict)step;
}

void sniff_allow(struct sniff *s)
{
	assert(s->is_asked);
	s->is_asked = false;
	s->is_allowed = true;
}

/* ---- the server's answer to CONNECT and Upgrade ---- */

bool sniff_wants_server(const struct sniff *s)
{
	return s->state == STATE_AFTER_UPGRADE || s->state == STATE_AFTER_CONNECT ||
	       s->state == STATE_AFTER_HELLO;
}

/* Enough of the status line has arrived. */
static void on_status(struct sniff *s)
{
	if (s->state == STATE_AFTER_CONNECT && s->status[9] == '2')
		sniff_init(s); /* inside the tunnel parsing starts over */
	else if (s->state == STATE_AFTER_UPGRADE && memcmp(s->status, "HTTP/1.1 101", 12) == 0)
		s->state = STATE_PASS;
	else
		s->state = STATE_HEAD;
}

static void watch_for_status(struct sniff *s, const uint8_t *bytes, size_t len)
{
	static const char pattern[SNIFF_STATUS_BYTES + 1] = "HTTP/1.# ###"; /* '#': a digit */

	for (size_t i = 0; i < len && sniff_wants_server(s); i++) {
		char expected = pattern[s->status_len];
		bool fits = expected == '#' ? httptoken_is_digit(bytes[i])
					    : bytes[i] == (uint8_t)expected;

		if (!fits) {
			s->state = STATE_HEAD;
			return;
		}
		s->status[s->status_len++] = bytes[i];
		if (s->status_len == SNIFF_STATUS_BYTES)
			on_status(s);
	}
}

/* A ServerHello whose random is this one asks for a second hello (RFC 8446, 4.1.3). */
static void watch_for_retry(struct sniff *s, const uint8_t *bytes, size_t len)
{
	static const uint8_t retry[] = {
		0x16, 0x03, 0x03, 0,    0,    0x02, 0,    0,    0,    0x03, 0x03,
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
		0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
		0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};

	for (size_t i = 0; i < len && sniff_wants_server(s); i++) {
		uint8_t at = s->status_len++;
		bool is_length = at == 3 || at == 4 || (at >= 6 && at <= 8);

		if (!is_length && bytes[i] != retry[at]) {
			s->state = STATE_PASS;
		} else if (s->status_len == sizeof(retry)) {
			hello_init(&s->hello);
			s->is_hello_later = true;
			s->state = STATE_HELLO;
		}
	}
}

void sniff_server(struct sniff *s, const uint8_t *bytes, size_t len)
{
	if (s->state == STATE_AFTER_HELLO)
		watch_for_retry(s, bytes, len);
	else
		watch_for_status(s, bytes, len);
}

/* A hello sent too early would be read by a server that asks for a second one. */
static bool names_nobody(const uint8_t *bytes, size_t len)
{
	size_t others = measure_other_records(bytes, len);

	return others == len || is_other_record(bytes[others]);
}

bool sniff_can_end(const struct sniff *s, const uint8_t *bytes, size_t len)
{
	return s->state == STATE_PASS || s->state == STATE_START || s->state == STATE_WATCH ||
	       (s->state == STATE_AFTER_HELLO && names_nobody(bytes, len)) ||
	       (s->state == STATE_GUESS && httpguess_can_end(&s->guess, bytes, len));
}
