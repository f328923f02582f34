#pragma once
/*
 * mcproute - the Model Context Protocol over HTTP: POST /mcp, one message each.
 *
 * The messages are mcp/protocol's. The legacy era has sessions, whose id the answer to `initialize`
 * carries; the modern one has none, and its headers have to say what the message says. A call that
 * wants progress is answered by a stream of events, every other by one JSON body.
 */
#include "http/api.h"

/* Other methods than these two are 405. */
void mcproute_post(struct api *a, struct connection *c);
void mcproute_delete(struct api *a, struct connection *c);
