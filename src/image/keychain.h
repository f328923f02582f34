#pragma once
/*
 * keychain - runs a Docker credential helper, a program of the user's own.
 *
 * "docker-credential-NAME get" with the server on stdin prints JSON, or fails with a message on
 * stdout. It runs in its own process group, which is killed as a whole at the deadline: a helper
 * that is a script would otherwise leave its children behind.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct keychain_request {
	const char *name; /* without "docker-credential-" */
	const char *server;
	char *const *environ_list; /* its PATH is searched; NULL: no helper is found */
	uint64_t max_ms;
};

/* *ret_is_known is false if the helper has no entry for this server. The answer may contain a
 * secret: the caller wipes it. */
ERR_CHECKED int keychain_get(const struct keychain_request *q, struct buf *answer,
			     bool *ret_is_known, struct err *e);
