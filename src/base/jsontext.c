/* jsontext - decodes a JSON string; see jsontext.h. */
#include "base/jsontext.h"

#include "base/jsonwalk.h"

#include <string.h>

static void add_utf8(struct buf *out, unsigned c)
{
	char bytes[4];
	size_t len = 0;

	if (c < 0x80) {
		bytes[len++] = (char)c;
	} else if (c < 0x800) {
		bytes[len++] = (char)(0xc0 | c >> 6);
		bytes[len++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		bytes[len++] = (char)(0xe0 | c >> 12);
		bytes[len++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[len++] = (char)(0x80 | (c & 0x3f));
	} else {
		bytes[len++] = (char)(0xf0 | c >> 18);
		bytes[len++] = (char)(0x80 | (c >> 12 & 0x3f));
		bytes[len++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[len++] = (char)(0x80 | (c & 0x3f));
	}
	buf_add(out, bytes, len);
}

/* A half of a pair without the other becomes U+FFFD. `at` is on the 'u'; returns its last digit. */
static const char *decode_unicode(const char *at, const char *end, struct buf *out)
{
	int c = jsonwalk_read_hex(at + 1, end);

	at += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - at > 6 && at[1] == '\\' && at[2] == 'u') {
		int low = jsonwalk_read_hex(at + 3, end);

		if (low >= 0xdc00 && low < 0xe000) {
			add_utf8(out, 0x10000u + (unsigned)(c - 0xd800) * 0x400u +
					      (unsigned)(low - 0xdc00));
			return at + 6;
		}
	}
	add_utf8(out, c < 0 || (c >= 0xd800 && c < 0xe000) ? 0xfffdu : (unsigned)c);
	return at;
}

void jsontext_decode(const char *at, const char *end, struct buf *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";

	for (at++, end--; at < end; at++) {
		const char *found;

		if (*at != '\\') {
			buf_add(out, at, 1);
			continue;
		}
		at++;
		found = strchr(from, *at);
		if (*at == 'u')
			at = decode_unicode(at, end, out);
		else
			buf_add(out, found ? to + (found - from) : at, 1);
	}
}
