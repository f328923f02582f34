#pragma once
/*
 * siterelay - relays requests to servers inside sandboxes.
 *
 * HTTP/1.1 with bodies of any size, event streams, WebSockets and other upgrades; HTTP/2 in clear
 * text is siteframes'. Who may: requests with a key whose owner sees the sandbox, or with a link's
 * token; everybody for a public port; everybody who may use the API where no key is asked for, but
 * pages of other origins. Keys, tokens and our cookie are not passed on.
 */
#include "http/connection.h"
#include "http/site.h"

struct api;

/* A request for a sandbox: takes the connection, or refuses it. */
enum connection_body siterelay_on_head(struct api *a, struct connection *c, const struct site *s);

#define SITERELAY_PEER_MAX_BYTES 46u
/* The client's address, for X-Forwarded-For. */
void siterelay_format_peer(const struct connection *c, struct bufferevent *client,
			   char out[SITERELAY_PEER_MAX_BYTES]);

#define SITERELAY_BUFFER_MAX_BYTES (256u << 10) /* unsent, each way of one request */
#define SITERELAY_ANSWER_WAIT_S 600             /* for the head of an answer */
