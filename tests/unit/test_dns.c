/* test_dns - queries are parsed without trust, and each gets its own answer. */
#include "unit.h"

#include "base/mem.h"
#include "net/dns.h"

#include <stdio.h>

#define HEADER_BYTES 12u
#define FLAGS_RECURSION 0x0100u
#define EDNS_BYTES 11u

/* A packet being built. */
struct packet {
	uint8_t bytes[DNS_QUERY_MAX_BYTES + 16];
	size_t len;
};

static void add(struct packet *p, const void *bytes, size_t len)
{
	assert_true(len <= sizeof(p->bytes) - p->len);
	memcpy(p->bytes + p->len, bytes, len);
	p->len += len;
}

static void add16(struct packet *p, unsigned value)
{
	add(p, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void add_header(struct packet *p, unsigned flags, unsigned questions, unsigned extras)
{
	p->len = 0;
	add16(p, 0xbeef);
	add16(p, flags);
	add16(p, questions);
	add16(p, 0);
	add16(p, 0);
	add16(p, extras);
}

/* "a.example" as labels; here no label contains a dot. */
static void add_name(struct packet *p, const char *name)
{
	while (*name) {
		uint8_t len = (uint8_t)strcspn(name, ".");

		add(p, &len, 1);
		add(p, name, len);
		name += len + (name[len] == '.');
	}
	add(p, "", 1);
}

static void add_question(struct packet *p, const char *name, unsigned type)
{
	add_name(p, name);
	add16(p, type);
	add16(p, 1);
}

static void add_edns(struct packet *p, unsigned size)
{
	add(p, "", 1);
	add16(p, 41);
	add16(p, size);
	add(p, "\0\0\0\0\0\0", 6);
}

static struct packet question(const char *name, unsigned type)
{
	struct packet p = { .len = 0 };

	add_header(&p, FLAGS_RECURSION, 1, 0);
	add_question(&p, name, type);
	return p;
}

static enum dns_verdict parse(const struct packet *p, struct dns_query *q, enum dns_rcode *rcode)
{
	/* a copy of exactly its length, so that a sanitizer detects reads beyond it */
	cleanup_free uint8_t *copy = mem_alloc(p->len ? p->len : 1);

	memcpy(copy, p->bytes, p->len);
	return dns_parse(copy, p->len, q, rcode);
}

static void expect_wrong(const struct packet *p, enum dns_rcode expected)
{
	enum dns_rcode rcode = DNS_NO_ERROR;
	struct dns_query q;

	assert_int_equal(parse(p, &q, &rcode), DNS_WRONG);
	assert_int_equal(rcode, expected);
	assert_int_equal(q.id, 0xbeef);
}

static void expect_name(const struct packet *p, const char *name)
{
	enum dns_rcode rcode;
	struct dns_query q;

	assert_int_equal(parse(p, &q, &rcode), DNS_QUERY);
	assert_int_equal(q.has_name, name != NULL);
	if (name)
		assert_string_equal(q.name, name);
}

static unsigned read16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

/* ---- queries ---- */

static void a_question_is_taken_apart(void **state)
{
	struct packet p = question("A.Example", DNS_TYPE_AAAA);
	enum dns_rcode rcode;
	struct dns_query q;

	(void)state;
	assert_int_equal(parse(&p, &q, &rcode), DNS_QUERY);
	assert_int_equal(q.id, 0xbeef);
	assert_int_equal(q.type, DNS_TYPE_AAAA);
	assert_true(q.is_recursion_desired);
	assert_true(q.is_internet);
	assert_true(q.has_name);
	assert_false(q.has_edns);
	assert_int_equal(q.udp_max_bytes, 512);
	assert_int_equal(q.question_len, 15);
	assert_string_equal(q.name, "a.example");
}

static void a_class_that_is_not_the_internet_is_noticed(void **state)
{
	struct packet p = question("version.bind", 16);
	enum dns_rcode rcode;
	struct dns_query q;

	(void)state;
	p.bytes[p.len - 1] = 3; /* CHAOS */
	assert_int_equal(parse(&p, &q, &rcode), DNS_QUERY);
	assert_false(q.is_internet);
}

static void edns_says_how_long_an_answer_may_be(void **state)
{
	static const struct {
		unsigned asked, got;
	} cases[] = { { 0, 512 }, { 511, 512 }, { 512, 512 }, { 1232, 1232 }, { 65535, 65535 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct packet p = { .len = 0 };
		enum dns_rcode rcode;
		struct dns_query q;

		add_header(&p, FLAGS_RECURSION, 1, 1);
		add_question(&p, "a.example", DNS_TYPE_A);
		add_edns(&p, cases[i].asked);
		assert_int_equal(parse(&p, &q, &rcode), DNS_QUERY);
		assert_true(q.has_edns);
		assert_int_equal(q.udp_max_bytes, cases[i].got);
	}
}

static void other_extra_records_go_by(void **state)
{
	struct packet p = { .len = 0 };
	enum dns_rcode rcode;
	struct dns_query q;

	(void)state;
	add_header(&p, FLAGS_RECURSION, 1, 2);
	add_question(&p, "a.example", DNS_TYPE_A);
	add_name(&p, "key.example");
	add16(&p, 250); /* TSIG */
	add16(&p, 255);
	add(&p, "\0\0\0\0\0\3abc", 9);
	add_edns(&p, 4096);
	assert_int_equal(parse(&p, &q, &rcode), DNS_QUERY);
	assert_int_equal(q.udp_max_bytes, 4096);
}

static void names_that_cannot_be_anyone_s_are_sound_questions_without_a_name(void **state)
{
	struct packet p = { .len = 0 };

	(void)state;
	p = question("", 2); /* the root's name servers */
	expect_name(&p, NULL);
	p = question("a b.example", 1);
	expect_name(&p, NULL);
	p = question("a@b.example", 1);
	expect_name(&p, NULL);
	p = question("b\xc3\xbc.example", 1);
	expect_name(&p, NULL);
	p = question("1.2.3.4", 1);
	expect_name(&p, NULL);
	p = question("axb.example", 1);
	p.bytes[HEADER_BYTES + 2] = '.'; /* a dot within a label */
	expect_name(&p, NULL);
	p.bytes[HEADER_BYTES + 2] = '\0';
	expect_name(&p, NULL);
	p.bytes[HEADER_BYTES + 2] = 'x';
	expect_name(&p, "axb.example");
}

static void the_longest_name_has_255_bytes(void **state)
{
	struct packet p = { .len = 0 };
	char name[256];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	p = question(name, 1);
	expect_name(&p, name);
	name[253] = 'a';
	name[254] = '\0';
	p = question(name, 1);
	expect_wrong(&p, DNS_FORMAT_ERROR);
	for (size_t i = 1; i < 254; i += 2)
		name[i] = '.';
	name[253] = '\0';
	p = question(name, 1);
	expect_name(&p, name);
}

static void what_is_no_query_is_dropped(void **state)
{
	struct packet p = question("a.example", 1);
	enum dns_rcode rcode;
	struct dns_query q;

	(void)state;
	for (size_t len = 0; len < HEADER_BYTES; len++) {
		struct packet part = p;

		part.len = len;
		assert_int_equal(parse(&part, &q, &rcode), DNS_DROP);
	}
	p.bytes[2] |= 0x80; /* a response: two gates must not answer each other forever */
	assert_int_equal(parse(&p, &q, &rcode), DNS_DROP);
	p.bytes[2] &= 0x7f;
	p.len = DNS_QUERY_MAX_BYTES + 1;
	assert_int_equal(parse(&p, &q, &rcode), DNS_DROP);
	p.len = DNS_QUERY_MAX_BYTES;
	expect_wrong(&p, DNS_FORMAT_ERROR);
}

static void another_opcode_is_not_implemented(void **state)
{
	struct packet p = question("a.example", 1);
	enum dns_rcode rcode;
	struct dns_query q;

	(void)state;
	for (unsigned opcode = 1; opcode < 16; opcode++) {
		p.bytes[2] = (uint8_t)(opcode << 3);
		expect_wrong(&p, DNS_NOT_IMPLEMENTED);
		(void)parse(&p, &q, &rcode);
		assert_int_equal(q.opcode, opcode);
		assert_int_equal(q.question_len, 0);
	}
}

static void there_is_one_question_and_nothing_but_extras(void **state)
{
	struct packet p = { .len = 0 };

	(void)state;
	add_header(&p, FLAGS_RECURSION, 0, 0);
	expect_wrong(&p, DNS_FORMAT_ERROR);
	add_header(&p, FLAGS_RECURSION, 2, 0);
	add_question(&p, "a.example", 1);
	add_question(&p, "b.example", 1);
	expect_wrong(&p, DNS_FORMAT_ERROR);
	p.bytes[5] = 0xff;
	p.bytes[4] = 0xff;
	expect_wrong(&p, DNS_FORMAT_ERROR);
	for (unsigned section = 6; section <= 8; section += 2) {
		p = question("a.example", 1);
		p.bytes[section + 1] = 1;
		expect_wrong(&p, DNS_FORMAT_ERROR);
	}
	add_header(&p, FLAGS_RECURSION, 1, 5);
	add_question(&p, "a.example", 1);
	for (int i = 0; i < 5; i++)
		add(&p, "\0\0\1\0\1\0\0\0\0\0\0", 11);
	expect_wrong(&p, DNS_FORMAT_ERROR);
	p.bytes[11] = 4;
	p.len -= 11;
	expect_name(&p, "a.example");
}

static void two_edns_records_are_one_too_many(void **state)
{
	struct packet p = { .len = 0 };

	(void)state;
	add_header(&p, FLAGS_RECURSION, 1, 2);
	add_question(&p, "a.example", 1);
	add_edns(&p, 1232);
	add_edns(&p, 4096);
	expect_wrong(&p, DNS_FORMAT_ERROR);
}

static void a_packet_that_ends_early_or_late_is_wrong(void **state)
{
	struct packet p = { .len = 0 };

	(void)state;
	add_header(&p, FLAGS_RECURSION, 1, 1);
	add_question(&p, "a.example", 1);
	add_edns(&p, 1232);
	expect_name(&p, "a.example");
	for (size_t len = HEADER_BYTES; len < p.len; len++) {
		struct packet part = p;

		part.len = len;
		expect_wrong(&part, DNS_FORMAT_ERROR);
	}
	p.len++;
	expect_wrong(&p, DNS_FORMAT_ERROR);
}

static void a_pointer_in_a_question_is_wrong(void **state)
{
	struct packet p = { .len = 0 };

	(void)state;
	add_header(&p, FLAGS_RECURSION, 1, 0);
	add(&p, "\xc0\x0c\0\1\0\1", 6); /* a pointer to itself */
	expect_wrong(&p, DNS_FORMAT_ERROR);
	add_header(&p, FLAGS_RECURSION, 1, 0);
	add(&p, "\1a\xc0\x0c\0\1\0\1", 8);
	expect_wrong(&p, DNS_FORMAT_ERROR);
	for (unsigned label = 64; label < 256;
	     label += 16) { /* also with enough bytes for every meaning */
		uint8_t bytes[256 + 6] = { (uint8_t)label };

		memset(bytes + 1, 'a', label);
		bytes[1 + label + 2] = bytes[1 + label + 4] = 1;
		bytes[1 + label] = bytes[1 + label + 1] = bytes[1 + label + 3] = 0;
		add_header(&p, FLAGS_RECURSION, 1, 0);
		add(&p, bytes, 1 + label + 5);
		expect_wrong(&p, DNS_FORMAT_ERROR);
	}
}

/* ---- answers ---- */

/* Parses `p`, answers it into `out`, and checks the header. */
static size_t answer(const struct packet *p, const struct dns_answer *a, size_t max, uint8_t *out)
{
	enum dns_rcode rcode;
	struct dns_query q;
	size_t len;

	assert_int_not_equal(parse(p, &q, &rcode), DNS_DROP);
	len = dns_answer(p->bytes, &q, a, max, out);
	assert_true(len >= HEADER_BYTES && len <= max && len <= DNS_MESSAGE_MAX_BYTES);
	assert_int_equal(read16(out), 0xbeef);
	assert_int_equal(out[2] & 0xf8, 0x80 | (p->bytes[2] & 0x78)); /* a response, same opcode */
	assert_int_equal(out[2] & 1, p->bytes[2] & 1);
	assert_int_equal(out[3] & 0xf0, 0x80); /* recursion available */
	assert_int_equal(out[3] & 0xf, a->rcode);
	assert_int_equal(read16(out + 8), 0);
	return len;
}

static const struct dns_answer an_address = {
	.kind = DNS_ADDRESS,
	.address = { 32, { 198, 18, 1, 2 } },
	.ttl_s = 0x01020304,
};

static void an_address_answers_the_question(void **state)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 1, 2, 3, 4, 0, 4, 198, 18, 1, 2 };
	struct packet p = question("a.example", DNS_TYPE_A);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	assert_int_equal(answer(&p, &an_address, 512, out), p.len + sizeof(record));
	assert_int_equal(read16(out + 4), 1);
	assert_int_equal(read16(out + 6), 1);
	assert_int_equal(read16(out + 10), 0);
	assert_memory_equal(out + HEADER_BYTES, p.bytes + HEADER_BYTES, p.len - HEADER_BYTES);
	assert_memory_equal(out + p.len, record, sizeof(record));
}

static void an_ipv6_address_has_its_own_type(void **state)
{
	const struct dns_answer a = { .kind = DNS_ADDRESS, .address = { 128, { 0xfd, [15] = 1 } } };
	struct packet p = question("a.example", DNS_TYPE_AAAA);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	assert_int_equal(answer(&p, &a, 512, out), p.len + 28);
	assert_int_equal(read16(out + p.len + 2), DNS_TYPE_AAAA);
	assert_int_equal(read16(out + p.len + 10), 16);
	assert_memory_equal(out + p.len + 12, a.address.bytes, 16);
}

/* Some resolvers mix upper and lower case, to recognize their answers. */
static void the_question_is_echoed_letter_for_letter(void **state)
{
	struct packet p = question("wWw.ExAmPlE.cOm", DNS_TYPE_A);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	(void)answer(&p, &an_address, 512, out);
	assert_memory_equal(out + HEADER_BYTES, "\3wWw\7ExAmPlE\3cOm\0\0\1\0\1", 21);
}

static void an_empty_answer_has_its_code_and_the_question(void **state)
{
	static const enum dns_rcode codes[] = { DNS_NO_ERROR, DNS_SERVER_FAILURE, DNS_NAME_ERROR };
	struct packet p = question("a.example", DNS_TYPE_A);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(codes); i++) {
		const struct dns_answer a = { .rcode = codes[i] };

		assert_int_equal(answer(&p, &a, 512, out), p.len);
		assert_int_equal(read16(out + 4), 1);
		assert_int_equal(read16(out + 6), 0);
	}
}

