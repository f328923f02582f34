#pragma once
/*
 * mcproute - the Model Context Protocol over HTTP: POST /mcp, one message each.
 *
 * mcp/protocol handles the messages. The legacy era has sessions, whose id is in the answer to
 * `initialize`; the modern one has none, and its headers must match the message. A call that wants
 * progress is answered with an event stream, every other with one JSON body.
 */
#include "http/api.h"

/* All other methods get 405. */
void mcproute_post(struct api *a, struct connection *c);
void mcproute_delete(struct api *a, struct connection *c);
