/* json - writes JSON; see json.h. */
#include "base/json.h"

#include "base/shown.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

/* Without printf: an output may have megabytes of these. */
static void add_control(struct buf *out, unsigned char c)
{
	static const char digits[] = "0123456789abcdef";
	const char text[] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	buf_add(out, text, sizeof(text));
}

static void add_escaped(struct buf *out, unsigned char c)
{
	switch (c) {
	case '"':
		buf_add_text(out, "\\\"");
		break;
	case '\\':
		buf_add_text(out, "\\\\");
		break;
	case '\n':
		buf_add_text(out, "\\n");
		break;
	case '\r':
		buf_add_text(out, "\\r");
		break;
	case '\t':
		buf_add_text(out, "\\t");
		break;
	default:
		add_control(out, c);
	}
}

/* U+0080 to U+009F, which terminals interpret: two bytes, the second is the code point. */
static bool is_c1(const unsigned char *p, const unsigned char *end)
{
	return p[0] == 0xc2 && end - p > 1 && p[1] >= 0x80 && p[1] < 0xa0;
}

static void add_string(struct buf *out, const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;
	const unsigned char *end = p + len;

	buf_add_text(out, "\"");
	while (p < end) {
		const unsigned char *plain = p;
		size_t n = 0;

		/* append a run without escapes in one piece */
		while (p < end && *p >= ' ' && *p != '"' && *p != '\\' && *p != 0x7f &&
		       !is_c1(p, end) &&
		       (n = shown_utf8_len((const char *)p, (size_t)(end - p))) > 0)
			p += n;
		buf_add(out, plain, (size_t)(p - plain));
		if (p == end)
			break;
		if (is_c1(p, end))
			add_control(out, *++p);
		else if (*p < 0x80)
			add_escaped(out, *p);
		else
			buf_add_text(out, REPLACEMENT);
		p++;
	}
	buf_add_text(out, "\"");
}

static void start_value(struct json *j, const char *key)
{
	if (j->has_item[j->depth])
		buf_add_text(j->out, ",");
	j->has_item[j->depth] = true;
	if (key) {
		add_string(j->out, key, strlen(key));
		buf_add_text(j->out, ":");
	}
}

static void open_level(struct json *j, const char *key, const char *bracket)
{
	start_value(j, key);
	buf_add_text(j->out, bracket);
	assert(j->depth + 1 < JSON_DEPTH_MAX);
	j->has_item[++j->depth] = false;
}

static void close_level(struct json *j, const char *bracket)
{
	assert(j->depth > 0);
	j->depth--;
	buf_add_text(j->out, bracket);
}

void json_open_object(struct json *j, const char *key)
{
	open_level(j, key, "{");
}

void json_close_object(struct json *j)
{
	close_level(j, "}");
}

void json_open_array(struct json *j, const char *key)
{
	open_level(j, key, "[");
}

void json_close_array(struct json *j)
{
	close_level(j, "]");
}

void json_add_bytes(struct json *j, const char *key, const char *bytes, size_t len)
{
	start_value(j, key);
	add_string(j->out, bytes, len);
}

void json_add_base64(struct json *j, const char *key, const char *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	start_value(j, key);
	buf_add_text(j->out, "\"");
	for (size_t at = 0; at < len; at += 3) {
		size_t left = len - at;
		uint32_t three = (uint32_t)(unsigned char)bytes[at] << 16;
		char four[4];

		if (left > 1)
			three |= (uint32_t)(unsigned char)bytes[at + 1] << 8;
		if (left > 2)
			three |= (unsigned char)bytes[at + 2];
		four[0] = digits[three >> 18];
		four[1] = digits[three >> 12 & 63];
		four[2] = left > 1 ? digits[three >> 6 & 63] : '=';
		four[3] = left > 2 ? digits[three & 63] : '=';
		buf_add(j->out, four, sizeof(four));
	}
	buf_add_text(j->out, "\"");
}

void json_add_text(struct json *j, const char *key, const char *text)
{
	if (text)
		json_add_bytes(j, key, text, strlen(text));
	else
		json_add_null(j, key);
}

void json_add_number(struct json *j, const char *key, int64_t value)
{
	start_value(j, key);
	buf_addf(j->out, "%" PRId64, value);
}

void json_add_bool(struct json *j, const char *key, bool value)
{
	start_value(j, key);
	buf_add_text(j->out, value ? "true" : "false");
}

void json_add_null(struct json *j, const char *key)
{
	start_value(j, key);
	buf_add_text(j->out, "null");
}
