/* test_dnsrecord - records of replies are parsed correctly, and hostile replies are refused. */
#include "unit.h"

#include "base/mem.h"
#include "net/dns.h"
#include "net/dnsrecord.h"
#include "net/dnswire.h"

#include <stdio.h>

#define HEADER_BYTES 12u
#define TYPE_CNAME 5u
#define POINTER_TO_NAME 0xc00cu
#define REPLY_MAX_BYTES 65535u

/* A reply being built; `data` is the position of the open record's data length. */
struct reply {
	uint8_t bytes[REPLY_MAX_BYTES];
	struct dnswire_writer w;
	size_t data;
};

static void set16(struct reply *p, size_t at, unsigned value)
{
	p->bytes[at] = (uint8_t)(value >> 8);
	p->bytes[at + 1] = (uint8_t)value;
}

static void begin(struct reply *p, const char *name, unsigned type, unsigned answers)
{
	p->w = (struct dnswire_writer){ .bytes = p->bytes, .max = sizeof(p->bytes) };
	dnswire_write_u16(&p->w, 0xbeef);
	dnswire_write_u16(&p->w, 0x8180);
	dnswire_write_u16(&p->w, 1);
	dnswire_write_u16(&p->w, answers);
	dnswire_write(&p->w, "\0\0\0\0", 4);
	dnswire_write_name(&p->w, name);
	dnswire_write_u16(&p->w, type);
	dnswire_write_u16(&p->w, 1);
}

/* Writes the rest of a record's head, after its owner. */
static void open_data(struct reply *p, unsigned type, unsigned ttl_s)
{
	dnswire_write_u16(&p->w, type);
	dnswire_write_u16(&p->w, 1);
	dnswire_write_u16(&p->w, ttl_s >> 16);
	dnswire_write_u16(&p->w, ttl_s & 0xffff);
	p->data = p->w.len;
	dnswire_write_u16(&p->w, 0);
}

static void close_data(struct reply *p)
{
	set16(p, p->data, (unsigned)(p->w.len - p->data - 2));
}

static void open_record(struct reply *p, unsigned type, unsigned ttl_s)
{
	dnswire_write_u16(&p->w, POINTER_TO_NAME);
	open_data(p, type, ttl_s);
}

static void add_text(struct reply *p, const char *text)
{
	uint8_t len = (uint8_t)strlen(text);

	dnswire_write(&p->w, &len, 1);
	dnswire_write(&p->w, text, len);
}

static bool parse(const struct reply *p, const char *name, uint16_t type, struct dnsrecord_set *ret)
{
	/* a copy of exactly its length, so that a sanitizer detects reads beyond it */
	cleanup_free uint8_t *exact = mem_alloc(p->w.len);

	memcpy(exact, p->bytes, p->w.len);
	return dnsrecord_parse(exact, p->w.len, name, type, ret);
}

static void expect_data(const struct dnsrecord_set *set, unsigned which, const void *data,
			size_t len)
{
	size_t start = which ? set->end[which - 1] : 0;

	assert_true(which < set->count);
	assert_int_equal(set->end[which] - start, len);
	assert_memory_equal(set->bytes + start, data, len);
}

#define EXPECT_DATA(set, which, literal) expect_data(set, which, literal, sizeof(literal) - 1)

/* ---- accepted replies ---- */

static void texts_come_string_by_string(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_TXT, 2);
	open_record(&p, DNS_TYPE_TXT, 300);
	add_text(&p, "v=spf1 ");
	add_text(&p, "");
	add_text(&p, "-all\x01\xff");
	close_data(&p);
	open_record(&p, DNS_TYPE_TXT, 20);
	add_text(&p, "other");
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_TXT, &set));
	assert_int_equal(set.type, DNS_TYPE_TXT);
	assert_int_equal(set.count, 2);
	assert_int_equal(set.ttl_s, 20);
	EXPECT_DATA(&set, 0, "\7v=spf1 \0\6-all\x01\xff");
	EXPECT_DATA(&set, 1, "\5other");
}

