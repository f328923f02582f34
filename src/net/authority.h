#pragma once
/*
 * authority - "host", "host:port" and "[v6]:port", as they stand in Host, CONNECT and URLs.
 *
 * The bytes are an attacker's, and the server that reads them after us may be lenient. So a
 * name is letters, digits, '-', '.' and '_', or an address literal; everything that some
 * server might cut, decode or skip ('@', '%', '/', '\\', '?', ',', blanks, control and
 * non-ASCII bytes) is refused, and what is left has one reading only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTHORITY_NAME_MAX_BYTES 255u

struct authority {
	char name[AUTHORITY_NAME_MAX_BYTES + 1]; /* as it was sent, without brackets */
	uint16_t port;                           /* 0: none was given */
};

/* False when it is not exactly a host with an optional port of 1 to 65535. */
bool authority_parse(const uint8_t *text, size_t len, struct authority *ret);

/* As above for a bare name without a port, as in TLS; there an IPv6 literal has no brackets. */
bool authority_parse_name(const uint8_t *text, size_t len, struct authority *ret);

/* The same name but for the case of letters. Ports are not looked at. */
bool authority_is_same_host(const struct authority *a, const struct authority *b);
