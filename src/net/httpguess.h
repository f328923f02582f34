#pragma once
/*
 * httpguess - does a connection that is not TLS open with an HTTP request?
 *
 * Fed with the client's bytes from the start of the connection, as they come.
 */
#include <stddef.h>
#include <stdint.h>

enum httpguess_verdict {
	HTTPGUESS_MORE,  /* cannot be said yet */
	HTTPGUESS_OTHER, /* no server would take it for HTTP */
	HTTPGUESS_HTTP,  /* a request line as it should be */
	HTTPGUESS_HTTP2, /* the preface of HTTP/2 without TLS */
	HTTPGUESS_BAD,   /* some servers would take it for HTTP, and who knows how they read it */
};

struct httpguess {
	uint32_t scanned; /* bytes before this have been looked at */
	uint32_t line;    /* where the line that holds them starts */
	uint8_t phase;
};

void httpguess_init(struct httpguess *g);

/* `bytes` start at the connection's first byte in every call. */
enum httpguess_verdict httpguess_scan(struct httpguess *g, const uint8_t *bytes, size_t len);
