#pragma once
/*
 * hello - the server name in a TLS ClientHello.
 *
 * Call hello_scan() with the client's bytes from the start of the connection, as they arrive, until
 * the hello is complete; then hello_parse() once. Both return NULL, or a static text that describes
 * the error.
 */
#include "net/authority.h"

#define HELLO_RECORD_HEADER_BYTES 5u
#define HELLO_FIRST_BYTE 0x16 /* a handshake record */

struct hello {
	uint32_t next;      /* offset of the first record not counted yet */
	uint32_t payload;   /* handshake bytes in the records before it */
	uint8_t header[4];  /* of the handshake message: type and length, as far as received */
	uint8_t header_len; /* bytes of it received */
	bool is_whole;      /* complete: the hello ends at `next` */
};

void hello_init(struct hello *h);

/* In every call `bytes` start at the connection's first byte; h->is_whole: complete. */
const char *hello_scan(struct hello *h, const uint8_t *bytes, size_t len);

/* Parses a complete hello. *ret_has_name is false if the client sent no server name. */
const char *hello_parse(const struct hello *h, const uint8_t *bytes, struct authority *ret,
			bool *ret_has_name);
