/* jsonwalk - walks a checked JSON document; see jsonwalk.h. */
#include "base/jsonwalk.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define WORD_ENDS " \t\r\n,:[]{}\"/"
#define NUMBER_MAX_BYTES 64u /* longer ones are compared as text */

static bool starts_with(const char *at, const char *end, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(end - at) >= len && memcmp(at, text, len) == 0;
}

const char *jsonwalk_start(const char *bytes, const char *end)
{
	return bytes + (starts_with(bytes, end, BYTE_ORDER_MARK) ? strlen(BYTE_ORDER_MARK) : 0);
}

/* ---- gaps ---- */

bool jsonwalk_is_comment(const char *at, const char *end)
{
	return starts_with(at, end, "//") || starts_with(at, end, "/*");
}

const char *jsonwalk_comment_end(const char *at, const char *end)
{
	const char *found;

	if (at[1] == '/') {
		found = memchr(at, '\n', (size_t)(end - at));
		if (!found)
			return end;
		return found[-1] == '\r' ? found - 1 : found;
	}
	found = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
	return found ? found + 2 : NULL;
}

const char *jsonwalk_skip_gap(const char *at, const char *end)
{
	for (;;) {
		while (at < end && *at && strchr(" \t\r\n", *at))
			at++;
		if (!jsonwalk_is_comment(at, end))
			return at;
		at = jsonwalk_comment_end(at, end);
		assert(at); /* jsonscan has checked that it ends */
	}
}

/* ---- values ---- */

static const char *skip_string(const char *at)
{
	for (at++; *at != '"'; at++)
		at += *at == '\\';
	return at + 1;
}

const char *jsonwalk_skip_value(const char *at, const char *end)
{
	unsigned depth = 0;

	do {
		at = jsonwalk_skip_gap(at, end);
		if (*at == '"') {
			at = skip_string(at);
		} else if (strchr("{}[],:", *at)) {
			depth += *at == '{' || *at == '[';
			depth -= *at == '}' || *at == ']';
			at++;
		} else {
			while (at < end && !strchr(WORD_ENDS, *at))
				at++;
		}
	} while (depth > 0);
	return at;
}

bool jsonwalk_item(const char *at, const char *end, struct jsonwalk_member *ret)
{
	*ret = (struct jsonwalk_member){ 0 };
	at = jsonwalk_skip_gap(at, end);
	if (*at == ']')
		return false;
	*ret = (struct jsonwalk_member){ .value = at, .value_end = jsonwalk_skip_value(at, end) };
	at = jsonwalk_skip_gap(ret->value_end, end);
	ret->comma = *at == ',' ? at : NULL;
	ret->next = ret->comma ? at + 1 : at;
	return true;
}

bool jsonwalk_member(const char *at, const char *end, struct jsonwalk_member *ret)
{
	const char *key = jsonwalk_skip_gap(at, end);
	const char *key_end;

	if (*key == '}')
		return false;
	key_end = skip_string(key);
	at = jsonwalk_skip_gap(key_end, end) + 1; /* the colon */
	(void)jsonwalk_item(at, end, ret);
	ret->key = key;
	ret->key_end = key_end;
	return true;
}

bool jsonwalk_find(const char *object, const char *end, const char *key,
		   struct jsonwalk_member *ret)
{
	struct jsonwalk_member m;
	bool is_found = false;

	for (const char *at = object + 1; jsonwalk_member(at, end, &m); at = m.next) {
		if (!jsonwalk_key_is(&m, key))
			continue;
		*ret = m;
		is_found = true;
	}
	return is_found;
}

const char *jsonwalk_type_name(const char *value)
{
	switch (*value) {
	case '{':
		return "an object";
	case '[':
		return "an array";
	case '"':
		return "a string";
	case 't':
	case 'f':
		return "a boolean";
	case 'n':
		return "null";
	default:
		return "a number";
	}
}

/* ---- comparing ---- */

/* The content of a JSON string, or plain text. */
struct characters {
	const char *at;
	const char *end;
	bool is_plain;
};

int jsonwalk_read_hex(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	int value = 0;

	for (int i = 0; i < 4; i++) {
		const char *found = at + i < end && at[i] ? strchr(digits, at[i]) : NULL;

		if (!found)
			return -1;
		value = value * 16 + (int)(found - digits - (found - digits > 15 ? 6 : 0));
	}
	return value;
}

/* \uD83D\uDE00 is one character, as in UTF-8. */
static uint32_t read_unicode(struct characters *c)
{
	uint32_t first = (uint32_t)jsonwalk_read_hex(c->at, c->end);
	int second = -1;

	c->at += 4;
	if ((first & 0xfc00) == 0xd800 && starts_with(c->at, c->end, "\\u"))
		second = jsonwalk_read_hex(c->at + 2, c->end);
	if (second < 0 || (second & 0xfc00) != 0xdc00)
		return first;
	c->at += 6;
	return 0x10000 + ((first & 0x3ff) << 10 | ((uint32_t)second & 0x3ff));
}

