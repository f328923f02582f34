#pragma once
/*
 * login - answers a registry's challenge and keeps the answer: a bearer token, or basic.
 *
 * A token comes from the address that the challenge names (its realm), for the right to pull one
 * repository and nothing else, whatever scope the registry asks for. The realm is shown the user's
 * credentials when there are any, as Docker does; so it has to speak https, except where the
 * registry itself is spoken to in plain HTTP and either is_insecure was said or the realm is this
 * machine. Tokens and passwords are in no error.
 */
#include "base/err.h"
#include "image/credentials.h"
#include "image/httptransfer.h"

#include <stdbool.h>
#include <stdint.h>

#define LOGIN_ANSWER_MAX_BYTES (64u << 10) /* of what the realm answers */
#define LOGIN_MAX_MS 60000u                /* for one request to the realm, all in all */

enum login_kind { LOGIN_NONE, LOGIN_BASIC, LOGIN_TOKEN };

struct login {
	enum login_kind kind;
	char *token;         /* LOGIN_TOKEN */
	unsigned generation; /* grows with each answer: who failed with an older one tries again */
};
void login_done(struct login *l); /* wipes; may run twice */

struct login_request {
	struct httptransfer_loop *loop;
	const char *challenge;                 /* the value of WWW-Authenticate */
	const char *scope;                     /* "repository:PATH:pull" */
	const struct credentials *credentials; /* NULL: none */
	bool is_plain;                         /* the registry is spoken to in plain HTTP */
	bool is_insecure;
	unsigned flags; /* of the exchange with the token service: enum httptransfer_flags */
	uint64_t connect_max_ms, stall_max_s;
};

/* What a failure means for whoever asks again. */
struct login_failure {
	bool is_transient;
	uint64_t retry_after_ms; /* 0: not said */
};

/* ERR_DENIED: no credentials, or not these. ERR_REMOTE: anything else about the realm. */
ERR_CHECKED int login_answer(struct login *l, const struct login_request *q,
			     struct login_failure *ret_failure, struct err *e);
