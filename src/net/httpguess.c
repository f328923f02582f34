/*
 * httpguess - does a connection open with an HTTP request; see httpguess.h.
 *
 * Theory of operation
 *
 * Most protocols show in their first bytes that they are not HTTP, and must not be held up:
 * their servers wait for these bytes. So each byte is looked at as it comes, and what cannot
 * be part of a request line any more is let go at once. Only a whole first line is judged.
 *
 * Letting go is for ever, so it must not happen to what a lenient server would still take for
 * a request. Such servers accept blanks before the method, tabs and other white space between
 * the words, long methods and control bytes in the target. Those are not let go on
 * sight: they are held until the line ends, and refused if it mentions HTTP. A NUL byte is
 * where every server gives up, and every binary protocol has one soon.
 *
 * HTTP/0.9 ("GET /x" and no version) names no host, but some servers read headers after it.
 */
#include "net/httpguess.h"

#include "net/httptoken.h"

#include <string.h>
#include <strings.h>

enum phase { PHASE_BLANK, PHASE_METHOD, PHASE_GAP, PHASE_TARGET };

#define VERSION_BYTES 8u /* "HTTP/1.1" */

struct word {
	const uint8_t *bytes;
	size_t len;
};

/* White space in a request line, for the most lenient of servers (RFC 9112, 3). */
static bool is_blank(uint8_t b)
{
	return b == ' ' || b == '\t' || b == '\v' || b == '\f' || b == '\r';
}

/* The next word of a line; moves *line past it. */
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

/* "METHOD SP target SP HTTP/d.d CR", with the line end's LF already cut off. */
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

/* The line is whole; its LF is not part of it. */
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
	if (method.len == 3 && memcmp(method.bytes, "GET", 3) == 0 && target.len > 0 &&
	    target.bytes[0] == '/')
		return HTTPGUESS_BAD;
	return HTTPGUESS_OTHER;
}

/* The phase after this byte (which is no LF); false when it shows that this is not HTTP. */
static bool next_phase(uint8_t *phase, uint8_t b)
{
	if (b == '\0')
		return false;
	switch (*phase) {
	case PHASE_BLANK:
		if (is_blank(b))
			return true;
		*phase = PHASE_METHOD;
		return httptoken_is_char(b);
	case PHASE_METHOD:
		if (is_blank(b))
			*phase = PHASE_GAP;
		return is_blank(b) || httptoken_is_char(b);
	case PHASE_GAP:
		if (is_blank(b))
			return true;
		*phase = PHASE_TARGET;
		return !httptoken_is_control(b);
	default:
		return true;
	}
}

void httpguess_init(struct httpguess *g)
{
	memset(g, 0, sizeof(*g));
}

enum httpguess_verdict httpguess_scan(struct httpguess *g, const uint8_t *bytes, size_t len)
{
	for (; g->scanned < len; g->scanned++) {
		uint8_t b = bytes[g->scanned];

		if (b == '\n' && g->phase != PHASE_BLANK)
			return judge(bytes + g->line, g->scanned - g->line);
		if (b == '\n')
			g->line = g->scanned + 1; /* servers skip empty lines */
		else if (!next_phase(&g->phase, b))
			return HTTPGUESS_OTHER;
	}
	return HTTPGUESS_MORE;
}
