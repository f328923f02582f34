#pragma once
/*
 * websocket - the server's end of a WebSocket (RFC 6455), by libwslay, on a connection's transport.
 *
 * Messages up to WEBSOCKET_MESSAGE_MAX_BYTES, complete; no extensions. A client is pinged when it
 * is quiet and dropped when it does not answer. The owner checks websocket_unsent() and pauses.
 */
#include "http/connection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct websocket;

#define WEBSOCKET_MESSAGE_MAX_BYTES (1u << 20)
#define WEBSOCKET_PING_S 20      /* of quiet */
#define WEBSOCKET_ANSWER_S 60    /* without a byte: dropped */
#define WEBSOCKET_CLOSE_WAIT_S 5 /* for the client's own close */

struct websocket_owner {
	void *context;
	/* Both are called from the event loop. After on_closed the websocket is gone. */
	void (*on_message)(void *context, bool is_text, const char *bytes, size_t len);
	void (*on_closed)(void *context);
	void (*on_written)(void *context); /* unsent bytes have become fewer; may be NULL */
	void (*on_quiet)(void *context);   /* each WEBSOCKET_PING_S of quiet; may be NULL */
};

/* NULL: the request is a proper handshake; otherwise what is wrong with it. */
const char *websocket_check(const struct head *h);
/* Answers the handshake of a connection in on_head(), and takes it. */
struct websocket *websocket_accept(struct connection *c, const struct websocket_owner *o);

void websocket_send(struct websocket *w, bool is_text, const char *bytes, size_t len);
size_t websocket_unsent(const struct websocket *w);
void websocket_pause(struct websocket *w, bool is_paused); /* stops reading */
/* Sends a close; on_closed follows. */
void websocket_close(struct websocket *w, uint16_t code, const char *reason);
