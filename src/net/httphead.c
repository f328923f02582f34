/*
 * httphead - parses the head of an HTTP/1.x request; see httphead.h.
 *
 * Theory of operation
 *
 * httphead_find_end() checks each byte once, however they arrive, for the empty line; it also
 * ensures that every line ends in CR LF and that neither occurs alone, so that all parsers agree on
 * the lines. httphead_parse() then parses the complete head once: the request line, each field
 * (relevant ones have a row in a table), and at the end the conditions across fields.
 *
 * Hostile input: all of it. The server parses the same bytes after us, perhaps leniently; an
 * attacker wants it to see another host, or another end of the body, than we do. So this parser is
 * strict: anything ambiguous is refused.
 */
#include "net/httphead.h"

#include "base/cleanup.h"
#include "net/httptoken.h"

#include <string.h>
#include <strings.h>

#define VERSION_BYTES 8u /* "HTTP/1.1" */
#define PORT_HTTP 80
#define PORT_HTTPS 443

/* A part of the head. */
struct text {
	const uint8_t *bytes;
	size_t len;
};

/* What is known about a head while its lines are parsed. */
struct reading {
	struct httphead *head;
	struct text method, target;
	bool is_1_0;
	bool has_host, has_length, has_encoding, has_expect;
	bool has_upgrade, has_connection_upgrade;
	struct authority host;
};

static bool is_text(struct text t, const char *expected)
{
	return t.len == strlen(expected) &&
	       strncasecmp((const char *)t.bytes, expected, t.len) == 0;
}

static bool starts_with(struct text t, const char *expected)
{
	size_t len = strlen(expected);

	return t.len >= len && strncasecmp((const char *)t.bytes, expected, len) == 0;
}

static struct text text_after(struct text t, size_t count)
{
	return (struct text){ t.bytes + count, t.len - count };
}

/* Length of `t` before the first `stop`, or of all of it. */
static size_t length_until(struct text t, uint8_t stop)
{
	const uint8_t *found = t.len > 0 ? memchr(t.bytes, stop, t.len) : NULL;

	return found ? (size_t)(found - t.bytes) : t.len;
}

static struct text trim(struct text t)
{
	while (t.len > 0 && (t.bytes[0] == ' ' || t.bytes[0] == '\t'))
		t = text_after(t, 1);
	while (t.len > 0 && (t.bytes[t.len - 1] == ' ' || t.bytes[t.len - 1] == '\t'))
		t.len--;
	return t;
}

static bool is_token(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (!httptoken_is_char(t.bytes[i]))
			return false;
	return t.len > 0;
}

/* ---- the end of the head ---- */

const char *httphead_find_end(uint32_t *scanned, const uint8_t *bytes, size_t len,
			      uint32_t *ret_end)
{
	*ret_end = 0;
	for (; *scanned < len; (*scanned)++) {
		uint32_t i = *scanned;
		bool is_after_cr = i > 0 && bytes[i - 1] == '\r';

		if (is_after_cr != (bytes[i] == '\n'))
			return is_after_cr ? "HTTP: a CR alone" : "HTTP: an LF alone";
		if (bytes[i] != '\n' || i < 3 || bytes[i - 2] != '\n')
			continue;
		if (i == 3) /* one empty line is allowed before a request: old clients send it */
			return "HTTP: empty lines before a request";
		*ret_end = i + 1;
		return NULL;
	}
	return NULL;
}

/* ---- the request line ---- */

static const char *parse_request_line(struct reading *r, struct text line)
{
	struct text rest;

	r->method = (struct text){ line.bytes, length_until(line, ' ') };
	if (!is_token(r->method) || r->method.len > HTTPHEAD_METHOD_MAX_BYTES)
		return "HTTP: not a method";
	if (r->method.len == line.len)
		return "HTTP: a request without a target";
	rest = text_after(line, r->method.len + 1);
	r->target = (struct text){ rest.bytes, length_until(rest, ' ') };
	if (r->target.len == 0 || r->target.len == rest.len)
		return "HTTP: not a request line";
	for (size_t i = 0; i < r->target.len; i++)
		if (httptoken_is_control(r->target.bytes[i]))
			return "HTTP: a control byte in the target";
	rest = text_after(rest, r->target.len + 1);
	r->is_1_0 = rest.len == VERSION_BYTES && memcmp(rest.bytes, "HTTP/1.0", rest.len) == 0;
	if (!r->is_1_0 &&
	    (rest.len != VERSION_BYTES || memcmp(rest.bytes, "HTTP/1.1", rest.len) != 0))
		return "HTTP: not version 1.0 or 1.1";
	return NULL;
}

