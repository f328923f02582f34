#pragma once
/*
 * bodyframe - moves one HTTP/1.1 body from one buffer to another, and knows where it ends.
 *
 * Bytes of chunks are moved, never copied; the lines between them are read strictly and written
 * anew, so both sides agree about the end, and what a chunk's extension says is dropped. Trailers
 * are dropped too. Hostile input: every byte.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

#define BODYFRAME_LINE_MAX_BYTES 4096u      /* a chunk's size, or one trailer */
#define BODYFRAME_TRAILERS_MAX_BYTES 16384u /* all of them */
#define BODYFRAME_CHUNK_MAX_BYTES (1ull << 62)

enum bodyframe_kind {
	BODYFRAME_NONE,
	BODYFRAME_LENGTH,
	BODYFRAME_CHUNKED,
	BODYFRAME_UNTIL_END, /* of the connection */
};

struct bodyframe {
	enum bodyframe_kind kind;
	enum { BODYFRAME_SIZE, BODYFRAME_DATA, BODYFRAME_DATA_END, BODYFRAME_TRAILER } state;
	uint64_t left; /* of the body, or of this chunk */
	size_t trailer_bytes;
	bool writes_chunks; /* frames the body as chunks, whatever it was */
};

void bodyframe_init(struct bodyframe *f, enum bodyframe_kind kind, uint64_t length);
/* 1: the body is complete; 0: more bytes are needed; -1: invalid. Moves max_bytes at most. */
int bodyframe_move(struct bodyframe *f, struct evbuffer *from, struct evbuffer *to,
		   size_t max_bytes);
/* The connection ended: 1 if that is the end of the body, -1 if not. */
int bodyframe_end(struct bodyframe *f, struct evbuffer *to);