static void a_question_that_could_not_be_read_is_not_echoed(void **state)
{
	const struct dns_answer a = { .rcode = DNS_FORMAT_ERROR };
	struct packet p = question("a.example", DNS_TYPE_A);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	p.len--;
	assert_int_equal(answer(&p, &a, 512, out), HEADER_BYTES);
	assert_int_equal(read16(out + 4), 0);
}

static void edns_is_answered_with_edns(void **state)
{
	static const uint8_t record[EDNS_BYTES] = { 0, 0, 41, 1232 >> 8, 1232 & 0xff };
	struct packet p = { .len = 0 };
	uint8_t out[DNS_STREAM_MAX_BYTES];
	size_t question_end, len;

	(void)state;
	add_header(&p, FLAGS_RECURSION, 1, 1);
	add_question(&p, "a.example", DNS_TYPE_A);
	question_end = p.len;
	add_edns(&p, 4096);
	len = answer(&p, &an_address, 512, out);
	assert_int_equal(len, question_end + 16 + EDNS_BYTES);
	assert_int_equal(read16(out + 10), 1);
	assert_memory_equal(out + len - EDNS_BYTES, record, EDNS_BYTES);
}

static void a_pointer_answer_names_the_host(void **state)
{
	const struct dns_answer a = { .kind = DNS_POINTER, .pointer = "a.example", .ttl_s = 1 };
	struct packet p = question("2.1.18.198.in-addr.arpa", DNS_TYPE_PTR);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	assert_int_equal(answer(&p, &a, 512, out), p.len + 12 + 11);
	assert_int_equal(read16(out + p.len + 2), DNS_TYPE_PTR);
	assert_int_equal(read16(out + p.len + 10), 11);
	assert_memory_equal(out + p.len + 12, "\1a\7example\0", 11);
}

