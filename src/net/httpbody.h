#pragma once
/*
 * httpbody - where the body of an HTTP/1.x request ends.
 *
 * The bytes may be forwarded as httpbody_read() takes them: each is checked before it counts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct httpbody {
	uint64_t left; /* of the body, or of the chunk */
	uint8_t state;
	uint8_t digits; /* read of a chunk's size */
};

void httpbody_init_length(struct httpbody *b, uint64_t bytes); /* 0: no body */
void httpbody_init_chunked(struct httpbody *b);

bool httpbody_is_done(const struct httpbody *b);

/*
 * Takes what is the body's; *ret_used says how much. NULL, or a static text about the first
 * byte that was not taken.
 */
const char *httpbody_read(struct httpbody *b, const uint8_t *bytes, size_t len, size_t *ret_used);
