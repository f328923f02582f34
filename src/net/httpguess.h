#pragma once
/*
 * httpguess - does a connection without TLS start with an HTTP request?
 *
 * Gets the client's bytes from the start of the connection, as they arrive.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum httpguess_verdict {
	HTTPGUESS_MORE,  /* not decided yet */
	HTTPGUESS_OTHER, /* no server would accept it as HTTP */
	HTTPGUESS_WATCH, /* unknown method; the end of the line will decide */
	HTTPGUESS_HTTP,  /* a valid request line */
	HTTPGUESS_HTTP2, /* the preface of HTTP/2 without TLS */
	HTTPGUESS_BAD,   /* some servers might accept it as HTTP, in ways we cannot predict */
};

struct httpguess {
	uint32_t scanned; /* bytes before this were checked */
	uint32_t line;    /* start of the current line */
	uint32_t method;  /* start of its first word */
	uint8_t phase;
};

void httpguess_init(struct httpguess *g);

/* In every call `bytes` start at the connection's first byte. */
enum httpguess_verdict httpguess_scan(struct httpguess *g, const uint8_t *bytes, size_t len);

/*
 * A line without a known method need not be held: without "HTTP/1.1" at its end no server accepts
 * it as a request. So it is forwarded while it is watched, except for bytes that may be the start
 * of that end. Start with a zeroed struct.
 */
struct httpwatch {
	bool has_word;   /* this line is not empty */
	bool has_blank;  /* it has a second word */
	uint8_t matched; /* bytes of "http/", in any case, just seen; these are held */
};

/* Gets each byte once. MORE: the last .matched bytes stay held; BAD, OTHER: as above. */
enum httpguess_verdict httpguess_watch(struct httpwatch *w, const uint8_t *bytes, size_t len);

/* The client ended in the middle of a line: is that line certainly not HTTP? */
bool httpguess_can_end(const struct httpguess *g, const uint8_t *bytes, size_t len);
