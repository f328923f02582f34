#pragma once
/*
 * httphead - parses the head of an HTTP/1.x request: its end, its host, its body.
 *
 * Call httphead_find_end() with the bytes from the head's start, as they arrive; then
 * httphead_parse() once. Both return NULL, or a static text that describes the error.
 */
#include "net/authority.h"

#define HTTPHEAD_METHOD_MAX_BYTES 64u

enum httphead_form {
	HTTPHEAD_ORIGIN,   /* "/path" or "*": the host is in the Host field */
	HTTPHEAD_ABSOLUTE, /* "http://host/path", for a proxy */
	HTTPHEAD_CONNECT,  /* "CONNECT host:port" */
};

struct httphead {
	enum httphead_form form;
	bool has_target;
	struct authority target; /* the port is 0 in the origin form */
	bool is_chunked;
	uint64_t body_bytes; /* 0 when chunked */
	bool wants_upgrade;  /* asks for another protocol from here on, and has no body */
};

/*
 * *scanned is 0 at first, then the value that the last call left there. *ret_end is 0 until the end
 * was found.
 */
const char *httphead_find_end(uint32_t *scanned, const uint8_t *bytes, size_t len,
			      uint32_t *ret_end);

/* Parses a complete head; `len` is *ret_end of httphead_find_end(). */
const char *httphead_parse(const uint8_t *bytes, size_t len, struct httphead *ret);
