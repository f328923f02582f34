#pragma once
/*
 * dnsrecord - TXT, MX and SRV records of one name, out of the reply of a name server.
 *
 * dnsrecord_parse() takes a reply apart and builds the data of each record anew from what it
 * understood: strings, numbers, and names in normal form. No byte of the reply goes to a sandbox
 * that was not part of such a field. Pure.
 *
 * An alias (CNAME) of the name is followed within the reply, in the order in which servers write
 * them; the records then count as the name's own. A record that points to a name that no host can
 * have (control characters, a number) is left out. A reply that is malformed or beyond a maximum is
 * refused as a whole: half of a policy in TXT would be another policy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNSRECORD_COUNT_MAX 128u
#define DNSRECORD_BYTES_MAX 8192u /* of the data of all records of a set */
#define DNSRECORD_WALKED_MAX 512u /* records of a reply, of whatever type */
#define DNSRECORD_ALIASES_MAX 16u

struct dnsrecord_set {
	uint16_t type;
	uint32_t ttl_s; /* the least of all that were used; UINT32_MAX: there were none */
	unsigned count;
	uint16_t end[DNSRECORD_COUNT_MAX]; /* of each record's data in `bytes` */
	uint8_t bytes[DNSRECORD_BYTES_MAX];
};

/* "TXT", "MX" or "SRV"; NULL: not a type that is answered. */
const char *dnsrecord_type_word(uint16_t type);

/* `name` is in normal form. A set of none is a success; after a failure *ret holds nothing of use.
 */
bool dnsrecord_parse(const uint8_t *reply, size_t len, const char *name, uint16_t type,
		     struct dnsrecord_set *ret);
