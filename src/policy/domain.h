#pragma once
/*
 * domain - one normal form for host names.
 *
 * Each name is normalised once, on input, and from then on compared as bytes: lower case, no
 * trailing dot, labels of letters, digits, '-' and '_', at most 253 bytes. Names that some resolver
 * would read as a number ("127.1", "0x7f000001") are refused, and so is every byte that two
 * programs could interpret differently.
 */
#include <stdbool.h>
#include <stddef.h>

#define DOMAIN_MAX_BYTES 253u
#define DOMAIN_LABEL_MAX_BYTES 63u
#define DOMAIN_SERVICE_LABELS_MAX 2u
#define DOMAIN_SERVICE_LABEL_MAX_BYTES                                                             \
	16u /* '_' and the 15 characters of a service name, RFC 6335 */

enum domain_source {
	DOMAIN_TYPED, /* by a user: other scripts are converted to their xn-- form */
	DOMAIN_WIRE,  /* from a packet: ASCII only */
};

struct domain_problem {
	size_t at;       /* offset in the text, from 0 */
	const char *why; /* static */
};

/* `out` has DOMAIN_MAX_BYTES + 1 bytes and is written only on success. */
bool domain_normalize(const char *text, size_t len, enum domain_source source, char *out,
		      struct domain_problem *ret_problem);

/*
 * Returns the host part of a service name: "a.example" of "_mongodb._tcp.a.example" and
 * "_dmarc.a.example", or `name` itself if it has no service labels. Service labels are the first
 * one or two, short, of '_' and letters, digits and '-'. Points into `name` (normal form).
 */
const char *domain_service_host(const char *name);