static void a_mail_exchange_has_its_preference_and_a_name_in_normal_form(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_MX, 2);
	open_record(&p, DNS_TYPE_MX, 1);
	dnswire_write_u16(&p.w, 0x010a);
	dnswire_write(&p.w, "\4MaiL\xc0\x0c", 7); /* mail.a.example */
	close_data(&p);
	open_record(&p, DNS_TYPE_MX, 1);
	dnswire_write_u16(&p.w, 0);
	dnswire_write_name(&p.w, ""); /* no mail at all, RFC 7505 */
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_MX, &set));
	assert_int_equal(set.count, 2);
	EXPECT_DATA(&set, 0, "\1\x0a\4mail\1a\7example\0");
	EXPECT_DATA(&set, 1, "\0\0\0");
}

static void a_service_has_three_numbers_and_a_target(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "_x._tcp.a.example", DNS_TYPE_SRV, 1);
	open_record(&p, DNS_TYPE_SRV, 60);
	dnswire_write_u16(&p.w, 1);
	dnswire_write_u16(&p.w, 65535);
	dnswire_write_u16(&p.w, 27017);
	dnswire_write_name(&p.w, "shard-0.b.example");
	close_data(&p);
	assert_true(parse(&p, "_x._tcp.a.example", DNS_TYPE_SRV, &set));
	assert_int_equal(set.count, 1);
	EXPECT_DATA(&set, 0, "\0\1\xff\xff\x69\x89\7shard-0\1b\7example\0");
}

static void an_alias_is_followed_and_counts_for_the_ttl(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_TXT, 3);
	open_record(&p, TYPE_CNAME, 5);
	dnswire_write_name(&p.w, "B.example");
	close_data(&p);
	dnswire_write_name(&p.w, "b.example");
	open_data(&p, DNS_TYPE_TXT, 60);
	add_text(&p, "of b");
	close_data(&p);
	open_record(&p, DNS_TYPE_TXT, 60); /* no longer the wanted name */
	add_text(&p, "of a");
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_TXT, &set));
	assert_int_equal(set.count, 1);
	assert_int_equal(set.ttl_s, 5);
	EXPECT_DATA(&set, 0, "\4of b");
}

static void records_of_other_names_types_and_classes_are_left_out(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_TXT, 4);
	dnswire_write_name(&p.w, "b.example");
	open_data(&p, DNS_TYPE_TXT, 60);
	add_text(&p, "another name");
	close_data(&p);
	open_record(&p, DNS_TYPE_A, 60);
	dnswire_write(&p.w, "\1\2\3\4", 4);
	close_data(&p);
	dnswire_write(&p.w, "\3a\tb\0", 5); /* an invalid name */
	open_data(&p, DNS_TYPE_TXT, 60);
	add_text(&p, "nobody's");
	close_data(&p);
	open_record(&p, DNS_TYPE_TXT, 60);
	set16(&p, p.data - 6, 3); /* CHAOS */
	add_text(&p, "another class");
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_TXT, &set));
	assert_int_equal(set.count, 0);
}

static void a_target_that_no_host_can_be_is_left_out(void **state)
{
	static const char *const targets[] = { "\3a\nb\0",
					       "\4a\0bc\0",
					       "\3a.b\0",
					       "\3a b\0",
					       "\4\x1b[2J\0",
					       "\1"
					       "1\1"
					       "2\0" };
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_MX, COUNT_OF(targets) + 1);
	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		open_record(&p, DNS_TYPE_MX, 60);
		dnswire_write_u16(&p.w, 7);
		dnswire_write(&p.w, targets[i], i == 5 ? 5 : (size_t)targets[i][0] + 2);
		close_data(&p);
	}
	open_record(&p, DNS_TYPE_MX, 60);
	dnswire_write_u16(&p.w, 8);
	dnswire_write_name(&p.w, "good.example");
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_MX, &set));
	assert_int_equal(set.count, 1);
	EXPECT_DATA(&set, 0, "\0\x08\4good\7example\0");
}

static void only_three_types_are_answered(void **state)
{
	(void)state;
	assert_string_equal(dnsrecord_type_word(DNS_TYPE_TXT), "TXT");
	assert_string_equal(dnsrecord_type_word(DNS_TYPE_MX), "MX");
	assert_string_equal(dnsrecord_type_word(DNS_TYPE_SRV), "SRV");
	assert_null(dnsrecord_type_word(DNS_TYPE_A));
	assert_null(dnsrecord_type_word(TYPE_CNAME));
	assert_null(dnsrecord_type_word(255));
	assert_null(dnsrecord_type_word(0));
}

