/*
 * tomltext - parses the strings and keys of a TOML document; see tomltext.h.
 *
 * The four forms of a string differ in two properties, so one loop with two flags parses them:
 * whether '\' starts an escape, and whether a line end is an error or part of the string. The text
 * never gets longer by unescaping, so a buffer of the document's size is enough.
 */
#include "base/tomltext.h"

#include "base/cleanup.h"

#include <string.h>

#define QUOTES_MAX 5u /* two of the text and three that close it */

struct form {
	char quote;
	bool has_escapes;
	bool is_multi_line;
	struct tomlscan_mark start;
};

/* ---- escapes ---- */

static void add_character(struct buf *out, uint32_t number)
{
	static const unsigned char leads[] = { 0, 0xc0, 0xe0, 0xf0 };
	size_t more = number < 0x80 ? 0 : number < 0x800 ? 1 : number < 0x10000 ? 2 : 3;
	char bytes[4];

	for (size_t i = more; i > 0; i--) {
		bytes[i] = (char)(0x80 | (number & 0x3f));
		number >>= 6;
	}
	bytes[0] = (char)(leads[more] | number);
	buf_add(out, bytes, more + 1);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Parses the digits after "\u" or "\U". */
static int take_number(struct tomlscan *s, struct tomlscan_mark start, unsigned digits,
		       struct buf *out, struct err *e)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < digits; i++) {
		int digit = hex_digit(tomlscan_peek(s));

		if (digit < 0)
			return tomlscan_err(s, start, e, "an escape needs %u hexadecimal digits",
					    digits);
		number = number << 4 | (uint32_t)digit;
		tomlscan_skip(s, 1);
	}
	if (number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
		return tomlscan_err(s, start, e, "an escape names no character");
	add_character(out, number);
	return 0;
}

/* At '\': if it hides a line end, skips that and all blanks and line ends after it. */
static bool take_hidden_newline(struct tomlscan *s)
{
	struct tomlscan ahead = *s;

	tomlscan_skip(&ahead, 1);
	tomlscan_skip_blank(&ahead);
	if (!tomlscan_take_newline(&ahead))
		return false;
	do
		tomlscan_skip_blank(&ahead);
	while (tomlscan_take_newline(&ahead));
	*s = ahead;
	return true;
}

static int take_escape(struct tomlscan *s, const struct form *form, struct buf *out, struct err *e)
{
	static const char letters[] = "btnfr\"\\";
	static const char meanings[] = "\b\t\n\f\r\"\\";
	struct tomlscan_mark start = tomlscan_mark(s);
	const char *letter;
	char c;

	if (form->is_multi_line && take_hidden_newline(s))
		return 0;
	tomlscan_skip(s, 1);
	c = tomlscan_peek(s);
	tomlscan_skip(s, 1);
	if (c == 'u' || c == 'U')
		return take_number(s, start, c == 'u' ? 4 : 8, out, e);
	letter = c ? strchr(letters, c) : NULL;
	if (!letter)
		return tomlscan_err(s, start, e,
				    "not an escape (for a plain backslash, write two)");
	buf_add(out, &meanings[letter - letters], 1);
	return 0;
}

/* ---- strings ---- */

/* At a quote: true if it closes the string, otherwise the quotes are added to the text. */
static bool take_quotes(struct tomlscan *s, const struct form *form, struct buf *out)
{
	size_t count = 0;

	while (count < QUOTES_MAX && s->at + count < s->end && s->at[count] == form->quote)
		count++;
	if (!form->is_multi_line) {
		tomlscan_skip(s, 1);
		return true;
	}
	buf_add(out, s->at, count < 3 ? count : count - 3);
	tomlscan_skip(s, count);
	return count >= 3;
}

/* Copies characters without special meaning. */
static void take_plain(struct tomlscan *s, const struct form *form, struct buf *out)
{
	const char *p = s->at;

	while (p < s->end && *p != form->quote && *p != '\n' && *p != '\r' &&
	       !(form->has_escapes && *p == '\\'))
		p++;
	buf_add(out, s->at, (size_t)(p - s->at));
	tomlscan_skip(s, (size_t)(p - s->at));
}

static int take_text(struct tomlscan *s, const struct form *form, struct buf *out, struct err *e)
{
	for (;;) {
		take_plain(s, form, out);
		if (form->has_escapes && tomlscan_peek(s) == '\\') {
			if (take_escape(s, form, out, e) < 0)
				return -1;
		} else if (tomlscan_peek(s) == form->quote) {
			if (take_quotes(s, form, out))
				return 0;
		} else if (form->is_multi_line && tomlscan_take_newline(s)) {
			buf_add_text(out, "\n");
		} else {
			return tomlscan_err(s, form->start, e, "a string that is not closed");
		}
	}
}

static int take_quoted(struct tomlscan *s, struct buf *out, struct err *e)
{
	struct form form = {
		.quote = tomlscan_peek(s),
		.has_escapes = tomlscan_peek(s) == '"',
		.start = tomlscan_mark(s),
	};

	tomlscan_skip(s, 1);
	return take_text(s, &form, out, e);
}

int tomltext_take_string(struct tomlscan *s, struct buf *out, struct err *e)
{
	struct form form = {
		.quote = tomlscan_peek(s),
		.has_escapes = tomlscan_peek(s) == '"',
		.is_multi_line = true,
		.start = tomlscan_mark(s),
	};

	if (!tomlscan_take(s, "\"\"\"") && !tomlscan_take(s, "'''"))
		return take_quoted(s, out, e);
	(void)tomlscan_take_newline(s); /* after the opening quotes it is not part of the text */
	return take_text(s, &form, out, e);
}

/* ---- keys ---- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

int tomltext_take_key(struct tomlscan *s, struct buf *out, struct err *e)
{
	struct tomlscan_mark start = tomlscan_mark(s);
	char c = tomlscan_peek(s);

	if (c == '"' || c == '\'') {
		if (tomlscan_is(s, "\"\"\"") || tomlscan_is(s, "'''"))
			return tomlscan_err(s, start, e, "a key cannot be a multi-line string");
		if (take_quoted(s, out, e) < 0)
			return -1;
	} else {
		while (is_bare(tomlscan_peek(s)))
			tomlscan_skip(s, 1);
		buf_add(out, start.at, (size_t)(s->at - start.at));
		if (s->at == start.at)
			return tomlscan_err(s, start, e, "a key is expected");
	}
	if (out->len > TOML_KEY_MAX_BYTES)
		return tomlscan_err_limit(s, start, e, "the key is too long");
	return 0;
}
