#pragma once
/*
 * address - IP addresses and networks as values, and which of them are not public.
 *
 * An IPv4 address has a single form: every input function converts the v4-mapped form of IPv6, so
 * no rule can be bypassed by writing an address differently.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX_BYTES 64 /* "[v6]/128" and the NUL */

struct address {
	uint8_t bits;      /* 32 or 128 */
	uint8_t bytes[16]; /* network order; the first four for IPv4 */
};

struct address_network {
	struct address base; /* bits beyond the prefix are zero */
	uint8_t prefix_bits;
};

/* Accepts dotted decimal with four parts, or IPv6 without a zone. */
bool address_parse(const char *text, struct address *ret);
const char *address_format(const struct address *a, char out[ADDRESS_TEXT_MAX_BYTES]);
bool address_is_equal(const struct address *a, const struct address *b);

/* "10.0.0.0/8", "2001:db8::/32"; a single address is a network of one. */
ERR_CHECKED int address_parse_network(const char *text, struct address_network *ret, struct err *e);
const char *address_format_network(const struct address_network *n,
				   char out[ADDRESS_TEXT_MAX_BYTES]);
bool address_is_in(const struct address *a, const struct address_network *n);

bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret, uint16_t *ret_port);
socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);

/* Returns the kind of a non-public address ("a private address"), or NULL for a public one. */
const char *address_special_kind(const struct address *a);
bool address_is_unspecified(const struct address *a); /* all zero */
bool address_is_loopback(const struct address *a);    /* or unspecified, which reaches loopback */
bool address_is_metadata(const struct address *a);    /* a cloud's instance metadata service */