/* ---- refused replies ---- */

static void a_reply_that_ends_early_is_refused(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;
	size_t whole;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_SRV, 1);
	open_record(&p, DNS_TYPE_SRV, 60);
	dnswire_write(&p.w, "\0\1\0\2\0\3", 6);
	dnswire_write_name(&p.w, "b.example");
	close_data(&p);
	whole = p.w.len;
	assert_true(parse(&p, "a.example", DNS_TYPE_SRV, &set));
	for (p.w.len = 1; p.w.len < whole; p.w.len++)
		assert_false(parse(&p, "a.example", DNS_TYPE_SRV, &set));
}

static void what_is_no_whole_reply_to_one_question_is_refused(void **state)
{
	static const struct {
		size_t at;
		unsigned value;
	} cases[] = {
		{ 2, 0x0180 }, /* a query */
		{ 2, 0x8380 }, /* truncated */
		{ 4, 0 },      /* no question */
		{ 4, 2 },      /* two */
		{ 6, 2 },      /* one answer more than there are */
		{ 6, DNSRECORD_WALKED_MAX + 1 },
		{ 6, 65535 },
	};
	struct dnsrecord_set set;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		static struct reply p;

		begin(&p, "a.example", DNS_TYPE_TXT, 1);
		open_record(&p, DNS_TYPE_TXT, 60);
		add_text(&p, "x");
		close_data(&p);
		assert_true(parse(&p, "a.example", DNS_TYPE_TXT, &set));
		set16(&p, cases[i].at, cases[i].value);
		assert_false(parse(&p, "a.example", DNS_TYPE_TXT, &set));
	}
}

static void data_must_fill_its_record(void **state)
{
	static const struct {
		uint16_t type;
		const char *data;
		size_t len;
	} cases[] = {
		{ DNS_TYPE_TXT, "", 0 },
		{ DNS_TYPE_TXT, "\2x", 2 },
		{ DNS_TYPE_TXT, "\1x\1", 3 },
		{ DNS_TYPE_MX, "\0", 1 },
		{ DNS_TYPE_MX, "\0\1", 2 },
		{ DNS_TYPE_MX, "\0\1\1a", 4 },
		{ DNS_TYPE_MX, "\0\1\1a\0x", 6 },
		{ DNS_TYPE_SRV, "\0\1\0\2\0\3", 6 },
		{ DNS_TYPE_SRV, "\0\1\0\2\0\3\1a", 8 },
		{ DNS_TYPE_SRV, "\0\1\0\2\0\3\xc0", 7 },
	};
	struct dnsrecord_set set;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		static struct reply p;

		begin(&p, "a.example", cases[i].type, 1);
		open_record(&p, cases[i].type, 60);
		dnswire_write(&p.w, cases[i].data, cases[i].len);
		close_data(&p);
		dnswire_write(&p.w, "\0\0\0\0\0\0\0\0", 8); /* followed by other bytes */
		if (parse(&p, "a.example", cases[i].type, &set))
			fail_msg("case %zu is taken", i);
	}
}

static void pointers_that_do_not_lead_backwards_are_refused(void **state)
{
	struct dnsrecord_set set;

	(void)state;
	for (unsigned forward = 0; forward <= 4; forward += 2) { /* to itself, and beyond */
		static struct reply p;

		begin(&p, "a.example", DNS_TYPE_MX, 1);
		open_record(&p, DNS_TYPE_MX, 60);
		dnswire_write_u16(&p.w, 10);
		dnswire_write_u16(&p.w, 0xc000u | (unsigned)(p.w.len + forward));
		close_data(&p);
		dnswire_write(&p.w, "\xc0\x0c\xc0\x0c\0", 5);
		assert_false(parse(&p, "a.example", DNS_TYPE_MX, &set));
	}
}

static void a_pointer_to_a_name_that_leads_back_to_it_is_refused(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_MX, 1);
	open_record(&p, DNS_TYPE_MX, 60);
	dnswire_write_u16(&p.w, 10);
	dnswire_write(&p.w, "\1x", 2); /* x.x.x. and so on */
	dnswire_write_u16(&p.w, 0xc000u | (unsigned)(p.w.len - 2));
	close_data(&p);
	assert_false(parse(&p, "a.example", DNS_TYPE_MX, &set));
}

