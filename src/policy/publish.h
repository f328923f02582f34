#pragma once
/*
 * publish - ports of the sandbox that are reachable at an address of the host: -P
 * [ADDR:]PORT[:INNER].
 *
 * A policy keeps them as texts in one form, "ADDR:PORT:INNER", a single port each.
 */
#include "base/err.h"
#include "policy/address.h"

#include <stdint.h>

#define PUBLISH_MAX 64u            /* of one sandbox */
#define PUBLISH_TEXT_MAX_BYTES 80u /* "[v6]:65535:65535" and the NUL */

struct publish {
	struct address address; /* of the host */
	uint16_t port;          /* on the host; 0: any that is free */
	uint16_t inner;         /* inside */
};

/* Parses what a user types, which may be a range, and adds each port to the NULL-ended list. */
ERR_CHECKED int publish_add(char ***list, const char *text, struct err *e);

/* Parses a text of the list. */
ERR_CHECKED int publish_parse(const char *text, struct publish *ret, struct err *e);
const char *publish_format(const struct publish *p, char out[PUBLISH_TEXT_MAX_BYTES]);
