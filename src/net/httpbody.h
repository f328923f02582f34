#pragma once
/*
 * httpbody - finds the end of an HTTP/1.x request body.
 *
 * The bytes that httpbody_read() accepts may be forwarded: each was checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct httpbody {
	uint64_t left; /* bytes of the body or chunk */
	uint8_t state;
	uint8_t digits; /* digits read of a chunk's size */
};

void httpbody_init_length(struct httpbody *b, uint64_t bytes); /* 0: no body */
void httpbody_init_chunked(struct httpbody *b);

bool httpbody_is_done(const struct httpbody *b);

/*
 * Accepts bytes of the body; *ret_used is their number. Returns NULL, or a static text about the
 * first byte that was refused.
 */
const char *httpbody_read(struct httpbody *b, const uint8_t *bytes, size_t len, size_t *ret_used);
