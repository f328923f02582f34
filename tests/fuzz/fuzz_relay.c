/*
 * fuzz_relay - what a relayed server sends: the head of an answer, then a body in chunks.
 *
 * An accepted head has no line's end in a field and one length. A body that arrives byte by byte
 * gives the same bytes and the same verdict as one that arrives at once, and what is written can be
 * read again with the same result. The same bytes are then read as a request for a sandbox.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "http/bodyframe.h"
#include "http/head.h"
#include "http/site.h"
#include "http/sitegrant.h"

#include <event2/buffer.h>
#include <string.h>

/* Removes the framing that bodyframe writes: chunks of its own sizes. */
static void read_back(struct evbuffer *written, struct evbuffer *plain)
{
	struct bodyframe f;

	bodyframe_init(&f, BODYFRAME_CHUNKED, 0);
	f.writes_chunks = false;
	(void)bodyframe_move(&f, written, plain, SIZE_MAX);
}

static int move_all(const uint8_t *data, size_t size, size_t piece, struct evbuffer *plain)
{
	struct evbuffer *from = evbuffer_new(), *to = evbuffer_new();
	struct bodyframe f;
	int r = 0;

	bodyframe_init(&f, BODYFRAME_CHUNKED, 0);
	for (size_t at = 0; r == 0 && at < size; at += piece) {
		evbuffer_add(from, data + at, size - at < piece ? size - at : piece);
		r = bodyframe_move(&f, from, to, SIZE_MAX);
	}
	read_back(to, plain);
	evbuffer_free(from);
	evbuffer_free(to);
	return r;
}

static void check_body(const uint8_t *data, size_t size)
{
	struct evbuffer *once = evbuffer_new(), *slowly = evbuffer_new();
	int first = move_all(data, size, size + 1, once), second = move_all(data, size, 1, slowly);
	size_t len = evbuffer_get_length(once);

	FUZZ_CHECK(first == second);
	if (first >= 0) {
		FUZZ_CHECK(len == evbuffer_get_length(slowly));
		FUZZ_CHECK(len == 0 || memcmp(evbuffer_pullup(once, -1),
					      evbuffer_pullup(slowly, -1), len) == 0);
	}
	evbuffer_free(once);
	evbuffer_free(slowly);
}

static void check_answer(const uint8_t *data, size_t size)
{
	struct head h = { 0 };
	size_t used = 0;

	if (head_parse_answer((const char *)data, size, &h, &used) != 1)
		return;
	FUZZ_CHECK(used <= size && h.status >= 100 && h.status < 600);
	FUZZ_CHECK(!strpbrk(h.reason, "\r\n"));
	FUZZ_CHECK(!(h.has_content_length && h.is_chunked));
	for (unsigned i = 0; i < h.field_count; i++)
		FUZZ_CHECK(!strpbrk(h.fields[i].name, " :\r\n") &&
			   !strpbrk(h.fields[i].value, "\r\n"));
	check_body(data + used, size - used);
	head_done(&h);
}

static void check_request(const uint8_t *data, size_t size)
{
	struct head h = { 0 };
	struct site s;
	struct buf cookies;
	size_t used = 0;

	if (head_parse((const char *)data, size, &h, &used) != 1)
		return;
	site_find(&h, "example.org", &s);
	FUZZ_CHECK(strlen(s.name) <= SITE_NAME_MAX_BYTES && s.port <= UINT16_MAX);
	FUZZ_CHECK(s.way != SITE_BY_PATH || s.target[0] == '/' || s.target[0] == '?');
	FUZZ_CHECK(strspn(s.name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(s.name));
	buf_init(&cookies, 1u << 20);
	sitegrant_add_cookies(&h, &cookies);
	FUZZ_CHECK(!cookies.len || !strstr(buf_text(&cookies), " agentkernel_access="));
	buf_done(&cookies);
	head_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_answer(data, size);
	check_request(data, size);
	check_body(data, size);
	return 0;
}