/* Each pointer leads to the one before: the maximum is reached before the end. */
static void a_chain_of_pointers_is_bounded(void **state)
{
	struct dnsrecord_set set;

	(void)state;
	for (unsigned jumps = DNSWIRE_POINTERS_MAX; jumps <= DNSWIRE_POINTERS_MAX + 1; jumps++) {
		static struct reply p;

		begin(&p, "a.example", DNS_TYPE_TXT, 2);
		dnswire_write_name(&p.w, "c.example");
		open_data(&p, DNS_TYPE_A, 60);
		dnswire_write_u16(&p.w, POINTER_TO_NAME);
		for (unsigned i = 2; i < jumps; i++)
			dnswire_write_u16(&p.w, 0xc000u | (unsigned)(p.w.len - 2));
		close_data(&p);
		dnswire_write_u16(&p.w, 0xc000u | (unsigned)(p.w.len - 2));
		open_data(&p, DNS_TYPE_TXT, 60);
		add_text(&p, "far");
		close_data(&p);
		assert_int_equal(parse(&p, "a.example", DNS_TYPE_TXT, &set),
				 jumps <= DNSWIRE_POINTERS_MAX);
	}
}

static void a_name_that_grows_by_pointers_is_bounded(void **state)
{
	static struct reply p;
	struct dnsrecord_set set;
	size_t last = HEADER_BYTES;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_MX, 1);
	open_record(&p, DNS_TYPE_A, 60); /* not used itself, but others point into it */
	for (int i = 0; i < 5; i++) {
		size_t here = p.w.len;

		dnswire_write(&p.w, "\x3f", 1);
		for (int k = 0; k < 63; k++)
			dnswire_write(&p.w, "x", 1);
		dnswire_write_u16(&p.w, 0xc000u | (unsigned)last);
		last = here;
	}
	close_data(&p);
	assert_true(parse(&p, "a.example", DNS_TYPE_MX, &set));
	assert_int_equal(set.count, 0);
	open_record(&p, DNS_TYPE_MX, 60);
	dnswire_write_u16(&p.w, 1);
	dnswire_write_u16(&p.w, 0xc000u | (unsigned)last);
	close_data(&p);
	set16(&p, 6, 2);
	assert_false(parse(&p, "a.example", DNS_TYPE_MX, &set));
}

static void aliases_in_a_circle_end(void **state)
{
	struct dnsrecord_set set;

	(void)state;
	for (unsigned count = DNSRECORD_ALIASES_MAX; count <= DNSRECORD_ALIASES_MAX + 1; count++) {
		static struct reply p;

		begin(&p, "a.example", DNS_TYPE_TXT, count);
		for (unsigned i = 0; i < count; i++) {
			dnswire_write_name(&p.w, i % 2 ? "b.example" : "a.example");
			open_data(&p, TYPE_CNAME, 60);
			dnswire_write_name(&p.w, i % 2 ? "a.example" : "b.example");
			close_data(&p);
		}
		assert_int_equal(parse(&p, "a.example", DNS_TYPE_TXT, &set),
				 count == DNSRECORD_ALIASES_MAX);
	}
}

static void a_set_beyond_its_maximum_is_refused_as_a_whole(void **state)
{
	struct dnsrecord_set set;

	(void)state;
	for (unsigned extra = 0; extra <= 1; extra++) {
		static struct reply p;

		begin(&p, "a.example", DNS_TYPE_TXT, DNSRECORD_COUNT_MAX + extra);
		for (unsigned i = 0; i < DNSRECORD_COUNT_MAX + extra; i++) {
			open_record(&p, DNS_TYPE_TXT, 60);
			add_text(&p, "x");
			close_data(&p);
		}
		assert_int_equal(parse(&p, "a.example", DNS_TYPE_TXT, &set), extra == 0);
		begin(&p, "a.example", DNS_TYPE_TXT, 1);
		open_record(&p, DNS_TYPE_TXT, 60);
		for (unsigned i = 0; i < DNSRECORD_BYTES_MAX / 2; i++)
			add_text(&p, "x");
		if (extra)
			add_text(&p, "");
		close_data(&p);
		assert_int_equal(parse(&p, "a.example", DNS_TYPE_TXT, &set), extra == 0);
	}
}

