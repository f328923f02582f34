#pragma once
/*
 * feed - passes a connection through sniff, like the gate does, for fuzz targets.
 *
 * Checks invariants on the way and leaves a trace: two runs with the same bytes cut in different
 * ways must leave the same trace.
 */
#include "fuzz.h"

#include "net/sniff.h"

#include <string.h>
#include <strings.h>

struct feed_trace {
	enum sniff_verdict verdict; /* the last one */
	const char *problem;
	size_t released;
	bool is_answered; /* the server has sent all bytes that the decision needs */
	bool can_end;     /* if the client ended here, held bytes could be released */
	unsigned questions;
	uint64_t asks;    /* a hash of all questions */
	uint64_t asks_at; /* and of how much was released before each */
};

struct feed_options {
	uint32_t seed;      /* for the lengths of the pieces; 0: all in one */
	const void *server; /* the server's answer to each CONNECT, Upgrade and hello */
	size_t server_len;
};

/* Problem of a line that is released while it is checked: the amount depends on the cuts. */
#define FEED_WATCHED "HTTP: unknown method"

static inline uint32_t feed_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static inline void feed_hash(uint64_t *hash, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ p[i] ^ 0x9e37u) * 1099511628211u;
}

/* Mostly small pieces, often of one byte, sometimes large. */
static inline size_t feed_piece(struct feed_options *o, size_t left)
{
	static const uint32_t most[] = { 1, 1, 3, 40, 1000, 70000 };
	size_t len;

	if (o->seed == 0)
		return left;
	len = 1 + feed_random(&o->seed) % most[feed_random(&o->seed) % 6];
	return len < left ? len : left;
}

static inline void feed_check_ask(const struct sniff_ask *ask)
{
	size_t len = strnlen(ask->name, sizeof(ask->name));

	FUZZ_CHECK(len <= SNIFF_NAME_MAX_BYTES);
	FUZZ_CHECK((len > 0) == ask->has_name);
	for (size_t i = 0; i < len; i++) {
		uint8_t b = (uint8_t)ask->name[i];

		FUZZ_CHECK(b > ' ' && b < 0x7f && !strchr("@%/\\[]?#,", b));
	}
	if (ask->protocol == SNIFF_HTTP_PROXY || ask->protocol == SNIFF_HTTP_CONNECT)
		FUZZ_CHECK(ask->has_name && ask->port != 0);
	else
		FUZZ_CHECK(ask->port == 0);
}

static inline void feed_note_ask(struct feed_trace *trace, const struct sniff_ask *ask)
{
	feed_check_ask(ask);
	trace->questions++;
	feed_hash(&trace->asks_at, &trace->released, sizeof(trace->released));
	feed_hash(&trace->asks, &ask->protocol, sizeof(ask->protocol));
	feed_hash(&trace->asks, &ask->port, sizeof(ask->port));
	feed_hash(&trace->asks, ask->name, strlen(ask->name));
}

static inline void feed_answer(struct sniff *s, struct feed_options *o)
{
	const uint8_t *bytes = o->server;
	size_t left = o->server_len;

	while (left > 0 && sniff_wants_server(s)) {
		size_t len = feed_piece(o, left);

		sniff_server(s, bytes, len);
		bytes += len;
		left -= len;
	}
}

/* Decides about held bytes as far as possible. */
static inline void feed_settle(struct sniff *s, const uint8_t *bytes, size_t len,
			       struct feed_options *o, struct feed_trace *trace)
{
	struct sniff_result result;
	bool can_go_on;

	do {
		trace->verdict =
			sniff_client(s, bytes + trace->released, len - trace->released, &result);
		FUZZ_CHECK(result.release <= len - trace->released);
		trace->released += result.release;
		trace->problem = result.problem;
		FUZZ_CHECK((trace->verdict == SNIFF_BAD) == (result.problem != NULL));
		if (trace->verdict == SNIFF_PASS)
			FUZZ_CHECK(trace->released == len);
		if (trace->verdict == SNIFF_ASK) {
			feed_note_ask(trace, &result.ask);
			sniff_allow(s);
		}
		can_go_on = trace->verdict == SNIFF_ASK;
		if (sniff_wants_server(s) && !trace->is_answered) {
			FUZZ_CHECK(trace->verdict == SNIFF_MORE);
			feed_answer(s, o);
			can_go_on = !sniff_wants_server(s);
			trace->is_answered = !can_go_on;
		}
	} while (can_go_on);
}

/* Bytes that some servers accept as a blank in a request line, or as its end. */
static inline bool feed_is_blank(uint8_t b)
{
	return b != 0 && memchr("\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0", b, 12);
}

/* A refused client has not sent "HTTP/" to the server, and may not continue. */
static inline void feed_check_refusal(const uint8_t *bytes, struct feed_trace *trace)
{
	bool has_word = false;

	FUZZ_CHECK(!trace->can_end);
	if (strcmp(trace->problem, FEED_WATCHED) != 0)
		return;
	for (size_t i = 0; trace->questions == 0 && i + 6 <= trace->released; i++) {
		has_word = has_word || !feed_is_blank(bytes[i]);
		FUZZ_CHECK(!has_word || !feed_is_blank(bytes[i]) ||
			   strncasecmp((const char *)bytes + i + 1, "http/", 5) != 0);
	}
	trace->released = 0;
}

static inline struct feed_trace feed_run(const uint8_t *bytes, size_t len, struct feed_options o)
{
	struct feed_trace trace = { .verdict = SNIFF_MORE };
	struct sniff s;
	size_t arrived = 0;

	sniff_init(&s);
	while (arrived < len && trace.verdict == SNIFF_MORE) {
		arrived += feed_piece(&o, len - arrived);
		feed_settle(&s, bytes, arrived, &o, &trace);
	}
	trace.can_end = sniff_can_end(&s, bytes + trace.released, arrived - trace.released);
	if (trace.verdict == SNIFF_PASS)
		trace.released = len;
	if (trace.verdict == SNIFF_BAD)
		feed_check_refusal(bytes, &trace);
	return trace;
}

static inline void feed_check_same(const struct feed_trace *a, const struct feed_trace *b)
{
	FUZZ_CHECK(a->verdict == b->verdict);
	FUZZ_CHECK(a->problem == b->problem);
	FUZZ_CHECK(a->released == b->released);
	FUZZ_CHECK(a->can_end == b->can_end);
	FUZZ_CHECK(a->asks == b->asks);
	FUZZ_CHECK(a->asks_at == b->asks_at);
}
