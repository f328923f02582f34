#pragma once
/*
 * connection - one client connection: requests and answers, over plain sockets or TLS.
 *
 * One request at a time; what a client sends ahead waits. A body is collected up to a maximum, or,
 * if the route wants it, passed on in pieces and no faster than they are consumed. Answers are
 * complete, or streams in chunks. A client that sends nothing for too long, or does not read, is
 * disconnected without affecting others.
 */
#include "base/buf.h"
#include "http/head.h"
#include "http/origin.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CONNECTION_BODY_MAX_BYTES (16u << 20)
#define CONNECTION_HEAD_WAIT_S 15  /* for the complete head */
#define CONNECTION_BODY_WAIT_S 30  /* without a byte */
#define CONNECTION_IDLE_S 120      /* between requests */
#define CONNECTION_WRITE_WAIT_S 60 /* for a client that does not read */
#define CONNECTION_UNSENT_MAX_BYTES (8u << 20)

struct connection;

struct connection_request {
	struct head head;
	struct buf body; /* complete, unless it was passed on */
	char *path;      /* decoded, without empty components; "/a/b" */
	char *query;     /* after '?', not decoded; "" if none */
};

enum connection_body {
	CONNECTION_COLLECT, /* collect it, then call on_request() */
	CONNECTION_HAND_ON, /* call on_request() first, then on_body() for each piece */
	CONNECTION_REFUSED, /* an error was sent */
	CONNECTION_TAKEN,   /* connection_take() was called: the transport is somebody else's */
};

struct connection_handler {
	/* The head is complete: decides what to do with the body. */
	enum connection_body (*on_head)(struct connection *c, void *context);
	void (*on_request)(struct connection *c, void *context);
	/* Returns false to pause until connection_go_on(). len 0: the end. */
	bool (*on_body)(struct connection *c, const char *bytes, size_t len);
	/* The client speaks HTTP/2 (prior knowledge): takes the transport, or returns false. */
	bool (*on_http2)(struct connection *c, void *context);
	/* The client is gone, or the request is finished: .user is not used any more. */
	void (*on_gone)(struct connection *c);
	void *context;
};

/* All connections of a server. */
struct connection_list {
	struct connection *first;
	unsigned count;
	bool is_draining;
};

/* Takes ownership of the transport; borrows `place`, the listening address, for good. */
void connection_serve(struct connection_list *list, struct bufferevent *transport,
		      const struct connection_handler *handler, const struct origin_place *place);
const struct origin_place *connection_place(const struct connection *c);
/* Stops accepting requests: closes idle connections, and others after their answer. */
void connection_drain(struct connection_list *list);

const struct connection_request *connection_request(const struct connection *c);
void connection_set_user(struct connection *c, void *user); /* of the current request */
void *connection_user(const struct connection *c);
void connection_go_on(struct connection *c);

/*
 * Called in on_head() or on_http2(): reads, writes and events of the transport are the caller's
 * until it gives the connection back. Bytes after the head are in its input.
 */
struct bufferevent *connection_take(struct connection *c);
enum connection_return {
	CONNECTION_GO_ON, /* the answer is complete: the next request follows */
	CONNECTION_CLOSE, /* what was written is sent first */
	CONNECTION_DROP,  /* at once */
};
void connection_give_back(struct connection *c, enum connection_return what);

struct connection_header {
	const char *name, *value;
};
/* Sends a complete answer; `type` NULL: no body. `extra` ends with a NULL name, and may be NULL. */
void connection_reply(struct connection *c, int status, const char *type, const char *bytes,
		      size_t len, const struct connection_header *extra);

const char *connection_reason(int status); /* "Not Found" */

/* Sends an answer in pieces. */
void connection_begin(struct connection *c, int status, const char *type,
		      const struct connection_header *extra);
void connection_send(struct connection *c, const char *bytes, size_t len);
void connection_end(struct connection *c);
/* Closes the connection without ending the answer: the client sees that it is incomplete. */
void connection_abort(struct connection *c);
size_t connection_unsent(const struct connection *c);
