#pragma once
/*
 * buf - a growing byte buffer with a maximum set at creation.
 *
 * Appending past the maximum keeps what fits, drops the rest and sets is_cut: a caller that must
 * not lose bytes checks it once at the end. The bytes are always followed by a NUL that does not
 * count, so text can be read as a string.
 */
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *bytes; /* NULL until the first append */
	size_t len;
	size_t capacity;
	size_t max; /* len never exceeds this */
	bool is_cut;
	bool is_fixed; /* the bytes are the caller's: never moved or freed */
};

#define BUF_TEXT_MAX_BYTES (1u << 20) /* for text that we write ourselves */

void buf_init(struct buf *b, size_t max_bytes);
/* In the caller's memory, which holds one byte less, and with no allocation. */
void buf_init_fixed(struct buf *b, char *bytes, size_t size);
void buf_done(struct buf *b); /* may run twice, and on a zeroed struct */

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_add_text(struct buf *b, const char *text);
void buf_add_quoted(struct buf *b, const char *word); /* in single quotes, for a shell */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *buf_text(const struct buf *b); /* "" when empty; valid until the next append */

#define cleanup_buf CLEANUP(buf_done)