static void an_answer_that_is_too_long_is_cut_and_says_so(void **state)
{
	struct packet p = { .len = 0 };
	uint8_t out[DNS_STREAM_MAX_BYTES];
	char name[DOMAIN_MAX_BYTES + 1];
	struct dns_answer a = { .kind = DNS_POINTER, .pointer = name };

	(void)state;
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[DOMAIN_MAX_BYTES] = '\0';
	p = question(name, DNS_TYPE_PTR);
	assert_int_equal(answer(&p, &a, 512, out), p.len);
	assert_true(out[2] & 2);
	assert_int_equal(read16(out + 4), 1);
	assert_int_equal(read16(out + 6), 0);
	assert_memory_equal(out + HEADER_BYTES, p.bytes + HEADER_BYTES, p.len - HEADER_BYTES);
	/* over TCP, or with a larger EDNS size, it fits */
	assert_int_equal(answer(&p, &a, p.len + 12 + 255, out), p.len + 12 + 255);
	assert_false(out[2] & 2);
	assert_int_equal(answer(&p, &a, p.len + 12 + 254, out), p.len);
	assert_true(out[2] & 2);
}

static void no_answer_is_longer_than_we_ever_send(void **state)
{
	struct packet p = question("a.example", DNS_TYPE_A);
	uint8_t out[DNS_STREAM_MAX_BYTES];

	(void)state;
	assert_int_equal(answer(&p, &an_address, 65535, out), p.len + 16);
}

