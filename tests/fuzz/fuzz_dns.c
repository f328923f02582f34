/*
 * fuzz_dns - packets for the name server's parser, and their answers.
 *
 * The first byte of an input selects the maximum size of the answer, the rest is the packet. Each
 * kind of answer to it must have the query's id, fit, and repeat the question byte for byte.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "net/dns.h"
#include "net/dnsrecord.h"

#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 12u

static unsigned read16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static void check_query(const uint8_t *bytes, size_t len, const struct dns_query *q)
{
	char normal[DOMAIN_MAX_BYTES + 1];
	struct domain_problem problem;

	FUZZ_CHECK(HEADER_BYTES + q->question_len <= len);
	FUZZ_CHECK(q->question_len >= 5);
	FUZZ_CHECK(q->id == read16(bytes));
	FUZZ_CHECK(q->udp_max_bytes >= 512);
	FUZZ_CHECK(q->opcode == 0);
	if (!q->has_name)
		return;
	FUZZ_CHECK(domain_normalize(q->name, strlen(q->name), DOMAIN_WIRE, normal, &problem));
	FUZZ_CHECK(strcmp(normal, q->name) == 0);
	/* the labels and their lengths, the type and the class */
	FUZZ_CHECK(q->question_len == strlen(q->name) + 2 + 4);
}

/* Checks a record whose name is a pointer to the question, or the root. */
static size_t check_record(const uint8_t *bytes, size_t at, size_t len)
{
	if (bytes[at] == 0) {
		at += 1;
	} else {
		FUZZ_CHECK(at + 2 <= len && read16(bytes + at) == 0xc00c);
		at += 2;
	}
	FUZZ_CHECK(at + 10 <= len);
	at += 10 + read16(bytes + at + 8);
	FUZZ_CHECK(at <= len);
	return at;
}

static void check_answer(const uint8_t *query, const struct dns_query *q,
			 const struct dns_answer *a, size_t max)
{
	uint8_t out[DNS_STREAM_MAX_BYTES];
	size_t len = dns_answer(query, q, a, max, out);
	size_t at = HEADER_BYTES + q->question_len;
	struct dns_query ignored;
	enum dns_rcode rcode;
	bool is_cut;

	FUZZ_CHECK(len <= max && len <= sizeof(out));
	FUZZ_CHECK(len >= at);
	FUZZ_CHECK(dns_parse(out, len, &ignored, &rcode) ==
		   DNS_DROP); /* because it is a response */
	FUZZ_CHECK(read16(out) == q->id);
	FUZZ_CHECK((out[3] & 0xf) == a->rcode);
	FUZZ_CHECK(read16(out + 4) == (q->question_len != 0));
	FUZZ_CHECK(memcmp(out + HEADER_BYTES, query + HEADER_BYTES, q->question_len) == 0);
	is_cut = out[2] & 2;
	FUZZ_CHECK(read16(out + 6) == (!is_cut && a->kind != DNS_EMPTY));
	FUZZ_CHECK(read16(out + 8) == 0);
	FUZZ_CHECK(read16(out + 10) == (!is_cut && q->has_edns));
	for (unsigned i = read16(out + 6) + read16(out + 10); i > 0; i--)
		at = check_record(out, at, len);
	FUZZ_CHECK(at == len);
}

static void check_answers(const uint8_t *bytes, const struct dns_query *q, enum dns_rcode rcode,
			  size_t max)
{
	static const char longest[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	static const struct dnsrecord_set text = {
		.type = DNS_TYPE_TXT, .count = 1, .end = { 6 }, .bytes = "\5hello"
	};
	const struct dns_answer answers[] = {
		{ .rcode = rcode },
		{ .rcode = DNS_NAME_ERROR },
		{ .kind = DNS_ADDRESS, .address = { 32, { 198, 18, 1, 0 } }, .ttl_s = UINT32_MAX },
		{ .kind = DNS_ADDRESS, .address = { 128, { [15] = 1 } } },
		{ .kind = DNS_POINTER, .pointer = "a.example" },
		{ .kind = DNS_POINTER, .pointer = longest },
		{ .kind = DNS_RECORDS, .records = &text },
	};

	_Static_assert(sizeof(longest) == DOMAIN_MAX_BYTES + 1, "the longest name");
	for (size_t i = 0; i < COUNT_OF(answers); i++)
		check_answer(bytes, q, &answers[i], max);
}

static void check_reverse(const char *name)
{
	char text[64];
	struct address a;

	if (!dns_parse_reverse(name, &a))
		return;
	FUZZ_CHECK(a.bits == 32);
	(void)snprintf(text, sizeof(text), "%u.%u.%u.%u.in-addr.arpa", a.bytes[3], a.bytes[2],
		       a.bytes[1], a.bytes[0]);
	FUZZ_CHECK(strcmp(text, name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum dns_rcode rcode = DNS_NO_ERROR;
	enum dns_verdict verdict;
	struct dns_query q;
	size_t room;

	if (size < 1)
		return 0;
	verdict = dns_parse(data + 1, size - 1, &q, &rcode);
	if (verdict == DNS_DROP)
		return 0;
	FUZZ_CHECK(size - 1 <= DNS_QUERY_MAX_BYTES);
	if (verdict == DNS_QUERY) {
		check_query(data + 1, size - 1, &q);
		check_reverse(q.has_name ? q.name : "");
		rcode = DNS_NO_ERROR;
	}
	FUZZ_CHECK(verdict == DNS_QUERY || rcode != DNS_NO_ERROR);
	room = q.udp_max_bytes + data[0];
	check_answers(data + 1, &q, rcode, room);
	return 0;
}
