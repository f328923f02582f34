#pragma once
/*
 * httpguess - does a connection that is not TLS open with an HTTP request?
 *
 * Fed with the client's bytes from the start of the connection, as they come.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum httpguess_verdict {
	HTTPGUESS_MORE,  /* cannot be said yet */
	HTTPGUESS_OTHER, /* no server would take it for HTTP */
	HTTPGUESS_WATCH, /* no method we know; only the rest of the line can tell */
	HTTPGUESS_HTTP,  /* a request line as it should be */
	HTTPGUESS_HTTP2, /* the preface of HTTP/2 without TLS */
	HTTPGUESS_BAD,   /* some servers would take it for HTTP, and who knows how they read it */
};

struct httpguess {
	uint32_t scanned; /* bytes before this have been looked at */
	uint32_t line;    /* where the line that holds them starts */
	uint32_t method;  /* where its first word starts */
	uint8_t phase;
};

void httpguess_init(struct httpguess *g);

/* `bytes` start at the connection's first byte in every call. */
enum httpguess_verdict httpguess_scan(struct httpguess *g, const uint8_t *bytes, size_t len);

/*
 * A line that starts with no known method need not be held: without its end, "HTTP/1.1", it is no
 * request for anybody. So it may flow while it is watched, except for bytes that could be the
 * start of that end. Start with a zeroed struct.
 */
struct httpwatch {
	bool has_word;   /* this line is not empty */
	bool has_blank;  /* and has a second word */
	uint8_t matched; /* bytes of "http/", any case, that were just seen; these are held */
};

/* Shown each byte once. MORE: .matched bytes at the end stay held; BAD, OTHER: as above. */
enum httpguess_verdict httpguess_watch(struct httpwatch *w, const uint8_t *bytes, size_t len);

/* The client has ended in the middle of a line: is that line anything but HTTP? */
bool httpguess_can_end(const struct httpguess *g, const uint8_t *bytes, size_t len);
