/* tomlscan - a forward-only position in a TOML document; see tomlscan.h. */
#include "base/tomlscan.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define WORD_ENDS " \t\r\n,[]{}=#"

void tomlscan_init(struct tomlscan *s, const char *bytes, size_t len, const char *name)
{
	*s = (struct tomlscan){
		.begin = bytes, .at = bytes, .end = bytes + len, .name = name, .where = { 1, 1 }
	};
	if (tomlscan_is(s, BYTE_ORDER_MARK))
		s->at += strlen(BYTE_ORDER_MARK);
}

/* ---- moving ---- */

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

bool tomlscan_is(const struct tomlscan *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

void tomlscan_skip(struct tomlscan *s, size_t len)
{
	for (; len > 0 && s->at < s->end; len--, s->at++) {
		if (*s->at == '\n')
			s->where = (struct toml_where){ s->where.line + 1, 1 };
		else if (!is_inside_character(*s->at))
			s->where.column++;
	}
}

bool tomlscan_take(struct tomlscan *s, const char *text)
{
	if (!tomlscan_is(s, text))
		return false;
	tomlscan_skip(s, strlen(text));
	return true;
}

void tomlscan_skip_blank(struct tomlscan *s)
{
	while (tomlscan_peek(s) == ' ' || tomlscan_peek(s) == '\t')
		tomlscan_skip(s, 1);
}

bool tomlscan_take_newline(struct tomlscan *s)
{
	return tomlscan_take(s, "\n") || tomlscan_take(s, "\r\n");
}

void tomlscan_skip_comment(struct tomlscan *s)
{
	if (tomlscan_peek(s) != '#')
		return;
	while (s->at < s->end && *s->at != '\n' && *s->at != '\r')
		tomlscan_skip(s, 1);
}

void tomlscan_skip_lines(struct tomlscan *s)
{
	do {
		tomlscan_skip_blank(s);
		tomlscan_skip_comment(s);
	} while (tomlscan_take_newline(s));
}

struct tomlscan_mark tomlscan_mark(const struct tomlscan *s)
{
	return (struct tomlscan_mark){ s->at, s->where };
}

struct toml_span tomlscan_span(const struct tomlscan *s, const char *from)
{
	return (struct toml_span){ (size_t)(from - s->begin), (size_t)(s->at - s->begin) };
}

/* ---- the check ---- */

/* Number of bytes of the character at p, 0 if it is invalid (RFC 3629). */
static size_t character_len(const unsigned char *p, size_t left)
{
	/* least: the smallest code point that needs so many bytes; below it is overlong */
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{ 0x80, 0x00, 0 },
		{ 0xe0, 0xc0, 0x80 },
		{ 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 },
	};
	size_t len = 0;
	uint32_t number;

	while (len < COUNT_OF(forms) && (p[0] & forms[len].mask) != forms[len].lead)
		len++;
	if (len == COUNT_OF(forms) || left < len + 1)
		return 0;
	number = p[0] & (unsigned char)~forms[len].mask;
	for (size_t i = 1; i <= len; i++) {
		if (!is_inside_character((char)p[i]))
			return 0;
		number = number << 6 | (p[i] & 0x3f);
	}
	if (number < forms[len].least || number > 0x10ffff || (number & 0xfffff800) == 0xd800)
		return 0;
	return len + 1;
}

int tomlscan_check(const struct tomlscan *whole, struct err *e)
{
	struct tomlscan s = *whole;
	char words[64];

	while (s.at < s.end) {
		unsigned char c = (unsigned char)*s.at;
		size_t len = character_len((const unsigned char *)s.at, (size_t)(s.end - s.at));

		if (len == 0) {
			(void)snprintf(words, sizeof(words), "not UTF-8: byte 0x%02x", c);
			return tomlscan_say(s.name, s.where, ERR_INVALID, words, e);
		}
		if (c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && !tomlscan_is(&s, "\r\n"))) {
			(void)snprintf(words, sizeof(words), "control character: U+%04X", c);
			return tomlscan_say(s.name, s.where, ERR_INVALID, words, e);
		}
		tomlscan_skip(&s, len);
	}
	return 0;
}

/* ---- error messages ---- */

/* Also replaces U+0080 to U+009F, which some terminals interpret. */
static void make_harmless(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
		else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			p[0] = p[1] = '?';
	}
}

int tomlscan_say(const char *name, struct toml_where where, enum err_code code, const char *words,
		 struct err *e)
{
	(void)err_set(e, code, "%s:%u:%u: %s", name, where.line, where.column, words);
	make_harmless(e->msg);
	return -1;
}

/* Length of the text to quote: not beyond the line, and only complete characters. */
static size_t quote_len(const struct tomlscan *s, const char *from, bool *ret_is_cut)
{
	const char *to = s->at;
	size_t len = 0;

	if (to <= from) {
		to = from + 1;
		while (!strchr(WORD_ENDS, *from) && to < s->end && !strchr(WORD_ENDS, *to))
			to++;
	}
	while (from + len < to && from[len] != '\n' && from[len] != '\r')
		len++;
	*ret_is_cut = len > TOML_QUOTE_MAX_BYTES;
	if (*ret_is_cut)
		len = TOML_QUOTE_MAX_BYTES;
	while (len > 0 && from + len < s->end && is_inside_character(from[len]))
		len--;
	return len;
}

static int complain(const struct tomlscan *s, struct tomlscan_mark from, enum err_code code,
		    const char *words, struct err *e)
{
	cleanup_free char *text = NULL;
	bool is_cut = false;

	if (from.at == s->end) {
		text = mem_format("%s: end of file", words);
	} else if (*from.at == '\n' || *from.at == '\r') {
		text = mem_format("%s: end of line", words);
	} else {
		int len = (int)quote_len(s, from.at, &is_cut);

		text = mem_format("%s: '%.*s%s'", words, len, from.at, is_cut ? "..." : "");
	}
	return tomlscan_say(s->name, from.where, code, text, e);
}

int tomlscan_err(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		 const char *fmt, ...)
{
	char words[128];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return complain(s, from, ERR_INVALID, words, e);
}

int tomlscan_err_limit(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		       const char *words)
{
	return complain(s, from, ERR_LIMIT, words, e);
}
