#pragma once
/*
 * siteframes - relays HTTP/2 in clear text (gRPC) to servers inside sandboxes, by libnghttp2.
 *
 * A client that begins with HTTP/2 is served on names of sandboxes alone, each connection one
 * sandbox and port: that of its first request; other names get 421. Who may is sitegrant's
 * decision, for each request.
 */
#include "http/connection.h"

#include <stdbool.h>

struct api;

/* Takes the connection; the preface is in the transport's input. */
bool siteframes_on_http2(struct api *a, struct connection *c);

#define SITEFRAMES_STREAMS_MAX 128u              /* of one connection, at once */
#define SITEFRAMES_HEAD_MAX_BYTES (32u << 10)    /* all fields of a request or answer */
#define SITEFRAMES_UNSENT_MAX_BYTES (256u << 10) /* to either side */
#define SITEFRAMES_IDLE_S 3600                   /* without a byte */