static uint32_t read_escape(struct characters *c)
{
	static const char names[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	char name = *c->at++;
	const char *found = strchr(names, name);

	if (name == 'u')
		return read_unicode(c);
	return (unsigned char)(found ? meanings[found - names] : name);
}

static uint32_t read_character(struct characters *c)
{
	unsigned char lead = (unsigned char)*c->at++;
	uint32_t value = lead;

	if (lead == '\\' && !c->is_plain)
		return read_escape(c);
	if (lead >= 0xc0)
		value = lead & (lead >= 0xf0 ? 0x07 : lead >= 0xe0 ? 0x0f : 0x1f);
	while (c->at < c->end && ((unsigned char)*c->at & 0xc0) == 0x80)
		value = value << 6 | ((unsigned char)*c->at++ & 0x3f);
	return value;
}

static bool is_same_text(struct characters a, struct characters b)
{
	while (a.at < a.end && b.at < b.end)
		if (read_character(&a) != read_character(&b))
			return false;
	return a.at == a.end && b.at == b.end;
}

static struct characters characters_of(const char *string, const char *string_end)
{
	return (struct characters){ .at = string + 1, .end = string_end - 1 };
}

bool jsonwalk_key_is(const struct jsonwalk_member *m, const char *key)
{
	return is_same_text(characters_of(m->key, m->key_end),
			    (struct characters){ key, key + strlen(key), .is_plain = true });
}

/* Like jsonwalk_find(), with the key of another member. */
static bool find_key_of(const char *object, const char *end, const struct jsonwalk_member *of,
			struct jsonwalk_member *ret)
{
	struct jsonwalk_member m;
	bool is_found = false;

	for (const char *at = object + 1; jsonwalk_member(at, end, &m); at = m.next) {
		if (!is_same_text(characters_of(m.key, m.key_end),
				  characters_of(of->key, of->key_end)))
			continue;
		*ret = m;
		is_found = true;
	}
	return is_found;
}

/* Readers parse numbers as doubles. */
static bool is_same_number(const char *a, size_t a_len, const char *b, size_t b_len)
{
	char text[2][NUMBER_MAX_BYTES + 1] = { 0 };

	if (a_len == b_len && memcmp(a, b, a_len) == 0)
		return true;
	if (a_len > NUMBER_MAX_BYTES || b_len > NUMBER_MAX_BYTES)
		return false;
	memcpy(text[0], a, a_len);
	memcpy(text[1], b, b_len);
	return strtod(text[0], NULL) == strtod(text[1], NULL);
}

static bool is_same_array(const char *a, const char *a_end, const char *b, const char *b_end)
{
	struct jsonwalk_member x, y;

	for (a++, b++; jsonwalk_item(a, a_end, &x); a = x.next, b = y.next)
		if (!jsonwalk_item(b, b_end, &y) ||
		    !jsonwalk_is_same(x.value, x.value_end, y.value, y.value_end))
			return false;
	return !jsonwalk_item(b, b_end, &y);
}

/* Each effective member of a is the same in b, and b has no other key. */
static bool is_same_object(const char *a, const char *a_end, const char *b, const char *b_end)
{
	struct jsonwalk_member x, y, last;

	for (const char *at = a + 1; jsonwalk_member(at, a_end, &x); at = x.next) {
		if (!find_key_of(a, a_end, &x, &last) || last.key != x.key)
			continue;
		if (!find_key_of(b, b_end, &x, &y) ||
		    !jsonwalk_is_same(x.value, x.value_end, y.value, y.value_end))
			return false;
	}
	for (const char *at = b + 1; jsonwalk_member(at, b_end, &y); at = y.next)
		if (!find_key_of(a, a_end, &y, &last))
			return false;
	return true;
}

bool jsonwalk_is_same(const char *a, const char *a_end, const char *b, const char *b_end)
{
	if (*a == '{' && *b == '{')
		return is_same_object(a, a_end, b, b_end);
	if (*a == '[' && *b == '[')
		return is_same_array(a, a_end, b, b_end);
	if (*a == '"' && *b == '"')
		return is_same_text(characters_of(a, a_end), characters_of(b, b_end));
	if (strcmp(jsonwalk_type_name(a), "a number") == 0 &&
	    strcmp(jsonwalk_type_name(b), "a number") == 0)
		return is_same_number(a, (size_t)(a_end - a), b, (size_t)(b_end - b));
	return a_end - a == b_end - b && memcmp(a, b, (size_t)(a_end - a)) == 0;
}
