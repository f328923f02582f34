#pragma once
/*
 * sniff - finds the host that a connection's client asks for, in the client's own bytes.
 *
 * The gate binds a connection to a host name before it connects. But one address may serve many
 * sites, and a TLS server name or an HTTP Host selects one. So client bytes pass this parser before
 * they are forwarded, and it asks about each host that they name:
 *
 *	verdict = sniff_client(&s, held, held_len, &result);
 *	forward and drop the first result.release bytes of `held`, whatever the verdict
 *	MORE: wait for more of the client (or of the server, see sniff_wants_server)
 *	ASK:  if result.ask is allowed, sniff_allow(&s) and call again at once; else refuse
 *	PASS: stop calling, everything is forwarded from here on
 *	BAD:  refuse and close
 *
 * No I/O, no allocation, and the work is linear in the bytes however they are split. For a client
 * that ends while bytes are held see sniff_can_end().
 */
#include "net/authority.h"
#include "net/hello.h"
#include "net/httpbody.h"
#include "net/httpguess.h"

#define SNIFF_HEAD_MAX_BYTES (64u << 10) /* a ClientHello or HTTP head; more is refused */
#define SNIFF_NAME_MAX_BYTES AUTHORITY_NAME_MAX_BYTES
#define SNIFF_STATUS_BYTES 12u /* "HTTP/1.1 200" */

enum sniff_verdict {
	SNIFF_MORE, /* hold what was not released, call again with more */
	SNIFF_ASK,  /* a complete hello or head: is its target allowed? */
	SNIFF_PASS, /* everything from now on may be forwarded without further calls */
	SNIFF_BAD,  /* answer 400, or close */
};

enum sniff_protocol {
	SNIFF_TLS,
	SNIFF_HTTP,
	SNIFF_HTTP_PROXY,   /* a complete URL in the request line */
	SNIFF_HTTP_CONNECT, /* the client wants a tunnel */
	SNIFF_HTTP2,        /* the preface of HTTP/2 without TLS; its requests are not inspected */
};

struct sniff_ask {
	enum sniff_protocol protocol;
	bool has_name; /* false: no host named, so the server uses its default */
	char name[SNIFF_NAME_MAX_BYTES + 1]; /* as sent, not normalised; see authority.h */
	uint16_t port;                       /* 0: the connection's port */
};

struct sniff_result {
	size_t release;       /* leading bytes that may be forwarded now */
	struct sniff_ask ask; /* for SNIFF_ASK */
	const char *problem;  /* for SNIFF_BAD, static text */
};

struct sniff {
	uint8_t state;
	uint8_t after_head;  /* the state once the head is released */
	bool is_asked;       /* waiting for the answer */
	bool is_allowed;     /* the answer was yes */
	bool is_later;       /* not the first request on this connection */
	bool is_hello_later; /* the server has asked for a second hello */
	uint8_t status_len;  /* bytes of the server's answer that match the pattern */
	uint8_t status[SNIFF_STATUS_BYTES];
	uint32_t scanned;    /* of a head */
	uint32_t head_bytes; /* its length, once known */
	struct hello hello;
	struct httpguess guess;
	struct httpwatch watch;
	struct httpbody body;
};

void sniff_init(struct sniff *s);

/* `bytes` are all client bytes not yet released, oldest first; never NULL. */
enum sniff_verdict sniff_client(struct sniff *s, const uint8_t *bytes, size_t len,
				struct sniff_result *ret);

/* The answer to SNIFF_ASK is yes; call sniff_client() again with the bytes that are held. */
void sniff_allow(struct sniff *s);

/*
 * After a CONNECT, Upgrade or TLS hello the server decides how the client's next bytes are parsed.
 * While this is true, pass the server's bytes to sniff_server() too (they may be forwarded at
 * once); when it becomes false, call sniff_client() again, even if nothing is held. Until then
 * nothing is released; a caller whose buffer is full stops reading from the client.
 */
bool sniff_wants_server(const struct sniff *s);
void sniff_server(struct sniff *s, const uint8_t *bytes, size_t len);

/*
 * The client has ended and `bytes` are held. True: they belong to a protocol that we do not parse,
 * and may be forwarded. False: an incomplete hello or request, which must not.
 */
bool sniff_can_end(const struct sniff *s, const uint8_t *bytes, size_t len);
