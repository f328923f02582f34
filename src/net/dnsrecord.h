#pragma once
/*
 * dnsrecord - TXT, MX and SRV records of one name, parsed from a name server's reply.
 *
 * dnsrecord_parse() parses a reply and rebuilds the data of each record from its fields: strings,
 * numbers, and names in normal form. No other bytes of the reply reach a sandbox. No system calls.
 *
 * An alias (CNAME) of the name is followed within the reply, in the order in which servers write
 * them; the records then count as the name's own. A record that points to an impossible host name
 * (control characters, a number) is left out. A reply that is malformed or exceeds a maximum is
 * refused as a whole, because half of a policy in TXT would be another policy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNSRECORD_COUNT_MAX 128u
#define DNSRECORD_BYTES_MAX 8192u /* of the data of all records of a set */
#define DNSRECORD_WALKED_MAX 512u /* records in a reply, of any type */
#define DNSRECORD_ALIASES_MAX 16u

struct dnsrecord_set {
	uint16_t type;
	uint32_t ttl_s; /* the minimum of all records used; UINT32_MAX: none */
	unsigned count;
	uint16_t end[DNSRECORD_COUNT_MAX]; /* end offset of each record's data in `bytes` */
	uint8_t bytes[DNSRECORD_BYTES_MAX];
};

/* "TXT", "MX" or "SRV"; NULL: unsupported type. */
const char *dnsrecord_type_word(uint16_t type);

/* `name` is in normal form. An empty set is a success; after a failure *ret is undefined. */
bool dnsrecord_parse(const uint8_t *reply, size_t len, const char *name, uint16_t type,
		     struct dnsrecord_set *ret);
