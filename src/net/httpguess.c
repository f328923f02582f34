/*
 * httpguess - does a connection start with an HTTP request; see httpguess.h.
 *
 * Theory of operation
 *
 * Most protocols show in their first bytes that they are not HTTP, and must not be delayed, because
 * their servers wait for these bytes. So each byte is checked as it arrives, and only a line that
 * starts with a known method, or with a prefix of one, is held until it is complete.
 *
 * Everything else is forwarded, but we must not stop checking a line that a lenient server would
 * accept as a request: servers accept unknown methods, odd bytes in them, tabs between the words.
 * All of them need HTTP/1.x at the end of the line, so the line is watched for it and cut off
 * before that is sent (httpguess_watch). At a NUL byte before any of this servers give up, and
 * every binary protocol has one early.
 *
 * A PROXY header (HAProxy's protocol, either version) is refused, because it would hide everything
 * after it from us but not from the server.
 *
 * HTTP/0.9 ("GET x" and no version) names no host, but some servers read headers after it.
 */
#include "net/httpguess.h"

#include "base/cleanup.h"
#include "net/httptoken.h"

#include <string.h>
#include <strings.h>

enum phase { PHASE_BLANK, PHASE_METHOD, PHASE_REST };

#define VERSION_BYTES 8u /* "HTTP/1.1" */

struct word {
	const uint8_t *bytes;
	size_t len;
};

/*
 * White space in a request line for the most lenient servers (RFC 9112, 3). Servers that split it
 * as Latin-1 text, such as Python's http.server, accept six more characters.
 */
static bool is_blank(uint8_t b)
{
	return b == ' ' || b == '\t' || b == '\v' || b == '\f' || b == '\r' ||
	       (b >= 0x1c && b <= 0x1f) || b == 0x85 || b == 0xa0;
}

/* Returns the next word of a line and moves *line past it. */
static struct word take_word(struct word *line)
{
	struct word word;

	while (line->len > 0 && is_blank(line->bytes[0])) {
		line->bytes++;
		line->len--;
	}
	word.bytes = line->bytes;
	while (line->len > 0 && !is_blank(line->bytes[0])) {
		line->bytes++;
		line->len--;
	}
	word.len = (size_t)(line->bytes - word.bytes);
	return word;
}

static bool has_text(struct word w, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i + len <= w.len; i++)
		if (strncasecmp((const char *)w.bytes + i, text, len) == 0)
			return true;
	return false;
}

/* "METHOD SP target SP HTTP/d.d CR", without the final LF. */
static bool is_request_line(struct word line)
{
	size_t len = line.len;
	const uint8_t *version;
	const uint8_t *target;

	if (len < VERSION_BYTES + 2 || line.bytes[len - 1] != '\r')
		return false;
	version = line.bytes + len - 1 - VERSION_BYTES;
	if (memcmp(version, "HTTP/", 5) != 0 || !httptoken_is_digit(version[5]) ||
	    version[6] != '.' || !httptoken_is_digit(version[7]) || version[-1] != ' ')
		return false;
	target = memchr(line.bytes, ' ', len);
	if (!target || target + 1 >= version - 1 || !httptoken_is_char(line.bytes[0]))
		return false;
	for (const uint8_t *p = target + 1; p < version - 1; p++)
		if (httptoken_is_control(*p) || *p == ' ')
			return false;
	return true;
}

/* Judges a complete line without its LF. */
static enum httpguess_verdict judge(const uint8_t *bytes, size_t len)
{
	static const char preface[] = "PRI * HTTP/2.0\r";
	struct word line = { bytes, len };
	struct word method, target;

	if (len == sizeof(preface) - 1 && memcmp(bytes, preface, len) == 0)
		return HTTPGUESS_HTTP2;
	if (is_request_line(line))
		return HTTPGUESS_HTTP;
	method = take_word(&line);
	if (has_text(line, "http/"))
		return HTTPGUESS_BAD;
	target = take_word(&line);
	if (has_text(target, "://"))
		return HTTPGUESS_BAD;
	if (method.len == 3 && memcmp(method.bytes, "GET", 3) == 0 && target.len > 0)
		return HTTPGUESS_BAD;
	if (method.len == 5 && memcmp(method.bytes, "PROXY", 5) == 0)
		return HTTPGUESS_BAD;
	return HTTPGUESS_OTHER;
}

