#pragma once
/*
 * output - what a command has printed: all of it kept for reading by range, and a text of bounded
 * length for a message.
 *
 * The whole goes to a file without a name; the beginning and the end are kept in memory as well.
 * The text is those two with a line between that says how much is missing, cut between characters,
 * and always valid UTF-8.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define OUTPUT_SHOWN_MAX_BYTES (64u << 10) /* of one stream, in a message; faces may show less */
#define OUTPUT_KEPT_MAX_BYTES (64ull << 20)

struct output {
	int fd;               /* all of it; -1: nothing yet */
	uint64_t total_bytes; /* that came */
	uint64_t kept_bytes;  /* in the file */
	struct buf head;      /* the first half of what is shown */
	char *tail;           /* a ring with the last half */
	uint64_t tail_count;  /* bytes that went into it */
};

void output_init(struct output *o);
void output_done(struct output *o); /* may run twice */
void output_add(struct output *o, const char *bytes, size_t len);
/* `max_bytes` are shown of it, OUTPUT_SHOWN_MAX_BYTES at most. */
bool output_is_cut(const struct output *o, uint64_t max_bytes);
void output_format(const struct output *o, uint64_t max_bytes, struct buf *out);

/* Bytes from `offset` on, at most `max`; the buffer has room for them. Returns -errno. */
int output_read(const struct output *o, uint64_t offset, size_t max, struct buf *out);

/* Any bytes as UTF-8: what is none becomes U+FFFD. */
void output_add_utf8(struct buf *out, const char *bytes, size_t len);