/* ---- reverse names ---- */

static void a_reverse_name_is_an_address(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[4];
	} cases[] = {
		{ "4.3.2.1.in-addr.arpa", { 1, 2, 3, 4 } },
		{ "0.0.0.0.in-addr.arpa", { 0, 0, 0, 0 } },
		{ "255.1.18.198.in-addr.arpa", { 198, 18, 1, 255 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address a;

		assert_true(dns_parse_reverse(cases[i].name, &a));
		assert_int_equal(a.bits, 32);
		assert_memory_equal(a.bytes, cases[i].bytes, 4);
	}
}

static void nothing_else_is_a_reverse_name(void **state)
{
	static const char *const cases[] = {
		"",
		"in-addr.arpa",
		"1.in-addr.arpa",
		"3.2.1.in-addr.arpa",
		"5.4.3.2.1.in-addr.arpa",
		"256.3.2.1.in-addr.arpa",
		"1234.3.2.1.in-addr.arpa",
		"4.3.2.1.in-addr.arpa.example",
		"4.3.2.1.in-addr.arp",
		"a.3.2.1.in-addr.arpa",
		"x4.3.2.1.in-addr.arpa",
		"-0.3.2.1.in-addr.arpa",
		"-1.3.2.1.in-addr.arpa",
		"4.3.2.-1.in-addr.arpa",
		"04.3.2.1.in-addr.arpa",
		"000.3.2.1.in-addr.arpa",
		"4..3.2.1.in-addr.arpa",
		"4.3.2.1in-addr.arpa",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
	};
	struct address ignored;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (dns_parse_reverse(cases[i], &ignored))
			fail_msg("'%s' is taken for a reverse name", cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_taken_apart),
		cmocka_unit_test(a_class_that_is_not_the_internet_is_noticed),
		cmocka_unit_test(edns_says_how_long_an_answer_may_be),
		cmocka_unit_test(other_extra_records_go_by),
		cmocka_unit_test(names_that_cannot_be_anyone_s_are_sound_questions_without_a_name),
		cmocka_unit_test(the_longest_name_has_255_bytes),
		cmocka_unit_test(what_is_no_query_is_dropped),
		cmocka_unit_test(another_opcode_is_not_implemented),
		cmocka_unit_test(there_is_one_question_and_nothing_but_extras),
		cmocka_unit_test(two_edns_records_are_one_too_many),
		cmocka_unit_test(a_packet_that_ends_early_or_late_is_wrong),
		cmocka_unit_test(a_pointer_in_a_question_is_wrong),
		cmocka_unit_test(an_address_answers_the_question),
		cmocka_unit_test(an_ipv6_address_has_its_own_type),
		cmocka_unit_test(the_question_is_echoed_letter_for_letter),
		cmocka_unit_test(an_empty_answer_has_its_code_and_the_question),
		cmocka_unit_test(a_question_that_could_not_be_read_is_not_echoed),
		cmocka_unit_test(edns_is_answered_with_edns),
		cmocka_unit_test(a_pointer_answer_names_the_host),
		cmocka_unit_test(an_answer_that_is_too_long_is_cut_and_says_so),
		cmocka_unit_test(no_answer_is_longer_than_we_ever_send),
		cmocka_unit_test(a_reverse_name_is_an_address),
		cmocka_unit_test(nothing_else_is_a_reverse_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