/* ---- the fields that matter ---- */

static const char *on_host(struct reading *r, struct text value)
{
	if (r->has_host)
		return "HTTP: two Host fields";
	r->has_host = true;
	if (!authority_parse(value.bytes, value.len, &r->host))
		return "HTTP: Host is not a host";
	return NULL;
}

static const char *on_content_length(struct reading *r, struct text value)
{
	uint64_t bytes = 0;

	if (r->has_length)
		return "HTTP: two Content-Length fields";
	r->has_length = true;
	for (size_t i = 0; i < value.len; i++)
		if (!httptoken_is_digit(value.bytes[i]) ||
		    __builtin_mul_overflow(bytes, 10, &bytes) ||
		    __builtin_add_overflow(bytes, (uint64_t)(value.bytes[i] - '0'), &bytes))
			return "HTTP: Content-Length is not a number";
	if (value.len == 0 || bytes > INT64_MAX) /* some servers read it as negative */
		return "HTTP: Content-Length is not a number";
	r->head->body_bytes = bytes;
	return NULL;
}

static const char *on_transfer_encoding(struct reading *r, struct text value)
{
	if (r->has_encoding || !is_text(value, "chunked"))
		return "HTTP: Transfer-Encoding is not just 'chunked'";
	r->has_encoding = true;
	r->head->is_chunked = true;
	return NULL;
}

/* Returns the next item of a list, trimmed, and moves *list past it. */
static struct text take_item(struct text *list)
{
	size_t len = length_until(*list, ',');
	struct text item = { list->bytes, len };

	*list = text_after(*list, len < list->len ? len + 1 : len);
	return trim(item);
}

static const char *on_connection(struct reading *r, struct text value)
{
	while (value.len > 0)
		if (is_text(take_item(&value), "upgrade"))
			r->has_connection_upgrade = true;
	return NULL;
}

/* After such an upgrade the connection would name hosts that we no longer check. */
static const char *on_upgrade(struct reading *r, struct text value)
{
	r->has_upgrade = true;
	while (value.len > 0) {
		struct text item = take_item(&value);

		if (starts_with(item, "h2") || starts_with(item, "http/") ||
		    starts_with(item, "tls/"))
			return "HTTP: an upgrade to HTTP/2 or TLS";
	}
	return NULL;
}

static const char *on_http2_settings(struct reading *r, struct text value)
{
	(void)r;
	(void)value;
	return "HTTP: an upgrade to HTTP/2 or TLS";
}

/* With any other value servers disagree on whether a body follows. */
static const char *on_expect(struct reading *r, struct text value)
{
	if (r->has_expect || !is_text(value, "100-continue"))
		return "HTTP: Expect is not just '100-continue'";
	r->has_expect = true;
	return NULL;
}

/* Some servers treat '_' as '-' in field names. */
static const char *on_disguise(struct reading *r, struct text value)
{
	(void)r;
	(void)value;
	return "HTTP: a field that looks like another";
}

static const struct {
	const char *name;
	const char *(*on)(struct reading *r, struct text value);
} field_reader[] = {
	{ "host", on_host },
	{ "content-length", on_content_length },
	{ "transfer-encoding", on_transfer_encoding },
	{ "connection", on_connection },
	{ "upgrade", on_upgrade },
	{ "http2-settings", on_http2_settings },
	{ "expect", on_expect },
	{ "content_length", on_disguise },
	{ "transfer_encoding", on_disguise },
};

