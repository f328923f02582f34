/*
 * dnsrecord - parses TXT, MX and SRV records of a reply; see dnsrecord.h.
 *
 * Theory of operation. The answer section is walked once. Each record's owner is compared with the
 * wanted name; an alias changes that name. The data of a wanted record is parsed field by field and
 * copied into the set; it must end exactly where the record's length says.
 *
 * Hostile input: the whole reply. net/dnswire bounds each step, and at most DNSRECORD_WALKED_MAX
 * records are walked, so a reply of 64 KiB takes bounded time.
 */
#include "net/dnsrecord.h"

#include "base/cleanup.h"
#include "net/dns.h"
#include "net/dnswire.h"

#include <string.h>

#define AUTHORITIES_AND_EXTRAS_BYTES 4u /* their counts in the header */
#define TYPE_AND_CLASS_BYTES 4u
#define CLASS_IN 1u
#define TYPE_CNAME 5u
#define FLAG_RESPONSE 0x8000u
#define FLAG_TRUNCATED 0x0200u

/* A record up to its data, where the reader then is. */
struct head {
	enum dnswire_kind owner_kind;
	char owner[DOMAIN_MAX_BYTES + 1];
	uint16_t type, class;
	uint32_t ttl_s;
	size_t end; /* of its data */
};

static bool read_head(struct dnswire_reader *r, struct head *h)
{
	uint16_t data_len = 0;

	if (!dnswire_read_name(r, DNSWIRE_COMPRESSED, h->owner, &h->owner_kind) ||
	    !dnswire_read_u16(r, &h->type) || !dnswire_read_u16(r, &h->class) ||
	    !dnswire_read_u32(r, &h->ttl_s) || !dnswire_read_u16(r, &data_len) ||
	    r->len - r->at < data_len)
		return false;
	h->end = r->at + data_len;
	return true;
}

/* Copies one or more length-prefixed strings. */
static bool copy_texts(struct dnswire_reader *r, size_t end, struct dnswire_writer *w)
{
	if (r->at == end)
		return false;
	while (r->at < end) {
		uint8_t len = r->bytes[r->at];

		if (end - r->at < 1u + len)
			return false;
		dnswire_write(w, &len, 1);
		dnswire_write(w, r->bytes + r->at + 1, len);
		r->at += 1u + len;
	}
	return true;
}

/*
 * Copies `numbers` numbers and a name. The root is valid here: "no such service" in SRV, "no mail"
 * in MX. *ret_nobody: no host can have this name.
 */
static bool copy_target(struct dnswire_reader *r, size_t end, unsigned numbers,
			struct dnswire_writer *w, bool *ret_nobody)
{
	char name[DOMAIN_MAX_BYTES + 1];
	enum dnswire_kind kind = DNSWIRE_NOBODY;

	for (unsigned i = 0; i < numbers; i++) {
		uint16_t number = 0;

		if (!dnswire_read_u16(r, &number))
			return false;
		dnswire_write_u16(w, number);
	}
	if (!dnswire_read_name(r, DNSWIRE_COMPRESSED, name, &kind) || r->at != end)
		return false;
	*ret_nobody = kind == DNSWIRE_NOBODY;
	if (!*ret_nobody)
		dnswire_write_name(w, name);
	return true;
}

/* The supported types. */
static const struct type {
	uint16_t type;
	const char *word;
	unsigned numbers; /* before the name; 0: strings instead */
} types[] = {
	{ DNS_TYPE_MX, "MX", 1 },
	{ DNS_TYPE_TXT, "TXT", 0 },
	{ DNS_TYPE_SRV, "SRV", 3 },
};

static const struct type *find_type(uint16_t type)
{
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

const char *dnsrecord_type_word(uint16_t type)
{
	const struct type *t = find_type(type);

	return t ? t->word : NULL;
}

static bool add_record(struct dnswire_reader *r, const struct head *h, struct dnsrecord_set *set)
{
	const struct type *t = find_type(h->type);
	size_t start = set->count ? set->end[set->count - 1] : 0;
	struct dnswire_writer w = { .bytes = set->bytes, .len = start, .max = sizeof(set->bytes) };
	bool is_nobody = false;

	if (!t || set->count == DNSRECORD_COUNT_MAX)
		return false;
	if (t->numbers ? !copy_target(r, h->end, t->numbers, &w, &is_nobody)
		       : !copy_texts(r, h->end, &w))
		return false;
	if (is_nobody)
		return true;
	set->end[set->count++] = (uint16_t)w.len;
	return !w.is_full;
}

/* The name being searched for while the reply is walked. */
struct wanted {
	char name[DOMAIN_MAX_BYTES + 1];
	unsigned aliases; /* followed so far */
};

static bool follow_alias(struct dnswire_reader *r, const struct head *h, struct wanted *wanted)
{
	enum dnswire_kind kind = DNSWIRE_NOBODY;

	return ++wanted->aliases <= DNSRECORD_ALIASES_MAX &&
	       dnswire_read_name(r, DNSWIRE_COMPRESSED, wanted->name, &kind) && r->at == h->end &&
	       kind == DNSWIRE_HOST;
}

static bool use_record(struct dnswire_reader *r, const struct head *h, struct wanted *wanted,
		       struct dnsrecord_set *set)
{
	if (h->owner_kind != DNSWIRE_HOST || strcmp(h->owner, wanted->name) != 0 ||
	    h->class != CLASS_IN || (h->type != TYPE_CNAME && h->type != set->type))
		return true; /* not relevant */
	if (h->ttl_s < set->ttl_s)
		set->ttl_s = h->ttl_s;
	return h->type == TYPE_CNAME ? follow_alias(r, h, wanted) : add_record(r, h, set);
}

static bool walk(struct dnswire_reader *r, unsigned count, const char *name,
		 struct dnsrecord_set *set)
{
	struct wanted wanted = { .aliases = 0 };

	memcpy(wanted.name, name, strlen(name) + 1);
	for (; count > 0; count--) {
		struct head h;

		if (!read_head(r, &h) || !use_record(r, &h, &wanted, set))
			return false;
		r->at = h.end;
	}
	return true;
}

/* Skips header and question; c-ares has compared both with its query. */
static bool read_start(struct dnswire_reader *r, uint16_t *ret_answers)
{
	char ignored[DOMAIN_MAX_BYTES + 1];
	enum dnswire_kind kind;
	uint16_t id, flags, questions;

	return dnswire_read_u16(r, &id) && dnswire_read_u16(r, &flags) &&
	       dnswire_read_u16(r, &questions) && dnswire_read_u16(r, ret_answers) &&
	       dnswire_skip(r, AUTHORITIES_AND_EXTRAS_BYTES) && (flags & FLAG_RESPONSE) &&
	       !(flags & FLAG_TRUNCATED) && questions == 1 &&
	       *ret_answers <= DNSRECORD_WALKED_MAX &&
	       dnswire_read_name(r, DNSWIRE_PLAIN, ignored, &kind) &&
	       dnswire_skip(r, TYPE_AND_CLASS_BYTES);
}

bool dnsrecord_parse(const uint8_t *reply, size_t len, const char *name, uint16_t type,
		     struct dnsrecord_set *ret)
{
	struct dnswire_reader r = { .bytes = reply, .len = len };
	uint16_t answers = 0;

	ret->type = type;
	ret->ttl_s = UINT32_MAX;
	ret->count = 0;
	return read_start(&r, &answers) && walk(&r, answers, name, ret);
}
