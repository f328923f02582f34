/*
 * dns - the wire format of DNS; see dns.h.
 *
 * Hostile input: every byte of a query. net/dnswire parses it, forward only and without following
 * pointers, so the work is bounded by the packet's size.
 */
#include "net/dns.h"

#include "net/dnsrecord.h"
#include "net/dnswire.h"

#include <string.h>

#define HEADER_BYTES 12u
#define UDP_MIN_BYTES 512u
#define CLASS_IN 1u
#define TYPE_OPT 41u
#define FLAG_RESPONSE 0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RECURSION_DESIRED 0x0100u
#define FLAG_RECURSION_AVAILABLE 0x0080u
#define POINTER_TO_QUESTION 0xc00cu
#define EXTRA_RECORDS_MAX 4u
#define QUESTION_MAX_BYTES (DNSWIRE_NAME_MAX_BYTES + 4u)
#define RECORD_HEAD_BYTES 12u
#define EDNS_BYTES 11u

_Static_assert(HEADER_BYTES + QUESTION_MAX_BYTES + DNSRECORD_COUNT_MAX * RECORD_HEAD_BYTES +
			       DNSRECORD_BYTES_MAX + EDNS_BYTES <=
		       DNS_STREAM_MAX_BYTES,
	       "every set of records fits an answer over TCP");

static bool read_question(struct dnswire_reader *r, struct dns_query *q)
{
	size_t start = r->at;
	enum dnswire_kind kind = DNSWIRE_NOBODY;
	uint16_t class;

	if (!dnswire_read_name(r, DNSWIRE_PLAIN, q->name, &kind) ||
	    !dnswire_read_u16(r, &q->type) || !dnswire_read_u16(r, &class))
		return false;
	q->has_name = kind == DNSWIRE_HOST;
	q->is_internet = class == CLASS_IN;
	q->question_len = (uint16_t)(r->at - start);
	return true;
}

/* Of the additional records only EDNS (RFC 6891) matters: the maximum size of the answer. */
static bool read_extra(struct dnswire_reader *r, struct dns_query *q)
{
	char ignored[DOMAIN_MAX_BYTES + 1];
	enum dnswire_kind kind = DNSWIRE_NOBODY;
	uint16_t type, class, data_len;

	if (!dnswire_read_name(r, DNSWIRE_PLAIN, ignored, &kind) || !dnswire_read_u16(r, &type) ||
	    !dnswire_read_u16(r, &class) || !dnswire_skip(r, 4) ||
	    !dnswire_read_u16(r, &data_len) || !dnswire_skip(r, data_len))
		return false;
	if (type != TYPE_OPT)
		return true;
	if (q->has_edns)
		return false;
	q->has_edns = true;
	q->udp_max_bytes = class > UDP_MIN_BYTES ? class : UDP_MIN_BYTES;
	return true;
}

enum dns_verdict dns_parse(const uint8_t *bytes, size_t len, struct dns_query *ret,
			   enum dns_rcode *ret_rcode)
{
	struct dnswire_reader r = { .bytes = bytes, .len = len };
	struct dns_query *q = ret;
	uint16_t flags, questions, answers, authorities, extras;

	*q = (struct dns_query){ .udp_max_bytes = UDP_MIN_BYTES };
	*ret_rcode = DNS_FORMAT_ERROR;
	if (len > DNS_QUERY_MAX_BYTES || !dnswire_read_u16(&r, &q->id) ||
	    !dnswire_read_u16(&r, &flags) || !dnswire_read_u16(&r, &questions) ||
	    !dnswire_read_u16(&r, &answers) || !dnswire_read_u16(&r, &authorities) ||
	    !dnswire_read_u16(&r, &extras) || (flags & FLAG_RESPONSE))
		return DNS_DROP;
	q->opcode = (uint8_t)(flags >> 11 & 0xf);
	q->is_recursion_desired = flags & FLAG_RECURSION_DESIRED;
	if (q->opcode != 0) {
		*ret_rcode = DNS_NOT_IMPLEMENTED;
		return DNS_WRONG;
	}
	if (questions != 1 || answers || authorities || extras > EXTRA_RECORDS_MAX ||
	    !read_question(&r, q)) {
		q->question_len = 0;
		return DNS_WRONG;
	}
	for (unsigned i = 0; i < extras; i++)
		if (!read_extra(&r, q))
			return DNS_WRONG;
	return r.at == len ? DNS_QUERY : DNS_WRONG;
}

/* ---- answers ---- */

