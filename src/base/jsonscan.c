/*
 * jsonscan - checks a JSON document; see jsonscan.h.
 *
 * A recursive descent parser, one function for each rule of the grammar; each advances the scanner
 * past its input. Lines and columns are only counted for error messages.
 */
#include "base/jsonscan.h"

#include "base/cleanup.h"
#include "base/jsonwalk.h"
#include "base/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORD_ENDS " \t\r\n,:[]{}\"/"

struct scan {
	const struct jsonscan_text *text;
	const char *at;
	const char *end;
	unsigned flags;
	unsigned depth;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static bool starts_with(const char *at, const char *end, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(end - at) >= len && memcmp(at, text, len) == 0;
}

/* ---- error messages ---- */

static void find_place(const struct jsonscan_text *t, const char *at, unsigned *ret_line,
		       unsigned *ret_column)
{
	unsigned line = 1, column = 1;

	for (const char *p = jsonwalk_start(t->bytes, t->bytes + t->len); p < at; p++) {
		if (*p == '\n') {
			line++;
			column = 1;
		} else if (!is_inside_character(*p)) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

int jsonscan_err(const struct jsonscan_text *t, const char *at, enum err_code code, struct err *e,
		 const char *fmt, ...)
{
	size_t name_len = strlen(t->name);
	bool is_cut = name_len > JSONSCAN_NAME_MAX_BYTES;
	unsigned line = 0, column = 0;
	char words[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	find_place(t, at, &line, &column);
	(void)err_set(e, code, "%s%s:%u:%u: %s", is_cut ? "..." : "",
		      is_cut ? t->name + name_len - JSONSCAN_NAME_MAX_BYTES : t->name, line, column,
		      words);
	shown_replace(e->msg);
	return -1;
}

/* Length of the text at `at` to quote: a word, or one character if it is not a word. */
static size_t quote_len(const char *at, const char *end)
{
	size_t len = 1;

	while (at + len < end && len < JSONSCAN_QUOTE_MAX_BYTES &&
	       (is_inside_character(at[len]) ||
		(!strchr(WORD_ENDS, at[0]) && at[len] && !strchr(WORD_ENDS, at[len]))))
		len++;
	while (at + len < end && is_inside_character(at[len]))
		len--;
	return len;
}

/* "words: 'text'" about the text at `at`. */
static int refuse(const struct scan *s, const char *at, struct err *e, const char *words)
{
	if (at == s->end)
		return jsonscan_err(s->text, at, ERR_INVALID, e, "%s: end of file", words);
	return jsonscan_err(s->text, at, ERR_INVALID, e, "%s: '%.*s'", words,
			    (int)quote_len(at, s->end), at);
}

/* ---- the check ---- */

static int check_utf8(const struct scan *s, struct err *e)
{
	const char *at = s->at;

	while (at < s->end) {
		size_t len = shown_utf8_len(at, (size_t)(s->end - at));

		if (len == 0)
			return jsonscan_err(s->text, at, ERR_INVALID, e, "not UTF-8: byte 0x%02x",
					    (unsigned char)*at);
		at += len;
	}
	return 0;
}

static int take_comment(struct scan *s, struct err *e)
{
	const char *end = jsonwalk_comment_end(s->at, s->end);
	const char *cr;

	if (!(s->flags & JSONSCAN_COMMENTS))
		return refuse(s, s->at, e, "comments are not allowed here");
	if (!end)
		return jsonscan_err(s->text, s->at, ERR_INVALID, e, "a comment that does not end");
	/* readers disagree whether it ends the comment */
	cr = s->at[1] == '/' ? memchr(s->at, '\r', (size_t)(end - s->at)) : NULL;
	if (cr)
		return jsonscan_err(s->text, cr, ERR_INVALID, e,
				    "a carriage return in a comment that ends no line");
	s->at = end;
	return 0;
}

static int take_gap(struct scan *s, struct err *e)
{
	for (;;) {
		while (s->at < s->end && is_blank(*s->at))
			s->at++;
		if (!jsonwalk_is_comment(s->at, s->end))
			return 0;
		if (take_comment(s, e) < 0)
			return -1;
	}
}

static bool is_next(const struct scan *s, char c)
{
	return s->at < s->end && *s->at == c;
}

static int take_escape(struct scan *s, struct err *e)
{
	const char *from = s->at++;

	if (is_next(s, 'u') && jsonwalk_read_hex(s->at + 1, s->end) >= 0)
		s->at += 5;
	else if (s->at < s->end && *s->at && strchr("\"\\/bfnrt", *s->at))
		s->at++;
	else
		return jsonscan_err(s->text, from, ERR_INVALID, e,
				    "an unknown escape in a string: '%.*s'",
				    s->at < s->end ? 1 + (int)quote_len(s->at, s->end) : 1, from);
	return 0;
}

static int take_string(struct scan *s, struct err *e)
{
	const char *from = s->at++;

	while (s->at < s->end && *s->at != '"') {
		unsigned char c = (unsigned char)*s->at;

		if (c == '\n' || c == '\r')
			break;
		if (c < ' ')
			return jsonscan_err(s->text, s->at, ERR_INVALID, e,
					    "control character in a string: U+%04X", c);
		if (c != '\\')
			s->at++;
		else if (take_escape(s, e) < 0)
			return -1;
	}
	if (!is_next(s, '"'))
		return jsonscan_err(s->text, from, ERR_INVALID, e, "a string that does not end");
	s->at++;
	return 0;
}

static bool take_digits(struct scan *s)
{
	const char *from = s->at;

	while (s->at < s->end && is_digit(*s->at))
		s->at++;
	return s->at > from;
}

static bool take_number(struct scan *s)
{
	if (is_next(s, '-'))
		s->at++;
	if (is_next(s, '0'))
		s->at++;
	else if (!take_digits(s))
		return false;
	if (is_next(s, '.')) {
		s->at++;
		if (!take_digits(s))
			return false;
	}
	if (is_next(s, 'e') || is_next(s, 'E')) {
		s->at++;
		if (is_next(s, '+') || is_next(s, '-'))
			s->at++;
		return take_digits(s);
	}
	return true;
}

/* Accepts a number or one of the three words, and nothing more. */
static int take_scalar(struct scan *s, struct err *e)
{
	static const char *const words[] = { "true", "false", "null" };
	const char *from = s->at;
	bool is_number = s->at < s->end && (*s->at == '-' || is_digit(*s->at));
	bool is_good = is_number && take_number(s);

	for (size_t i = 0; i < COUNT_OF(words) && !is_number && !is_good; i++) {
		is_good = starts_with(s->at, s->end, words[i]);
		if (is_good)
			s->at += strlen(words[i]);
	}
	if (!is_good || (s->at < s->end && (!*s->at || !strchr(WORD_ENDS, *s->at))))
		return refuse(s, from, e, is_number ? "not a number" : "a value is expected");
	return 0;
}

static int take_value(struct scan *s, struct err *e);

static int take_key(struct scan *s, struct err *e)
{
	if (!is_next(s, '"'))
		return refuse(s, s->at, e, "a key in double quotes is expected");
	if (take_string(s, e) < 0 || take_gap(s, e) < 0)
		return -1;
	if (!is_next(s, ':'))
		return refuse(s, s->at, e, "':' is expected after a key");
	s->at++;
	return take_gap(s, e);
}

/* The members of an object or the items of an array, from the opening bracket on. */
static int take_list(struct scan *s, char close, struct err *e)
{
	const char *comma = NULL;

	s->at++;
	for (;;) {
		if (take_gap(s, e) < 0)
			return -1;
		if (is_next(s, close) && (!comma || (s->flags & JSONSCAN_TRAILING_COMMAS))) {
			s->at++;
			return 0;
		}
		if (is_next(s, close))
			return jsonscan_err(s->text, comma, ERR_INVALID, e,
					    "a comma before '%c' is not allowed here", close);
		if ((close == '}' && take_key(s, e) < 0) || take_value(s, e) < 0 ||
		    take_gap(s, e) < 0)
			return -1;
		comma = is_next(s, ',') ? s->at++ : NULL;
		if (!comma && !is_next(s, close))
			return refuse(s, s->at, e,
				      close == '}' ? "',' or '}' is expected"
						   : "',' or ']' is expected");
	}
}

static int take_value(struct scan *s, struct err *e)
{
	int r;

	if (is_next(s, '"'))
		return take_string(s, e);
	if (!is_next(s, '{') && !is_next(s, '['))
		return take_scalar(s, e);
	if (s->depth == JSONSCAN_DEPTH_MAX)
		return jsonscan_err(s->text, s->at, ERR_LIMIT, e,
				    "more than %u objects and arrays in each other",
				    JSONSCAN_DEPTH_MAX);
	s->depth++;
	r = take_list(s, *s->at == '{' ? '}' : ']', e);
	s->depth--;
	return r;
}

int jsonscan_check(const struct jsonscan_text *t, unsigned flags, struct err *e)
{
	struct scan s = { .text = t,
			  .at = jsonwalk_start(t->bytes, t->bytes + t->len),
			  .end = t->bytes + t->len,
			  .flags = flags };

	if (t->len > JSONSCAN_DOCUMENT_MAX_BYTES)
		return jsonscan_err(t, t->bytes, ERR_LIMIT, e, "larger than %u MiB",
				    JSONSCAN_DOCUMENT_MAX_BYTES >> 20);
	if (check_utf8(&s, e) < 0 || take_gap(&s, e) < 0)
		return -1;
	if (s.at == s.end && (flags & JSONSCAN_MAY_BE_EMPTY))
		return 0;
	if (take_value(&s, e) < 0 || take_gap(&s, e) < 0)
		return -1;
	if (s.at < s.end)
		return refuse(&s, s.at, e, "more than one value");
	return 0;
}
