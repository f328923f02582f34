#pragma once
/*
 * domain - one normal form for host names.
 *
 * A name is brought into it once, where it comes in, and compared as bytes ever after: lower
 * case, no trailing dot, labels of letters, digits, '-' and '_', at most 253 bytes. Names that
 * some resolver would read as a number ("127.1", "0x7f000001") are refused, and so is every byte
 * that two programs could understand differently.
 */
#include <stdbool.h>
#include <stddef.h>

#define DOMAIN_MAX_BYTES 253u
#define DOMAIN_LABEL_MAX_BYTES 63u
#define DOMAIN_SERVICE_LABELS_MAX 2u
#define DOMAIN_SERVICE_LABEL_MAX_BYTES                                                             \
	16u /* '_' and the 15 characters of a service name, RFC 6335 */

enum domain_source {
	DOMAIN_TYPED, /* by a user: other scripts are turned into their xn-- form */
	DOMAIN_WIRE,  /* from a packet: ASCII or nothing */
};

struct domain_problem {
	size_t at;       /* byte of the text, from 0 */
	const char *why; /* static */
};

/* `out` has DOMAIN_MAX_BYTES + 1 bytes and is filled only on success. */
bool domain_normalize(const char *text, size_t len, enum domain_source source, char *out,
		      struct domain_problem *ret_problem);

/*
 * The host of a service's name: "a.example" of "_mongodb._tcp.a.example" and "_dmarc.a.example".
 * Service labels are the first one or two, of '_' and letters, digits and '-', and short. Borrowed
 * from `name` (normal form), which is returned where it has no such labels.
 */
const char *domain_service_host(const char *name);
