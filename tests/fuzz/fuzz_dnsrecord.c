/*
 * fuzz_dnsrecord - replies of name servers for the parser of records, and our answers with these.
 *
 * The first byte of an input selects the type, the rest is the reply to a question for "a.example".
 * Parsed records are within their maxima, and our own answer has exactly the same records when it
 * is parsed again.
 */
#include "fuzz.h"

#include "net/dns.h"
#include "net/dnsrecord.h"

#include <string.h>

#define TTL_S 60u

static size_t set_len(const struct dnsrecord_set *set)
{
	return set->count ? set->end[set->count - 1] : 0;
}

static void check_set(const struct dnsrecord_set *set, uint16_t type)
{
	size_t start = 0;

	FUZZ_CHECK(set->type == type);
	FUZZ_CHECK(set->count <= DNSRECORD_COUNT_MAX);
	FUZZ_CHECK(set_len(set) <= DNSRECORD_BYTES_MAX);
	for (unsigned i = 0; i < set->count; i++) {
		FUZZ_CHECK(set->end[i] > start);
		start = set->end[i];
	}
}

static void check_answer(const struct dnsrecord_set *set, size_t max_bytes)
{
	uint8_t query[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\0\0\1";
	const struct dns_answer a = { .kind = DNS_RECORDS, .records = set, .ttl_s = TTL_S };
	uint8_t out[DNS_STREAM_MAX_BYTES];
	struct dnsrecord_set again;
	enum dns_rcode rcode;
	struct dns_query q;
	size_t len;

	query[24] = (uint8_t)set->type;
	FUZZ_CHECK(dns_parse(query, sizeof(query) - 1, &q, &rcode) == DNS_QUERY);
	len = dns_answer(query, &q, &a, max_bytes, out);
	FUZZ_CHECK(len <= max_bytes);
	if (out[2] & 2) { /* truncated */
		FUZZ_CHECK(max_bytes < DNS_STREAM_MAX_BYTES);
		return;
	}
	FUZZ_CHECK(dnsrecord_parse(out, len, "a.example", set->type, &again));
	FUZZ_CHECK(again.count == set->count);
	FUZZ_CHECK(set->count == 0 || again.ttl_s == TTL_S);
	FUZZ_CHECK(memcmp(again.end, set->end, set->count * sizeof(set->end[0])) == 0);
	FUZZ_CHECK(memcmp(again.bytes, set->bytes, set_len(set)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { DNS_TYPE_TXT, DNS_TYPE_MX, DNS_TYPE_SRV };
	struct dnsrecord_set set;
	uint16_t type;

	if (size < 1)
		return 0;
	type = types[data[0] % 3];
	if (!dnsrecord_parse(data + 1, size - 1, "a.example", type, &set))
		return 0;
	check_set(&set, type);
	check_answer(&set, DNS_STREAM_MAX_BYTES);
	check_answer(&set, 512);
	return 0;
}