static const char *parse_field(struct reading *r, struct text line)
{
	struct text name = { line.bytes, length_until(line, ':') };
	struct text value;

	if (line.bytes[0] == ' ' || line.bytes[0] == '\t')
		return "HTTP: a field that goes on in the next line";
	if (name.len == line.len || !is_token(name))
		return "HTTP: not a field";
	value = trim(text_after(line, name.len + 1));
	for (size_t i = 0; i < value.len; i++)
		if (httptoken_is_control(value.bytes[i]) && value.bytes[i] != '\t')
			return "HTTP: a control byte in a field";
	for (size_t i = 0; i < COUNT_OF(field_reader); i++)
		if (is_text(name, field_reader[i].name))
			return field_reader[i].on(r, value);
	return NULL;
}

/* ---- conditions across fields ---- */

static const char *settle_connect(struct reading *r)
{
	struct authority *target = &r->head->target;

	r->head->form = HTTPHEAD_CONNECT;
	r->head->has_target = true;
	if (!authority_parse(r->target.bytes, r->target.len, target) || target->port == 0)
		return "HTTP: CONNECT without a host and a port";
	if (r->has_host && (!authority_is_same_host(&r->host, target) ||
			    (r->host.port != 0 && r->host.port != target->port)))
		return "HTTP: Host is not the target of CONNECT";
	if (r->has_encoding || r->head->body_bytes > 0)
		return "HTTP: CONNECT with a body";
	return NULL;
}

static const char *settle_absolute(struct reading *r)
{
	bool is_secure = starts_with(r->target, "https://");
	uint16_t default_port = is_secure ? PORT_HTTPS : PORT_HTTP;
	struct authority *target = &r->head->target;
	struct text rest = text_after(r->target, is_secure ? 8 : 7);

	rest.len = length_until(rest, '/');
	rest.len = length_until(rest, '?');
	if (!authority_parse(rest.bytes, rest.len, target))
		return "HTTP: the target's host is not a host";
	r->head->form = HTTPHEAD_ABSOLUTE;
	r->head->has_target = true;
	if (target->port == 0)
		target->port = default_port;
	if (r->has_host && (!authority_is_same_host(&r->host, target) ||
			    (r->host.port != 0 ? r->host.port : default_port) != target->port))
		return "HTTP: Host is not the target's host";
	return NULL;
}

static const char *settle_origin(struct reading *r)
{
	r->head->form = HTTPHEAD_ORIGIN;
	r->head->has_target = r->has_host;
	if (r->has_host)
		r->head->target = r->host;
	r->head->target.port = 0;
	return NULL;
}

static const char *settle_target(struct reading *r)
{
	/* case-sensitive: a server that ignores case finds no valid target below */
	if (r->method.len == 7 && memcmp(r->method.bytes, "CONNECT", 7) == 0)
		return settle_connect(r);
	if (!r->is_1_0 && !r->has_host)
		return "HTTP: no Host";
	if (starts_with(r->target, "http://") || starts_with(r->target, "https://"))
		return settle_absolute(r);
	if (r->target.bytes[0] == '/')
		return settle_origin(r);
	if (is_text(r->target, "*") && r->method.len == 7 &&
	    memcmp(r->method.bytes, "OPTIONS", 7) == 0)
		return settle_origin(r);
	return "HTTP: not a target";
}

static const char *settle(struct reading *r)
{
	if (r->has_encoding && (r->has_length || r->is_1_0))
		return "HTTP: Transfer-Encoding in HTTP/1.0, or with Content-Length";
	r->head->wants_upgrade = r->has_upgrade && r->has_connection_upgrade && !r->is_1_0 &&
				 !r->has_encoding && r->head->body_bytes == 0;
	return settle_target(r);
}

/* Returns the next line of a head whose lines end in CR LF, and moves *head past it. */
static struct text take_line(struct text *head)
{
	struct text line = { head->bytes, length_until(*head, '\r') };

	*head = text_after(*head, line.len + 2);
	return line;
}

const char *httphead_parse(const uint8_t *bytes, size_t len, struct httphead *ret)
{
	struct text head = { bytes, len - 2 }; /* without the empty line */
	struct reading r = { .head = ret };
	const char *problem;

	memset(ret, 0, sizeof(*ret));
	if (bytes[0] == '\r')
		head = text_after(head, 2);
	problem = parse_request_line(&r, take_line(&head));
	while (!problem && head.len > 0)
		problem = parse_field(&r, take_line(&head));
	return problem ? problem : settle(&r);
}
