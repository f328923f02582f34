/* test_domain - host names have one normal form, and no ambiguous name is accepted. */
#include "unit.h"

#include "policy/domain.h"

#include <stdio.h>

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN

struct pair {
	const char *text;
	const char *expected; /* the normal form, or the problem */
};

static void expect_normal(const char *text, size_t len, enum domain_source source,
			  const char *expected)
{
	char out[DOMAIN_MAX_BYTES + 1] = "untouched";
	struct domain_problem problem = { 0 };

	if (!domain_normalize(text, len, source, out, &problem))
		fail_msg("'%s' is refused: %s at %zu", text, problem.why, problem.at);
	assert_string_equal(out, expected);
}

static void expect_refused(const char *text, size_t len, enum domain_source source, size_t at,
			   const char *why)
{
	char out[DOMAIN_MAX_BYTES + 1] = "untouched";
	struct domain_problem problem = { 0 };

	if (domain_normalize(text, len, source, out, &problem))
		fail_msg("'%s' is taken, as '%s'", text, out);
	assert_string_equal(out, "untouched");
	assert_string_equal(problem.why, why);
	assert_int_equal(problem.at, at);
}

static void expect_both(const char *text, const char *expected)
{
	expect_normal(text, strlen(text), DOMAIN_TYPED, expected);
	expect_normal(text, strlen(text), DOMAIN_WIRE, expected);
}

static void expect_both_refused(const char *text, size_t len, size_t at, const char *why)
{
	expect_refused(text, len, DOMAIN_TYPED, at, why);
	expect_refused(text, len, DOMAIN_WIRE, at, why);
}

static void names_are_lower_case_without_a_trailing_dot(void **state)
{
	static const struct pair cases[] = {
		{ "example.org", "example.org" },
		{ "EXAMPLE.Org", "example.org" },
		{ "example.org.", "example.org" },
		{ "A.B.C.D.E", "a.b.c.d.e" },
		{ "localhost", "localhost" },
		{ "a-b_c.example", "a-b_c.example" },
		{ "_dmarc.example", "_dmarc.example" },
		{ "1.example", "1.example" },
		{ "127.0.0.1.example", "127.0.0.1.example" },
		{ "0x7f.example", "0x7f.example" },
		{ "1a", "1a" },
		{ "0xg", "0xg" },
		{ "XN--BCHER-KVA.example", "xn--bcher-kva.example" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_both(cases[i].text, cases[i].expected);
}

/* The results of Python's punycode codec, in lower case. */
static void other_scripts_become_their_ascii_form(void **state)
{
	static const struct pair cases[] = {
		{ "bücher.example", "xn--bcher-kva.example" },
		{ "BÜCHER.Example", "xn--bcher-kva.example" },
		{ "münchen.de", "xn--mnchen-3ya.de" },
		{ "straße.example", "xn--strae-oqa.example" },
		{ "žltý.cz", "xn--lt-1ka72c.cz" },
		{ "łódź.pl", "xn--d-uga0v4h.pl" },
		{ "việt.vn", "xn--vit-5kz.vn" },
		{ "αθήνα.gr", "xn--jxafb0a0a.gr" },
		{ "ΑΘΗΝΑ.gr", "xn--mxaard0a.gr" },
		{ "пример.рф", "xn--e1afmkfd.xn--p1ai" },
		{ "ПРИМЕР.РФ", "xn--e1afmkfd.xn--p1ai" },
		{ "Ёлка.рф", "xn--80atc1g.xn--p1ai" },
		{ "ישראל.example", "xn--4dbrk0ce.example" },
		{ "مثال.example", "xn--mgbh0fb.example" },
		{ "उदाहरण.example", "xn--p1b6ci4b4b3a.example" },
		{ "ตัวอย่าง.example", "xn--72c1a1bt4awk9o.example" },
		{ "例え.テスト", "xn--r8jz45g.xn--zckzah" },
		{ "例子.测试.", "xn--fsqu00a.xn--0zwm56d" },
		{ "예제.테스트", "xn--2j5b21b.xn--9t4b11yi5a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_normal(cases[i].text, strlen(cases[i].text), DOMAIN_TYPED,
			      cases[i].expected);
}

/* Otherwise a rule in capitals would name no possible host, and a block would block nothing. */
static void capitals_of_every_script_are_lowered_or_refused(void **state)
{
	static const struct pair lowered[] = {
		{ "ŽLTÝ.CZ", "xn--lt-1ka72c.cz" },          { "Łódź.pl", "xn--d-uga0v4h.pl" },
		{ "ĂN.example", "xn--n-rha.example" },      { "VIỆT.vn", "xn--vit-5kz.vn" },
		{ "Ґрунт.укр", "xn--m1afhc20b.xn--j1amh" },
	};
	/* dotted I, Y with two dots, Greek with an accent, Armenian, Cherokee, Glagolitic */
	static const char *const refused[] = { "İ", "Ÿ", "Ά", "Ա", "Ꭰ", "Ⰰ", "ſ", "ĳ", "ǅ" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lowered); i++)
		expect_normal(lowered[i].text, strlen(lowered[i].text), DOMAIN_TYPED,
			      lowered[i].expected);
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		expect_refused(refused[i], strlen(refused[i]), DOMAIN_TYPED, 0,
			       "a character with more than one reading (write the name in its "
			       "xn-- form)");
}

static void characters_with_more_than_one_reading_are_refused(void **state)
{
	static const char *const cases[] = {
		"a\u00a0b", "a\u00adb", "a\u00d7",  "a\u00f7", "e\u0301", "a\u200db",
		"a\u2024b", "a\u3002b", "a\uff0eb", "\uff21",  "a\ufb01", "\u2460",
		"a\u0130",  "a\u3000",  "a\u30fbb", "a\u3099", "a\u05f3", "\U00010000",
	};
	char text[16];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases) - 1; i++) {
		char out[DOMAIN_MAX_BYTES + 1];
		struct domain_problem problem;

		assert_false(
			domain_normalize(cases[i], strlen(cases[i]), DOMAIN_TYPED, out, &problem));
		assert_string_equal(problem.why, "a character with more than one reading (write "
						 "the name in its xn-- form)");
	}
	(void)snprintf(text, sizeof(text), "a.b%s", cases[COUNT_OF(cases) - 1]);
	expect_refused(text, strlen(text), DOMAIN_TYPED, 3, "bytes that are not UTF-8");
}

