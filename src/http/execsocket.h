#pragma once
/*
 * execsocket - commands over WebSockets: streams, terminals, signals, sessions that stay.
 *
 *   GET /sandboxes/NAME/exec/ws?cmd=...        starts a command, and is its client
 *   GET /sandboxes/NAME/exec/detached/ID/ws    joins one, with its output from ?offset= on
 *
 * docs/design/http.md has the messages.
 */
#include "http/webcall.h"

/* Is this path one of these routes? */
bool execsocket_is_path(const char *path);
/* The request's key was checked; `owner` as api_owner(). */
enum connection_body execsocket_on_head(struct api *a, struct connection *c, const char *owner);

#define EXECSOCKET_UNSENT_MAX_BYTES (1u << 20) /* then the command's output waits */
#define EXECSOCKET_WORDS_MAX 4096u
