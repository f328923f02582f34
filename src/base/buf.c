/* buf - a growing byte buffer with a maximum; see buf.h. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_BYTES 256
#define BUF_PIECE_BYTES 256 /* of one buf_addf() */

void buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){ .max = max_bytes };
}

void buf_init_fixed(struct buf *b, char *bytes, size_t size)
{
	bytes[0] = '\0';
	*b = (struct buf){ .bytes = bytes, .capacity = size, .max = size - 1, .is_fixed = true };
}

void buf_done(struct buf *b)
{
	if (!b->is_fixed)
		free(b->bytes);
	*b = (struct buf){ .max = b->max };
}

static void make_room(struct buf *b, size_t extra)
{
	size_t wanted = b->len + extra + 1;
	size_t capacity = b->capacity ? b->capacity : BUF_FIRST_BYTES;

	if (wanted <= b->capacity)
		return;
	while (capacity < wanted)
		capacity *= 2;
	b->bytes = mem_grow(b->bytes, capacity, 1);
	b->capacity = capacity;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	if (len > b->max - b->len) {
		len = b->max - b->len;
		b->is_cut = true;
	}
	if (len == 0)
		return;
	make_room(b, len);
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
	b->bytes[b->len] = '\0';
}

void buf_add_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

/* Most texts are short: these are formatted once, and without an allocation. */
void buf_add_quoted(struct buf *b, const char *word)
{
	buf_add_text(b, "'");
	for (; *word; word++)
		buf_add(b, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
	buf_add_text(b, "'");
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	char piece[BUF_PIECE_BYTES];
	char *text;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(piece, sizeof(piece), fmt, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof(piece)) {
		buf_add_text(b, piece);
		return;
	}
	va_start(args, fmt);
	text = mem_vformat(fmt, args);
	va_end(args);
	buf_add_text(b, text);
	free(text);
}

const char *buf_text(const struct buf *b)
{
	return b->bytes ? b->bytes : "";
}
