#pragma once
/*
 * keychain - asks one of Docker's credential helpers, a program of the user's own.
 *
 * "docker-credential-NAME get" with the server on stdin answers with JSON, or fails and says why
 * on stdout. It runs in a process group of its own, which is killed as a whole at the deadline: a
 * helper that is a script would otherwise leave its children behind.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct keychain_request {
	const char *name; /* without "docker-credential-" */
	const char *server;
	char *const *environ_list; /* its PATH is searched; NULL: none is found */
	uint64_t max_ms;
};

/* *ret_is_known false: the helper says it knows nothing of this server. The answer may hold a
 * secret: the caller wipes it. */
ERR_CHECKED int keychain_get(const struct keychain_request *q, struct buf *answer,
			     bool *ret_is_known, struct err *e);