static void bytes_that_are_not_utf8_are_refused(void **state)
{
	static const char *const cases[] = {
		"a\x80", "a\xc0\x80", "a\xc1\xbf",    "a\xe0\x80\x80",
		"a\xc3", "a\xe4\xbd", "a\xc3(",       "a\xf0\x9f\x98\x80",
		"a\xff", "a\xfe",     "a\xe0\x9f\xbf"
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_refused(cases[i], strlen(cases[i]), DOMAIN_TYPED, 1,
			       "bytes that are not UTF-8");
	expect_refused("a\xed\xa0\x80", 4, DOMAIN_TYPED, 1, /* a surrogate */
		       "a character with more than one reading (write the name in its xn-- form)");
}

static void packets_have_ascii_or_nothing(void **state)
{
	(void)state;
	expect_refused("b\xc3\xbc"
		       "cher",
		       6, DOMAIN_WIRE, 1, "a byte beyond ASCII");
	expect_refused("\xff", 1, DOMAIN_WIRE, 0, "a byte beyond ASCII");
}

static void bytes_that_two_programs_could_read_differently_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len, at;
		const char *why;
	} cases[] = {
		{ "a\0b", 3, 1, "a NUL byte" },
		{ "a.example\0", 10, 9, "a NUL byte" },
		{ "a b", 3, 1, "a space" },
		{ "a@b", 3, 1, "an '@' (leave out the user)" },
		{ "a/b", 3, 1, "a '/' (leave out the scheme and the path)" },
		{ "a:b", 3, 1, "a ':' that is not followed by a port" },
		{ "a*b", 3, 1, "a '*' that is not a whole label at the start" },
		{ "*.b", 3, 0, "a '*' that is not a whole label at the start" },
		{ "a%2eb", 5, 1, "a character that no host name has" },
		{ "a\\b", 3, 1, "a character that no host name has" },
		{ "a\nb", 3, 1, "a character that no host name has" },
		{ "a\x7f", 2, 1, "a character that no host name has" },
		{ "[a]", 3, 0, "a character that no host name has" },
		{ "a,b", 3, 1, "a character that no host name has" },
		{ "a?b", 3, 1, "a character that no host name has" },
		{ "example.or#", 11, 10, "a character that no host name has" },
		{ "", 0, 0, "no name" },
		{ ".", 1, 0, "no name" },
		{ "..", 2, 0, "an empty label" },
		{ ".a", 2, 0, "an empty label" },
		{ "a..b", 4, 2, "an empty label" },
		{ "a..", 3, 2, "an empty label" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_both_refused(cases[i].text, cases[i].len, cases[i].at, cases[i].why);
}

/* An option that lost its value; in packets such names exist. */
static void a_label_that_starts_like_an_option_is_not_typed(void **state)
{
	(void)state;
	expect_refused("-a.example", 10, DOMAIN_TYPED, 0, "a label that starts with '-'");
	expect_refused("a.-b", 4, DOMAIN_TYPED, 2, "a label that starts with '-'");
	expect_normal("-a.example", 10, DOMAIN_WIRE, "-a.example");
	expect_both("a-.example", "a-.example");
}

static void names_that_a_resolver_reads_as_a_number_are_refused(void **state)
{
	static const char *const cases[] = {
		"127.1",      "1.2.3.4", "1",          "017700000001",
		"0x7f000001", "0x7f.1",  "2130706433", "127.0.0.1.",
		"0X7F",       "0x",      "a.0x",       "example.0xdeadbeef",
		"a.b.9",      "0",       "example.1.",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_both_refused(cases[i], strlen(cases[i]), 0,
				    "a number that is not an IP address");
}

static void a_label_has_63_bytes_at_most(void **state)
{
	static const char longest[] = SIXTY "abc.example";
	static const char longer[] = "a." SIXTY "abcd.example";
	char umlauts[200] = "";

	(void)state;
	expect_both(longest, longest);
	expect_both_refused(longer, strlen(longer), 2, "a label longer than 63 bytes");
	for (int i = 0; i < 64; i++)
		strcat(umlauts, "ü");
	expect_refused(umlauts, strlen(umlauts), DOMAIN_TYPED, 0, "a label longer than 63 bytes");
	/* short as typed, but not as sent */
	(void)snprintf(umlauts, sizeof(umlauts), "%s", SIXTY "ü");
	expect_refused(umlauts, strlen(umlauts), DOMAIN_TYPED, 0, "a label longer than 63 bytes");
}

static void a_name_has_253_bytes_at_most(void **state)
{
	char name[DOMAIN_MAX_BYTES + 1];
	char text[300];

	(void)state;
	(void)snprintf(name, sizeof(name), "%s.%s.%s.%s.abcdefghi", SIXTY, SIXTY, SIXTY, SIXTY);
	assert_int_equal(strlen(name), DOMAIN_MAX_BYTES);
	expect_both(name, name);
	(void)snprintf(text, sizeof(text), "%s.", name);
	expect_both(text, name); /* the final dot does not count */
	(void)snprintf(text, sizeof(text), "%sj", name);
	expect_both_refused(text, strlen(text), 253, "the name is longer than 253 bytes");
}

static void a_service_belongs_to_the_host_that_it_prefixes(void **state)
{
	static const struct pair cases[] = {
		{ "_mongodb._tcp.a.example", "a.example" },
		{ "_dmarc.a.example", "a.example" },
		{ "_acme-challenge.a.example", "a.example" },
		{ "_25._tcp.mail", "mail" },
		{ "_abcdefghijklmno.a.example", "a.example" },
		/* none, too many, too long, and lookalikes */
		{ "a.example", "a.example" },
		{ "a._tcp.example", "a._tcp.example" },
		{ "a_b.example", "a_b.example" },
		{ "_abcdefghijklmnop.a.example", "_abcdefghijklmnop.a.example" },
		{ "_a._b._c.example", "_a._b._c.example" },
		{ "_a._abcdefghijklmnop.example", "_a._abcdefghijklmnop.example" },
		{ "_a_b.example", "_a_b.example" },
		{ "_.example", "_.example" },
		{ "__a.example", "__a.example" },
		{ "_tcp", "_tcp" },
		{ "_a._tcp", "_a._tcp" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_string_equal(domain_service_host(cases[i].text), cases[i].expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_lower_case_without_a_trailing_dot),
		cmocka_unit_test(other_scripts_become_their_ascii_form),
		cmocka_unit_test(capitals_of_every_script_are_lowered_or_refused),
		cmocka_unit_test(characters_with_more_than_one_reading_are_refused),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
		cmocka_unit_test(packets_have_ascii_or_nothing),
		cmocka_unit_test(bytes_that_two_programs_could_read_differently_are_refused),
		cmocka_unit_test(a_label_that_starts_like_an_option_is_not_typed),
		cmocka_unit_test(names_that_a_resolver_reads_as_a_number_are_refused),
		cmocka_unit_test(a_label_has_63_bytes_at_most),
		cmocka_unit_test(a_name_has_253_bytes_at_most),
		cmocka_unit_test(a_service_belongs_to_the_host_that_it_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
