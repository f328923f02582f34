#pragma once
/*
 * challenge - what a registry wants to be shown: the WWW-Authenticate field of a 401.
 *
 * A value may hold several challenges; the best that we can answer is given: a bearer token before
 * basic. Pure code, over foreign bytes.
 */
#include "base/err.h"

#define CHALLENGE_TEXT_MAX_BYTES 2048u

enum challenge_scheme { CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_scheme scheme;
	char realm[CHALLENGE_TEXT_MAX_BYTES];   /* of a bearer: the address that gives tokens */
	char service[CHALLENGE_TEXT_MAX_BYTES]; /* "" when absent */
};

/* ERR_REMOTE when there is none that we know, or it is not well formed. */
ERR_CHECKED int challenge_parse(const char *value, struct challenge *ret, struct err *e);
