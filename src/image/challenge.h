#pragma once
/*
 * challenge - parses the WWW-Authenticate field of a registry's 401 answer.
 *
 * A value may have several challenges; the best supported one is returned: bearer before basic.
 * Hostile input: the value. No system calls.
 */
#include "base/err.h"

#define CHALLENGE_TEXT_MAX_BYTES 2048u

enum challenge_scheme { CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_scheme scheme;
	char realm[CHALLENGE_TEXT_MAX_BYTES];   /* bearer: URL of the token server */
	char service[CHALLENGE_TEXT_MAX_BYTES]; /* "" if absent */
};

/* ERR_REMOTE if there is no supported challenge, or it is malformed. */
ERR_CHECKED int challenge_parse(const char *value, struct challenge *ret, struct err *e);
