/* shown - makes untrusted text safe to print; see shown.h. */
#include "base/shown.h"

#include <stdint.h>
#include <string.h>

size_t shown_utf8_len(const char *text, size_t left)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len;
	unsigned char low = 0x80, high = 0xbf; /* range of the second byte */

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (p[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (p[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (p[0] == 0xf4)
		high = 0x8f; /* above U+10FFFF */
	if (left < len || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

static uint32_t code_point(const unsigned char *p, size_t len)
{
	uint32_t c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* Control characters; directional marks and overrides; line separators. */
static bool is_obeyed(uint32_t c)
{
	return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t shown_length(const char *text, size_t left)
{
	size_t len = shown_utf8_len(text, left);

	return len > 0 && is_obeyed(code_point((const unsigned char *)text, len)) ? 0 : len;
}

static void replace(char *text, size_t len, char kept)
{
	for (size_t at = 0; at < len;) {
		size_t n = shown_length(text + at, len - at);

		if (n == 0 && (!kept || text[at] != kept))
			text[at] = '?';
		at += n ? n : 1;
	}
}

void shown_replace(char *text)
{
	replace(text, strlen(text), '\0');
}

void shown_replace_lines(char *text, size_t len)
{
	replace(text, len, '\n');
}

void shown_add(struct buf *out, const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; at < len;) {
		size_t n = shown_length(text + at, len - at);

		if (n == 0)
			buf_addf(out, "\\x%02x", (unsigned char)text[at]);
		else
			buf_add(out, text + at, n);
		at += n ? n : 1;
	}
}
