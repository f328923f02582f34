#pragma once
/*
 * dns - the wire format of DNS, as far as a server with short answers needs it.
 *
 * dns_parse() parses a query; its result is validated and in normal form. dns_answer() writes the
 * answer to it. Neither makes system calls. A question may not contain compression pointers, so
 * parsing cannot loop.
 */
#include "policy/address.h"
#include "policy/domain.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dnsrecord_set;

#define DNS_MESSAGE_MAX_BYTES 1232u /* a packet of ours; fits every path without fragmentation */
#define DNS_STREAM_MAX_BYTES 10240u /* an answer over TCP; large enough for every set of records   \
				     */
#define DNS_QUERY_MAX_BYTES 4096u   /* longer messages are not queries */

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_PTR = 12,
	DNS_TYPE_MX = 15,
	DNS_TYPE_TXT = 16,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_SRV = 33,
};

enum dns_rcode {
	DNS_NO_ERROR = 0,
	DNS_FORMAT_ERROR = 1,
	DNS_SERVER_FAILURE = 2,
	DNS_NAME_ERROR = 3, /* NXDOMAIN */
	DNS_NOT_IMPLEMENTED = 4,
};

struct dns_query {
	uint16_t id;
	uint16_t type;
	bool is_recursion_desired;
	bool has_name; /* false: not a possible host name */
	bool is_internet;
	bool has_edns;
	uint8_t opcode;
	uint16_t udp_max_bytes; /* maximum size that the client accepts */
	uint16_t question_len;  /* 0: the question could not be parsed */
	char name[DOMAIN_MAX_BYTES + 1];
};

enum dns_verdict {
	DNS_QUERY, /* answer normally */
	DNS_WRONG, /* answer with *ret_rcode */
	DNS_DROP,  /* not a query: ignore */
};

enum dns_verdict dns_parse(const uint8_t *bytes, size_t len, struct dns_query *ret,
			   enum dns_rcode *ret_rcode);

enum dns_answer_kind { DNS_EMPTY, DNS_ADDRESS, DNS_POINTER, DNS_RECORDS };

struct dns_answer {
	enum dns_rcode rcode;
	enum dns_answer_kind kind;
	struct address address; /* DNS_ADDRESS */
	const char *pointer;    /* DNS_POINTER: a name in normal form */
	const struct dnsrecord_set *records;
	uint32_t ttl_s;
};

/*
 * `query` is the message that q was parsed from; its question is copied byte for byte. An answer
 * longer than max_bytes has no records and is marked as truncated: the client retries over TCP.
 */
size_t dns_answer(const uint8_t *query, const struct dns_query *q, const struct dns_answer *a,
		  size_t max_bytes, uint8_t out[DNS_STREAM_MAX_BYTES]);

/* "4.3.2.1.in-addr.arpa" -> 1.2.3.4 */
bool dns_parse_reverse(const char *name, struct address *ret);
