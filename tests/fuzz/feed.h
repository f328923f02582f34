#pragma once
/*
 * feed - a connection through sniff, as the gate would run it, for fuzz targets.
 *
 * Checks on the way what must hold for every input, and leaves a trace: two runs with the
 * same bytes cut in different ways must leave the same one.
 */
#include "net/sniff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEED_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct feed_trace {
	enum sniff_verdict verdict; /* the last one */
	const char *problem;
	size_t released;
	bool is_answered; /* the server has said all it says to this CONNECT or Upgrade */
	uint64_t asks;    /* a hash of all questions and of how much was released before each */
};

struct feed_options {
	uint32_t seed;      /* of the lengths of the pieces; 0: all in one */
	const char *server; /* what the server answers to each CONNECT or Upgrade */
};

static inline uint32_t feed_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static inline void feed_hash(uint64_t *hash, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ p[i]) * 1099511628211u;
}

/* Small pieces mostly, often of one byte, sometimes large. */
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

	FEED_CHECK(len <= SNIFF_NAME_MAX_BYTES);
	FEED_CHECK((len > 0) == ask->has_name);
	for (size_t i = 0; i < len; i++) {
		uint8_t b = (uint8_t)ask->name[i];

		FEED_CHECK(b > ' ' && b < 0x7f && !strchr("@%/\\[]?#,", b));
	}
	if (ask->protocol == SNIFF_HTTP_PROXY || ask->protocol == SNIFF_HTTP_CONNECT)
		FEED_CHECK(ask->has_name && ask->port != 0);
	else
		FEED_CHECK(ask->port == 0);
}

static inline void feed_note_ask(struct feed_trace *trace, const struct sniff_ask *ask)
{
	feed_check_ask(ask);
	feed_hash(&trace->asks, &trace->released, sizeof(trace->released));
	feed_hash(&trace->asks, &ask->protocol, sizeof(ask->protocol));
	feed_hash(&trace->asks, &ask->port, sizeof(ask->port));
	feed_hash(&trace->asks, ask->name, strlen(ask->name));
}

static inline void feed_answer(struct sniff *s, struct feed_options *o)
{
	const uint8_t *bytes = (const uint8_t *)o->server;
	size_t left = strlen(o->server);

	while (left > 0 && sniff_wants_server(s)) {
		size_t len = feed_piece(o, left);

		sniff_server(s, bytes, len);
		bytes += len;
		left -= len;
	}
}

/* All that can be said about what is held. */
static inline void feed_settle(struct sniff *s, const uint8_t *bytes, size_t len,
			       struct feed_options *o, struct feed_trace *trace)
{
	struct sniff_result result;
	bool can_go_on;

	do {
		trace->verdict =
			sniff_client(s, bytes + trace->released, len - trace->released, &result);
		FEED_CHECK(result.release <= len - trace->released);
		trace->released += result.release;
		trace->problem = result.problem;
		FEED_CHECK((trace->verdict == SNIFF_BAD) == (result.problem != NULL));
		if (trace->verdict == SNIFF_PASS)
			FEED_CHECK(trace->released == len);
		if (trace->verdict == SNIFF_ASK) {
			feed_note_ask(trace, &result.ask);
			sniff_allow(s);
		}
		can_go_on = trace->verdict == SNIFF_ASK;
		if (sniff_wants_server(s) && !trace->is_answered) {
			FEED_CHECK(trace->verdict == SNIFF_MORE);
			feed_answer(s, o);
			can_go_on = !sniff_wants_server(s);
			trace->is_answered = !can_go_on;
		}
	} while (can_go_on);
}

static inline struct feed_trace feed_run(const uint8_t *bytes, size_t len, struct feed_options o)
{
	struct feed_trace trace = { .verdict = SNIFF_MORE, .asks = 14695981039346656037u };
	struct sniff s;
	size_t arrived = 0;

	sniff_init(&s);
	while (arrived < len && trace.verdict == SNIFF_MORE) {
		arrived += feed_piece(&o, len - arrived);
		feed_settle(&s, bytes, arrived, &o, &trace);
	}
	if (trace.verdict == SNIFF_PASS)
		trace.released = len;
	return trace;
}

static inline void feed_check_same(const struct feed_trace *a, const struct feed_trace *b)
{
	FEED_CHECK(a->verdict == b->verdict);
	FEED_CHECK(a->problem == b->problem);
	FEED_CHECK(a->released == b->released);
	FEED_CHECK(a->asks == b->asks);
}
