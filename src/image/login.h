#pragma once
/*
 * login - authenticates at a registry and keeps the result: a bearer token, or basic.
 *
 * A token comes from the URL that the challenge names (its realm), for the right to pull one
 * repository only, whatever scope the registry suggests. The realm gets the user's credentials, if
 * there are any, as in Docker; so it must use https, unless the registry itself is accessed with
 * plain HTTP and either is_insecure is set or the realm is this machine. No error contains a token
 * or password.
 */
#include "base/err.h"
#include "image/credentials.h"
#include "image/httptransfer.h"

#include <stdbool.h>
#include <stdint.h>

#define LOGIN_ANSWER_MAX_BYTES (64u << 10) /* of the realm's answer */
#define LOGIN_MAX_MS 60000u                /* for one request to the realm, in total */

enum login_kind { LOGIN_NONE, LOGIN_BASIC, LOGIN_TOKEN };

struct login {
	enum login_kind kind;
	char *token;         /* LOGIN_TOKEN */
	unsigned generation; /* increased with each login: requests with an older one are retried */
};
void login_done(struct login *l); /* wipes; may run twice */

struct login_request {
	struct httptransfer_loop *loop;
	const char *challenge;                 /* the value of WWW-Authenticate */
	const char *scope;                     /* "repository:PATH:pull" */
	const struct credentials *credentials; /* NULL: none */
	bool is_plain;                         /* the registry is accessed with plain HTTP */
	bool is_insecure;
	unsigned flags; /* for the request to the token server: enum httptransfer_flags */
	uint64_t connect_max_ms, stall_max_s;
};

/* What a failure means for a retry. */
struct login_failure {
	bool is_transient;
	uint64_t retry_after_ms; /* 0: not given */
};

/* ERR_DENIED: no credentials, or rejected ones. ERR_REMOTE: any other failure of the realm. */
ERR_CHECKED int login_answer(struct login *l, const struct login_request *q,
			     struct login_failure *ret_failure, struct err *e);