/* RFC 9110 and 5789; WebDAV and related; UPnP; caches. */
static const char *const methods[] = {
	"GET",        "HEAD",   "POST",     "PUT",       "DELETE",      "CONNECT",   "OPTIONS",
	"TRACE",      "PATCH",  "PRI",      "QUERY",     "PROPFIND",    "PROPPATCH", "MKCOL",
	"COPY",       "MOVE",   "LOCK",     "UNLOCK",    "SEARCH",      "REPORT",    "MKCALENDAR",
	"MKACTIVITY", "MERGE",  "CHECKOUT", "ACL",       "BIND",        "UNBIND",    "REBIND",
	"LINK",       "UNLINK", "NOTIFY",   "SUBSCRIBE", "UNSUBSCRIBE", "M-SEARCH",  "PURGE",
	"PROXY", /* not a method: a header that load balancers prepend */
};

static bool is_method_or_starts_one(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (strlen(methods[i]) >= len && memcmp(methods[i], bytes, len) == 0)
			return true;
	return false;
}

static bool is_method(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (strlen(methods[i]) == len && memcmp(methods[i], bytes, len) == 0)
			return true;
	return false;
}

/* Processes the byte at g->scanned (no LF, no NUL) of a line that may be a request. */
static enum httpguess_verdict next_phase(struct httpguess *g, const uint8_t *bytes)
{
	uint8_t b = bytes[g->scanned];

	if (g->phase == PHASE_BLANK && !is_blank(b)) {
		g->phase = PHASE_METHOD;
		g->method = g->scanned;
	}
	if (g->phase != PHASE_METHOD)
		return HTTPGUESS_MORE;
	if (is_blank(b)) {
		g->phase = PHASE_REST;
		return is_method(bytes + g->method, g->scanned - g->method) ? HTTPGUESS_MORE
									    : HTTPGUESS_WATCH;
	}
	return is_method_or_starts_one(bytes + g->method, g->scanned + 1 - g->method)
		       ? HTTPGUESS_MORE
		       : HTTPGUESS_WATCH;
}

void httpguess_init(struct httpguess *g)
{
	memset(g, 0, sizeof(*g));
}

/*
 * A NUL means a binary protocol. But some servers read on after a method, and empty lines before a
 * NUL are the signature of PROXY protocol version 2.
 */
static enum httpguess_verdict judge_nul(const struct httpguess *g)
{
	bool is_proxy = g->phase == PHASE_BLANK && g->line > 0;

	return g->phase == PHASE_REST || is_proxy ? HTTPGUESS_BAD : HTTPGUESS_OTHER;
}

enum httpguess_verdict httpguess_scan(struct httpguess *g, const uint8_t *bytes, size_t len)
{
	for (; g->scanned < len; g->scanned++) {
		uint8_t b = bytes[g->scanned];

		if (b == '\0')
			return judge_nul(g);
		if (b == '\n' && g->phase != PHASE_BLANK)
			return judge(bytes + g->line, g->scanned - g->line);
		if (b == '\n')
			g->line = g->scanned + 1; /* servers skip empty lines */
		else if (next_phase(g, bytes) == HTTPGUESS_WATCH)
			return HTTPGUESS_WATCH;
	}
	return HTTPGUESS_MORE;
}

enum httpguess_verdict httpguess_watch(struct httpwatch *w, const uint8_t *bytes, size_t len)
{
	static const char end[] = "http/";

	for (size_t i = 0; i < len; i++) {
		uint8_t lower = bytes[i] >= 'A' && bytes[i] <= 'Z' ? bytes[i] | 0x20 : bytes[i];

		if (bytes[i] == '\0' || (bytes[i] == '\n' && w->has_word))
			return HTTPGUESS_OTHER;
		w->has_blank = w->has_blank || (w->has_word && is_blank(bytes[i]));
		w->has_word = w->has_word || !(is_blank(bytes[i]) || bytes[i] == '\n');
		if (lower != (uint8_t)end[w->matched])
			w->matched = 0;
		if (w->has_blank && lower == (uint8_t)end[w->matched])
			w->matched++;
		if (w->matched == sizeof(end) - 1)
			return HTTPGUESS_BAD;
	}
	return HTTPGUESS_MORE;
}

bool httpguess_can_end(const struct httpguess *g, const uint8_t *bytes, size_t len)
{
	return g->phase == PHASE_BLANK || judge(bytes + g->line, len - g->line) == HTTPGUESS_OTHER;
}
