#pragma once
/*
 * talk - passes one connection through sniff and describes it as a line of text.
 *
 * "http example.com, http other.example -> more" : two questions, both answered with yes, then it
 * waits for more and holds nothing. The other ends are "-> more, 5 held", "-> pass" and "-> bad, 5
 * held: problem". Names are followed by ":port" if a port was asked about, and are "-" if the
 * client named nobody.
 */
#include "unit.h"

#include "net/sniff.h"

#include <stdio.h>

#define TALK_MAX_BYTES 4096

struct talk {
	const uint8_t *client;
	size_t client_len;
	const void *server; /* its answer, if the decision needs one; NULL: none yet */
	size_t server_len;
	size_t piece; /* both are passed in pieces of this size */
	char story[TALK_MAX_BYTES];
	size_t story_len;
	size_t released;
	bool is_answered; /* all bytes of the server were passed */
	bool can_end;     /* if the client ended here, held bytes could be released */
};

static inline void talk_add(struct talk *t, const char *text)
{
	int len = snprintf(t->story + t->story_len, sizeof(t->story) - t->story_len, "%s", text);

	assert_true(len >= 0 && (size_t)len < sizeof(t->story) - t->story_len);
	t->story_len += (size_t)len;
}

static inline void talk_add_ask(struct talk *t, const struct sniff_ask *ask)
{
	static const char *const word[] = {
		[SNIFF_TLS] = "tls",          [SNIFF_HTTP] = "http",
		[SNIFF_HTTP_PROXY] = "proxy", [SNIFF_HTTP_CONNECT] = "connect",
		[SNIFF_HTTP2] = "http2",
	};
	char port[16] = "";

	assert_int_equal(ask->has_name, ask->name[0] != '\0');
	if (ask->port)
		(void)snprintf(port, sizeof(port), ":%u", ask->port);
	talk_add(t, t->story_len ? ", " : "");
	talk_add(t, word[ask->protocol]);
	talk_add(t, " ");
	talk_add(t, ask->has_name ? ask->name : "-");
	talk_add(t, port);
}

static inline void talk_hear_server(struct talk *t, struct sniff *s)
{
	size_t left = t->server ? t->server_len : 0;
	const uint8_t *bytes = t->server;

	while (left > 0 && sniff_wants_server(s)) {
		size_t len = t->piece < left ? t->piece : left;

		sniff_server(s, bytes, len);
		bytes += len;
		left -= len;
	}
}

/* Repeats until nothing more can be decided about the first `len` bytes of the client. */
static inline enum sniff_verdict talk_settle(struct talk *t, struct sniff *s, size_t len,
					     struct sniff_result *result)
{
	for (;;) {
		enum sniff_verdict verdict;

		verdict = sniff_client(s, t->client + t->released, len - t->released, result);
		assert_true(result->release <= len - t->released);
		t->released += result->release;
		if (verdict == SNIFF_ASK) {
			talk_add_ask(t, &result->ask);
			sniff_allow(s);
			continue;
		}
		if (!sniff_wants_server(s) || t->is_answered)
			return verdict;
		talk_hear_server(t, s);
		t->is_answered = sniff_wants_server(s);
	}
}

static inline void talk_run(struct talk *t)
{
	enum sniff_verdict verdict = SNIFF_MORE;
	struct sniff_result result = { 0 };
	char end[256] = "pass";
	char held[32] = "";
	struct sniff s;

	sniff_init(&s);
	for (size_t len = 0; len < t->client_len && verdict == SNIFF_MORE;) {
		len += t->piece < t->client_len - len ? t->piece : t->client_len - len;
		verdict = talk_settle(t, &s, len, &result);
	}
	t->can_end = sniff_can_end(&s, t->client + t->released, t->client_len - t->released);
	if (t->released < t->client_len)
		(void)snprintf(held, sizeof(held), ", %zu held", t->client_len - t->released);
	if (verdict == SNIFF_MORE)
		(void)snprintf(end, sizeof(end), "more%s", held);
	if (verdict == SNIFF_BAD)
		(void)snprintf(end, sizeof(end), "bad%s: %s", held, result.problem);
	talk_add(t, t->story_len ? " -> " : "-> ");
	talk_add(t, end);
}

static inline void talk_expect_piece(struct talk t, const char *expected)
{
	talk_run(&t);
	if (strcmp(t.story, expected) != 0)
		fail_msg("'%.60s' in pieces of %zu\n  said     %s\n  expected %s",
			 (const char *)t.client, t.piece, t.story, expected);
}

/* The result must be the same however the bytes are cut. */
static inline void talk_expect_bytes(const void *client, size_t len, const void *server,
				     size_t server_len, const char *expected)
{
	static const size_t pieces[] = { SIZE_MAX, 1, 2, 7 };

	for (size_t i = 0; i < COUNT_OF(pieces); i++)
		talk_expect_piece((struct talk){ .client = client,
						 .client_len = len,
						 .server = server,
						 .server_len = server_len,
						 .piece = pieces[i] },
				  expected);
}

static inline void talk_expect(const void *client, size_t len, const char *server,
			       const char *expected)
{
	talk_expect_bytes(client, len, server, server ? strlen(server) : 0, expected);
}

/*
 * A line that is released while it is checked is refused before its byte `at` is out. How much was
 * out before depends on the cuts, so this compares no text.
 */
static inline void talk_expect_cut_off(const void *client, size_t len, size_t at,
				       const char *problem)
{
	static const size_t pieces[] = { SIZE_MAX, 1, 2, 7 };

	for (size_t i = 0; i < COUNT_OF(pieces); i++) {
		struct talk t = { .client = client, .client_len = len, .piece = pieces[i] };
		char expected[256];

		talk_run(&t);
		(void)snprintf(expected, sizeof(expected), "-> bad, %zu held: %s", len - t.released,
			       problem);
		assert_string_equal(t.story, expected);
		assert_true(t.released <= at);
		if (pieces[i] == 1)
			assert_int_equal(t.released, at);
	}
}

/* The client sends this and ends: may held bytes be released? Independent of the pieces. */
static inline bool talk_can_end(const void *client, size_t len, const void *server,
				size_t server_len)
{
	struct talk whole = { .client = client,
			      .client_len = len,
			      .server = server,
			      .server_len = server_len,
			      .piece = SIZE_MAX };
	struct talk cut = whole;

	cut.piece = 1;
	talk_run(&whole);
	talk_run(&cut);
	assert_int_equal(whole.can_end, cut.can_end);
	return whole.can_end;
}

struct talk_case {
	const char *client;
	const char *expected;
};

static inline void talk_expect_all(const struct talk_case *cases, size_t count, const char *server)
{
	for (size_t i = 0; i < count; i++)
		talk_expect(cases[i].client, strlen(cases[i].client), server, cases[i].expected);
}
