/*
 * dns - the wire format of DNS; see dns.h.
 *
 * Hostile input: every byte of a query. Lengths are checked against what is left before each
 * step; the walk only ever goes forward, so its work is bounded by the size of the packet.
 */
#include "net/dns.h"

#include "base/cleanup.h"

#include <string.h>

#define HEADER_BYTES 12u
#define NAME_MAX_BYTES 255u
#define UDP_MIN_BYTES 512u
#define CLASS_IN 1u
#define TYPE_OPT 41u
#define FLAG_RESPONSE 0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RECURSION_DESIRED 0x0100u
#define FLAG_RECURSION_AVAILABLE 0x0080u
#define POINTER_TO_QUESTION 0xc00cu
#define EXTRA_RECORDS_MAX 4u

struct reader {
	const uint8_t *bytes;
	size_t len, at;
};

static bool read_u16(struct reader *r, uint16_t *ret)
{
	if (r->len - r->at < 2)
		return false;
	*ret = (uint16_t)(r->bytes[r->at] << 8 | r->bytes[r->at + 1]);
	r->at += 2;
	return true;
}

static bool skip(struct reader *r, size_t count)
{
	if (r->len - r->at < count)
		return false;
	r->at += count;
	return true;
}

/*
 * Labels up to the root, as text with dots. A label that has a dot of its own, or anything else
 * that no host name has, makes the name nobody's; the packet itself is still sound.
 */
static bool read_name(struct reader *r, char *out, bool *ret_has_name)
{
	char text[NAME_MAX_BYTES + 1];
	size_t start = r->at, len = 0;
	struct domain_problem ignored;
	bool has_dot = false;

	for (;;) {
		uint8_t label;

		if (r->at == r->len || r->at - start >= NAME_MAX_BYTES)
			return false;
		label = r->bytes[r->at++];
		if (label == 0)
			break;
		if (label > DOMAIN_LABEL_MAX_BYTES || r->len - r->at < label ||
		    len + label + 1 > NAME_MAX_BYTES)
			return false;
		if (len > 0)
			text[len++] = '.';
		has_dot = has_dot || memchr(r->bytes + r->at, '.', label);
		memcpy(text + len, r->bytes + r->at, label);
		len += label;
		r->at += label;
	}
	*ret_has_name = len > 0 && !has_dot && text[len - 1] != '.' &&
			domain_normalize(text, len, DOMAIN_WIRE, out, &ignored);
	return true;
}

static bool read_question(struct reader *r, struct dns_query *q)
{
	size_t start = r->at;
	uint16_t class;

	if (!read_name(r, q->name, &q->has_name) || !read_u16(r, &q->type) || !read_u16(r, &class))
		return false;
	q->is_internet = class == CLASS_IN;
	q->question_len = (uint16_t)(r->at - start);
	return true;
}

/* Of the extra records only EDNS (RFC 6891) matters: how long an answer may be. */
static bool read_extra(struct reader *r, struct dns_query *q)
{
	char ignored[DOMAIN_MAX_BYTES + 1];
	bool has_name = false;
	uint16_t type, class, data_len;

	if (!read_name(r, ignored, &has_name) || !read_u16(r, &type) || !read_u16(r, &class) ||
	    !skip(r, 4) || !read_u16(r, &data_len) || !skip(r, data_len))
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
	struct reader r = { .bytes = bytes, .len = len };
	struct dns_query *q = ret;
	uint16_t flags, questions, answers, authorities, extras;

	*q = (struct dns_query){ .udp_max_bytes = UDP_MIN_BYTES };
	*ret_rcode = DNS_FORMAT_ERROR;
	if (len > DNS_QUERY_MAX_BYTES || !read_u16(&r, &q->id) || !read_u16(&r, &flags) ||
	    !read_u16(&r, &questions) || !read_u16(&r, &answers) || !read_u16(&r, &authorities) ||
	    !read_u16(&r, &extras) || (flags & FLAG_RESPONSE))
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

struct writer {
	uint8_t *bytes;
	size_t len, max;
	bool is_full;
};

static void write_bytes(struct writer *w, const void *bytes, size_t len)
{
	if (w->is_full || w->max - w->len < len) {
		w->is_full = true;
		return;
	}
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static void write_u16(struct writer *w, unsigned value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	write_bytes(w, bytes, sizeof(bytes));
}

static void write_name(struct writer *w, const char *name)
{
	static const uint8_t root;

	for (const char *label = name; *label;) {
		uint8_t len = (uint8_t)strcspn(label, ".");

		write_bytes(w, &len, 1);
		write_bytes(w, label, len);
		label += len + (label[len] == '.');
	}
	write_bytes(w, &root, 1);
}

static void write_record(struct writer *w, unsigned type, uint32_t ttl_s, size_t data_len)
{
	write_u16(w, POINTER_TO_QUESTION);
	write_u16(w, type);
	write_u16(w, CLASS_IN);
	write_u16(w, ttl_s >> 16);
	write_u16(w, ttl_s & 0xffff);
	write_u16(w, (unsigned)data_len);
}

static void write_answer(struct writer *w, const struct dns_answer *a)
{
	if (a->kind == DNS_ADDRESS) {
		write_record(w, a->address.bits == 32 ? DNS_TYPE_A : DNS_TYPE_AAAA, a->ttl_s,
			     a->address.bits / 8u);
		write_bytes(w, a->address.bytes, a->address.bits / 8u);
	}
	if (a->kind == DNS_POINTER) {
		write_record(w, DNS_TYPE_PTR, a->ttl_s, strlen(a->pointer) + 2);
		write_name(w, a->pointer);
	}
}

static void write_edns(struct writer *w)
{
	const uint8_t root = 0;

	write_bytes(w, &root, 1);
	write_u16(w, TYPE_OPT);
	write_u16(w, DNS_MESSAGE_MAX_BYTES);
	write_u16(w, 0);
	write_u16(w, 0);
	write_u16(w, 0);
}

static void write_header(struct writer *w, const struct dns_query *q, unsigned flags,
			 const unsigned counts[3])
{
	write_u16(w, q->id);
	write_u16(w, flags);
	write_u16(w, counts[0]);
	write_u16(w, counts[1]);
	write_u16(w, 0);
	write_u16(w, counts[2]);
}

size_t dns_answer(const uint8_t *query, const struct dns_query *q, const struct dns_answer *a,
		  size_t max_bytes, uint8_t out[DNS_MESSAGE_MAX_BYTES])
{
	struct writer w = { .bytes = out,
			    .max = max_bytes < DNS_MESSAGE_MAX_BYTES ? max_bytes
								     : DNS_MESSAGE_MAX_BYTES };
	unsigned flags = FLAG_RESPONSE | (unsigned)q->opcode << 11 | FLAG_RECURSION_AVAILABLE |
			 (q->is_recursion_desired ? FLAG_RECURSION_DESIRED : 0) | a->rcode;
	unsigned counts[3] = { q->question_len != 0, a->kind != DNS_EMPTY, q->has_edns };

	write_header(&w, q, flags, counts);
	write_bytes(&w, query + HEADER_BYTES, q->question_len);
	write_answer(&w, a);
	if (q->has_edns)
		write_edns(&w);
	if (!w.is_full)
		return w.len;
	/* too long for this asker: it comes back over TCP */
	counts[1] = counts[2] = 0;
	w.len = 0;
	w.is_full = false;
	write_header(&w, q, flags | FLAG_TRUNCATED, counts);
	write_bytes(&w, query + HEADER_BYTES, q->question_len);
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
