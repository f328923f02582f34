#pragma once
/*
 * hello - the server name in a TLS ClientHello.
 *
 * First hello_scan() with the client's bytes from the start of the connection, as they come,
 * until the hello is whole; then hello_parse() once. Both return NULL when nothing is wrong,
 * and a static text that says what is otherwise.
 */
#include "net/authority.h"

#define HELLO_RECORD_HEADER_BYTES 5u
#define HELLO_FIRST_BYTE 0x16 /* a handshake record */

struct hello {
	uint32_t next;      /* where the first record that has not been counted starts */
	uint32_t payload;   /* handshake bytes in the records before it */
	uint8_t header[4];  /* of the handshake message: type and length, as far as read */
	uint8_t header_len; /* how much of it is there */
	bool is_whole;      /* the hello ends where `next` says */
};

void hello_init(struct hello *h);

/* `bytes` start at the connection's first byte in every call; h->is_whole says when it is. */
const char *hello_scan(struct hello *h, const uint8_t *bytes, size_t len);

/* Of a whole hello. *ret_has_name is false when the client sent no server name. */
const char *hello_parse(const struct hello *h, const uint8_t *bytes, struct authority *ret,
			bool *ret_has_name);
