#pragma once
/*
 * output - stores a command's output, for reading by range, and formats a bounded text of it.
 *
 * All output, up to a maximum, goes to an unnamed file; the beginning and the end are also kept in
 * memory. The text has these two parts with a line in between that tells how much is missing. It is
 * cut between characters and is always valid UTF-8.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define OUTPUT_SHOWN_MAX_BYTES (64u << 10) /* of one stream in a message; servers may show less */
#define OUTPUT_KEPT_MAX_BYTES (64ull << 20)

struct output {
	int fd;               /* the file; -1: nothing yet */
	uint64_t total_bytes; /* received */
	uint64_t kept_bytes;  /* in the file, OUTPUT_KEPT_MAX_BYTES at most */
	struct buf head;      /* the first half of the shown text */
	char *tail;           /* a ring with the last half */
	uint64_t tail_count;  /* bytes ever written to the ring */
};

void output_init(struct output *o);
void output_done(struct output *o); /* may run twice */
void output_add(struct output *o, const char *bytes, size_t len);
/* At most `max_bytes`, and never more than OUTPUT_SHOWN_MAX_BYTES, are shown. */
bool output_is_cut(const struct output *o, uint64_t max_bytes);
void output_format(const struct output *o, uint64_t max_bytes, struct buf *out);

/* Bytes from `offset` on, at most `max`; the buffer has room for them. Returns -errno. */
int output_read(const struct output *o, uint64_t offset, size_t max, struct buf *out);

/* Adds bytes as UTF-8: invalid ones become U+FFFD. */
void output_add_utf8(struct buf *out, const char *bytes, size_t len);
