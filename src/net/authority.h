#pragma once
/*
 * authority - "host", "host:port" and "[v6]:port", as in Host, CONNECT and URLs.
 *
 * Hostile input: the server that reads the same bytes after us may be lenient. So a name consists
 * of letters, digits, '-', '.' and '_', or is an address literal; every byte that some server might
 * cut, decode or skip ('@', '%', '/', '\\', '?', ',', blanks, control and non-ASCII bytes) is
 * refused, so that the rest has a single meaning.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTHORITY_NAME_MAX_BYTES 255u

struct authority {
	char name[AUTHORITY_NAME_MAX_BYTES + 1]; /* as sent, without brackets */
	uint16_t port;                           /* 0: not given */
};

/* False unless it is exactly a host with an optional port of 1 to 65535. */
bool authority_parse(const uint8_t *text, size_t len, struct authority *ret);

/* Likewise for a name without a port, as in TLS, where an IPv6 literal has no brackets. */
bool authority_parse_name(const uint8_t *text, size_t len, struct authority *ret);

/* Compares the names without case. Ports are ignored. */
bool authority_is_same_host(const struct authority *a, const struct authority *b);