/* ---- from a reply to our own answer ---- */

static size_t answer(const struct dnsrecord_set *set, size_t max_bytes,
		     uint8_t out[DNS_STREAM_MAX_BYTES])
{
	const struct dns_answer a = { .kind = DNS_RECORDS, .records = set, .ttl_s = 30 };
	static struct reply q;
	enum dns_rcode rcode;
	struct dns_query query;

	begin(&q, "a.example", set->type, 0);
	set16(&q, 2, 0x0100);
	assert_int_equal(dns_parse(q.bytes, q.w.len, &query, &rcode), DNS_QUERY);
	return dns_answer(q.bytes, &query, &a, max_bytes, out);
}

static void what_we_answer_is_the_same_set(void **state)
{
	static struct reply p, ours;
	struct dnsrecord_set set, again;

	(void)state;
	begin(&p, "a.example", DNS_TYPE_MX, 2);
	for (unsigned i = 0; i < 2; i++) {
		open_record(&p, DNS_TYPE_MX, 60);
		dnswire_write_u16(&p.w, i);
		dnswire_write(&p.w, i ? "\1m\xc0\x0c" : "\1n\xc0\x0c", 4);
		close_data(&p);
	}
	assert_true(parse(&p, "a.example", DNS_TYPE_MX, &set));
	ours.w.len = answer(&set, 512, ours.bytes);
	assert_true(parse(&ours, "a.example", DNS_TYPE_MX, &again));
	assert_int_equal(again.count, 2);
	assert_int_equal(again.ttl_s, 30);
	assert_memory_equal(again.bytes, set.bytes, set.end[1]);
}

static void the_largest_set_is_truncated_in_a_packet_and_whole_in_a_stream(void **state)
{
	uint8_t out[DNS_STREAM_MAX_BYTES];
	struct dnsrecord_set set = { .type = DNS_TYPE_TXT, .count = DNSRECORD_COUNT_MAX };

	(void)state;
	memset(set.bytes, 0, sizeof(set.bytes)); /* empty strings */
	for (unsigned i = 0; i < DNSRECORD_COUNT_MAX; i++)
		set.end[i] = (uint16_t)((i + 1) * (DNSRECORD_BYTES_MAX / DNSRECORD_COUNT_MAX));
	assert_int_equal(answer(&set, DNS_MESSAGE_MAX_BYTES, out), HEADER_BYTES + 15);
	assert_true(out[2] & 2);
	assert_int_equal(out[6] << 8 | out[7], 0);
	assert_int_equal(answer(&set, DNS_STREAM_MAX_BYTES, out),
			 HEADER_BYTES + 15 + DNSRECORD_COUNT_MAX * 12 + DNSRECORD_BYTES_MAX);
	assert_false(out[2] & 2);
	assert_int_equal(out[6] << 8 | out[7], DNSRECORD_COUNT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_string_by_string),
		cmocka_unit_test(a_mail_exchange_has_its_preference_and_a_name_in_normal_form),
		cmocka_unit_test(a_service_has_three_numbers_and_a_target),
		cmocka_unit_test(an_alias_is_followed_and_counts_for_the_ttl),
		cmocka_unit_test(records_of_other_names_types_and_classes_are_left_out),
		cmocka_unit_test(a_target_that_no_host_can_be_is_left_out),
		cmocka_unit_test(only_three_types_are_answered),
		cmocka_unit_test(a_reply_that_ends_early_is_refused),
		cmocka_unit_test(what_is_no_whole_reply_to_one_question_is_refused),
		cmocka_unit_test(data_must_fill_its_record),
		cmocka_unit_test(pointers_that_do_not_lead_backwards_are_refused),
		cmocka_unit_test(a_pointer_to_a_name_that_leads_back_to_it_is_refused),
		cmocka_unit_test(a_chain_of_pointers_is_bounded),
		cmocka_unit_test(a_name_that_grows_by_pointers_is_bounded),
		cmocka_unit_test(aliases_in_a_circle_end),
		cmocka_unit_test(a_set_beyond_its_maximum_is_refused_as_a_whole),
		cmocka_unit_test(what_we_answer_is_the_same_set),
		cmocka_unit_test(the_largest_set_is_truncated_in_a_packet_and_whole_in_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