static void write_record(struct dnswire_writer *w, unsigned type, uint32_t ttl_s, size_t data_len)
{
	dnswire_write_u16(w, POINTER_TO_QUESTION);
	dnswire_write_u16(w, type);
	dnswire_write_u16(w, CLASS_IN);
	dnswire_write_u16(w, ttl_s >> 16);
	dnswire_write_u16(w, ttl_s & 0xffff);
	dnswire_write_u16(w, (unsigned)data_len);
}

static void write_records(struct dnswire_writer *w, const struct dnsrecord_set *set, uint32_t ttl_s)
{
	size_t start = 0;

	for (unsigned i = 0; i < set->count; i++) {
		write_record(w, set->type, ttl_s, set->end[i] - start);
		dnswire_write(w, set->bytes + start, set->end[i] - start);
		start = set->end[i];
	}
}

static void write_answer(struct dnswire_writer *w, const struct dns_answer *a)
{
	if (a->kind == DNS_ADDRESS) {
		write_record(w, a->address.bits == 32 ? DNS_TYPE_A : DNS_TYPE_AAAA, a->ttl_s,
			     a->address.bits / 8u);
		dnswire_write(w, a->address.bytes, a->address.bits / 8u);
	}
	if (a->kind == DNS_POINTER) {
		write_record(w, DNS_TYPE_PTR, a->ttl_s, strlen(a->pointer) + 2);
		dnswire_write_name(w, a->pointer);
	}
	if (a->kind == DNS_RECORDS)
		write_records(w, a->records, a->ttl_s);
}

static unsigned count_records(const struct dns_answer *a)
{
	return a->kind == DNS_RECORDS ? a->records->count : a->kind != DNS_EMPTY;
}

static void write_edns(struct dnswire_writer *w)
{
	const uint8_t root = 0;

	dnswire_write(w, &root, 1);
	dnswire_write_u16(w, TYPE_OPT);
	dnswire_write_u16(w, DNS_MESSAGE_MAX_BYTES);
	dnswire_write_u16(w, 0);
	dnswire_write_u16(w, 0);
	dnswire_write_u16(w, 0);
}

static void write_header(struct dnswire_writer *w, const struct dns_query *q, unsigned flags,
			 const unsigned counts[3])
{
	dnswire_write_u16(w, q->id);
	dnswire_write_u16(w, flags);
	dnswire_write_u16(w, counts[0]);
	dnswire_write_u16(w, counts[1]);
	dnswire_write_u16(w, 0);
	dnswire_write_u16(w, counts[2]);
}

size_t dns_answer(const uint8_t *query, const struct dns_query *q, const struct dns_answer *a,
		  size_t max_bytes, uint8_t out[DNS_STREAM_MAX_BYTES])
{
	struct dnswire_writer w = { .bytes = out,
				    .max = max_bytes < DNS_STREAM_MAX_BYTES
						   ? max_bytes
						   : DNS_STREAM_MAX_BYTES };
	unsigned flags = FLAG_RESPONSE | (unsigned)q->opcode << 11 | FLAG_RECURSION_AVAILABLE |
			 (q->is_recursion_desired ? FLAG_RECURSION_DESIRED : 0) | a->rcode;
	unsigned counts[3] = { q->question_len != 0, count_records(a), q->has_edns };

	write_header(&w, q, flags, counts);
	dnswire_write(&w, query + HEADER_BYTES, q->question_len);
	write_answer(&w, a);
	if (q->has_edns)
		write_edns(&w);
	if (!w.is_full)
		return w.len;
	/* too long for this client: it retries over TCP */
	counts[1] = counts[2] = 0;
	w.len = 0;
	w.is_full = false;
	write_header(&w, q, flags | FLAG_TRUNCATED, counts);
	dnswire_write(&w, query + HEADER_BYTES, q->question_len);
	return w.len;
}

bool dns_parse_reverse(const char *name, struct address *ret)
{
	static const char suffix[] = ".in-addr.arpa";
	char digits[sizeof("255.255.255.255")];
	size_t len = strlen(name);
	struct address a;

	if (len < sizeof(suffix) || len - (sizeof(suffix) - 1) >= sizeof(digits))
		return false;
	len -= sizeof(suffix) - 1;
	if (strcmp(name + len, suffix) != 0)
		return false;
	memcpy(digits, name, len);
	digits[len] = '\0';
	if (!address_parse(digits, &a) || a.bits != 32)
		return false;
	*ret = (struct address){ .bits = 32 };
	for (int i = 0; i < 4; i++)
		ret->bytes[3 - i] = a.bytes[i];
	return true;
}
