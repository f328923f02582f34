/* test_address - addresses have one form, and ranges outside the public internet are known. */
#include "unit.h"

#include "policy/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static struct address parsed(const char *text)
{
	struct address a;

	if (!address_parse(text, &a))
		fail_msg("'%s' is not an address", text);
	return a;
}

static void expect_kind(const char *text, const char *kind)
{
	struct address a = parsed(text);
	const char *found = address_special_kind(&a);

	if (kind ? !found || strcmp(found, kind) != 0 : found != NULL)
		fail_msg("%s is %s, not %s", text, found ? found : "public",
			 kind ? kind : "public");
}

static void an_address_has_one_form(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "2001:DB8:0:0::1", "2001:db8::1" },
		{ "::", "::" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
		{ "::FFFF:c000:201", "192.0.2.1" },
		{ "0:0:0:0:0:ffff:7f00:1", "127.0.0.1" },
		{ "64:ff9b::1.2.3.4", "64:ff9b::102:304" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	char out[ADDRESS_TEXT_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address a = parsed(cases[i].text);
		struct address again;

		assert_string_equal(address_format(&a, out), cases[i].expected);
		again = parsed(out);
		assert_true(address_is_equal(&a, &again));
	}
}

static void nothing_else_is_an_address(void **state)
{
	static const char *const cases[] = {
		"",
		"1",
		"1.2.3",
		"1.2.3.4.5",
		"127.1",
		"0x7f.0.0.1",
		"256.0.0.1",
		"1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.-4",
		"fe80::1%eth0",
		"[::1]",
		"1::2::3",
		"2001:db8",
		":::",
		"2130706433",
		"1.2.3.4/32",
		"::1/128",
		"12345::",
		"1.2.3.4:80",
		"::ffff:1.2.3",
		"a.example",
	};
	struct address ignored;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (address_parse(cases[i], &ignored))
			fail_msg("'%s' is taken for an address", cases[i]);
}

static void a_socket_address_goes_there_and_back(void **state)
{
	static const char *const cases[] = { "192.0.2.1", "2001:db8::1" };
	struct sockaddr_storage s;
	struct address back;
	uint16_t port = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address a = parsed(cases[i]);

		assert_int_equal(address_to_sockaddr(&a, 443, &s),
				 a.bits == 32 ? sizeof(struct sockaddr_in)
					      : sizeof(struct sockaddr_in6));
		assert_true(address_from_sockaddr((struct sockaddr *)&s, &back, &port));
		assert_true(address_is_equal(&a, &back));
		assert_int_equal(port, 443);
	}
	s.ss_family = AF_UNIX;
	assert_false(address_from_sockaddr((struct sockaddr *)&s, &back, &port));
}

static void a_mapped_socket_address_is_ipv4(void **state)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct address expected = parsed("127.0.0.1");
	struct address a;
	uint16_t port;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr), 1);
	assert_true(address_from_sockaddr((struct sockaddr *)&v6, &a, &port));
	assert_true(address_is_equal(&a, &expected));
}

static void a_network_has_one_form(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },       { "192.0.2.1", "192.0.2.1" },
		{ "192.0.2.1/32", "192.0.2.1" },      { "0.0.0.0/0", "0.0.0.0/0" },
		{ "2001:DB8::/32", "2001:db8::/32" }, { "::/0", "::/0" },
		{ "2001:db8::1/128", "2001:db8::1" }, { "::ffff:192.0.2.1", "192.0.2.1" },
		{ "198.18.0.0/15", "198.18.0.0/15" },
	};
	char out[ADDRESS_TEXT_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address_network n;
		struct err e;

		assert_int_equal(address_parse_network(cases[i].text, &n, &e), 0);
		assert_string_equal(address_format_network(&n, out), cases[i].expected);
	}
}

static void a_network_that_is_none_is_refused_with_its_reason(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "'' is not an IP address or network" },
		{ "10.0.0/8", "'10.0.0/8' is not an IP address or network" },
		{ "example.org", "'example.org' is not an IP address or network" },
		{ "10.0.0.0/", "'10.0.0.0/': the length after '/': '' is not a whole number" },
		{ "10.0.0.0/33", "'10.0.0.0/33': the length after '/': number '33' is outside 0 "
				 "to 32" },
		{ "::/129", "'::/129': the length after '/': number '129' is outside 0 to 128" },
		{ "10.0.0.0/-1", "'10.0.0.0/-1': the length after '/': '-1' is not a whole "
				 "number" },
		{ "10.0.0.0/8/8", "'10.0.0.0/8/8': the length after '/': '8/8' is not a whole "
				  "number" },
		{ "10.0.0.1/8", "'10.0.0.1/8' is an address within a network (use '10.0.0.0/8' "
				"for all of it)" },
		{ "2001:db8::1/32", "'2001:db8::1/32' is an address within a network (use "
				    "'2001:db8::/32' for all of it)" },
		{ "192.0.2.3/31", "'192.0.2.3/31' is an address within a network (use "
				  "'192.0.2.2/31' for all of it)" },
		{ "::ffff:10.0.0.0/104", "'::ffff:10.0.0.0/104': write IPv4 networks in their "
					 "own form" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address_network n;
		struct err e = { 0 };

		assert_int_equal(address_parse_network(cases[i].text, &n, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_string_equal(e.msg, cases[i].words);
	}
}

static void a_network_holds_its_first_and_last_address_and_no_neighbour(void **state)
{
	static const struct {
		const char *network, *before, *first, *last, *after;
	} cases[] = {
		{ "10.0.0.0/8", "9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0" },
		{ "192.0.2.8/29", "192.0.2.7", "192.0.2.8", "192.0.2.15", "192.0.2.16" },
		{ "198.18.0.0/15", "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0" },
		{ "192.0.2.1", "192.0.2.0", "192.0.2.1", "192.0.2.1", "192.0.2.2" },
		{ "128.0.0.0/1", "127.255.255.255", "128.0.0.0", "255.255.255.255", "0.0.0.0" },
		{ "2001:db8::/33", "2001:db7:ffff::", "2001:db8::",
		  "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff", "2001:db8:8000::" },
		{ "2001:db8::2/127", "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct address before = parsed(cases[i].before), first = parsed(cases[i].first);
		struct address last = parsed(cases[i].last), after = parsed(cases[i].after);
		struct address_network n;
		struct err e;

		assert_int_equal(address_parse_network(cases[i].network, &n, &e), 0);
		assert_false(address_is_in(&before, &n));
		assert_true(address_is_in(&first, &n));
		assert_true(address_is_in(&last, &n));
		assert_false(address_is_in(&after, &n));
	}
}

static void no_network_of_one_family_holds_an_address_of_the_other(void **state)
{
	struct address v4 = parsed("0.0.0.0"), v6 = parsed("::");
	struct address_network n;
	struct err e;

	(void)state;
	assert_int_equal(address_parse_network("0.0.0.0/0", &n, &e), 0);
	assert_true(address_is_in(&v4, &n));
	assert_false(address_is_in(&v6, &n));
	assert_int_equal(address_parse_network("::/0", &n, &e), 0);
	assert_false(address_is_in(&v4, &n));
	assert_true(address_is_in(&v6, &n));
	assert_false(address_is_equal(&v4, &v6));
}

#define RESERVED "a reserved address"
#define PRIVATE "a private address"
#define DOCUMENTATION "a documentation address"
#define NAT64 "an IPv4 address in IPv6 form (NAT64)"
#define SIX_TO_FOUR "an IPv4 address in IPv6 form (6to4)"
#define TEREDO "a reserved address (Teredo and others)"

/* Each range by its ends; the neighbours have the kind that the table gives. */
static void every_special_range_starts_and_ends_where_it_should(void **state)
{
	static const struct {
		const char *kind, *first, *last;
		const char *before, *kind_before; /* NULL: none */
		const char *after, *kind_after;
	} cases[] = {
		{ "an address of 'this network'", "0.0.0.0", "0.255.255.255", NULL, NULL, "1.0.0.0",
		  NULL },
		{ PRIVATE, "10.0.0.0", "10.255.255.255", "9.255.255.255", NULL, "11.0.0.0", NULL },
		{ "a carrier's shared address", "100.64.0.0", "100.127.255.255", "100.63.255.255",
		  NULL, "100.128.0.0", NULL },
		{ "a loopback address", "127.0.0.0", "127.255.255.255", "126.255.255.255", NULL,
		  "128.0.0.0", NULL },
		{ "a link-local address", "169.254.0.0", "169.254.255.255", "169.253.255.255", NULL,
		  "169.255.0.0", NULL },
		{ PRIVATE, "172.16.0.0", "172.31.255.255", "172.15.255.255", NULL, "172.32.0.0",
		  NULL },
		{ RESERVED, "192.0.0.0", "192.0.0.255", "191.255.255.255", NULL, "192.0.1.0",
		  NULL },
		{ DOCUMENTATION, "192.0.2.0", "192.0.2.255", "192.0.1.255", NULL, "192.0.3.0",
		  NULL },
		{ "a 6to4 relay address", "192.88.99.0", "192.88.99.255", "192.88.98.255", NULL,
		  "192.88.100.0", NULL },
		{ PRIVATE, "192.168.0.0", "192.168.255.255", "192.167.255.255", NULL, "192.169.0.0",
		  NULL },
		{ "a benchmarking address", "198.18.0.0", "198.19.255.255", "198.17.255.255", NULL,
		  "198.20.0.0", NULL },
		{ DOCUMENTATION, "198.51.100.0", "198.51.100.255", "198.51.99.255", NULL,
		  "198.51.101.0", NULL },
		{ DOCUMENTATION, "203.0.113.0", "203.0.113.255", "203.0.112.255", NULL,
		  "203.0.114.0", NULL },
		{ "a multicast address", "224.0.0.0", "239.255.255.255", "223.255.255.255", NULL,
		  "240.0.0.0", RESERVED },
		{ RESERVED, "240.0.0.0", "255.255.255.255", "239.255.255.255",
		  "a multicast address", NULL, NULL },
		{ "a loopback address", "::1", "::1", "::", RESERVED, "::2", RESERVED },
		{ NAT64, "64:ff9b::", "64:ff9b:ffff:ffff:ffff:ffff:ffff:ffff",
		  "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED, "64:ff9c::", RESERVED },
		{ TEREDO, "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:200::", NULL },
		{ DOCUMENTATION, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
		  "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:db9::", NULL },
		{ SIX_TO_FOUR, "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2003::", NULL },
		{ DOCUMENTATION, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "3fff:1000::", NULL },
		{ PRIVATE, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED, "fe00::", RESERVED },
		{ "a link-local address", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED, "fec0::", RESERVED },
		{ "a multicast address", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED, NULL, NULL },
		{ NULL, "2003::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED, "4000::", RESERVED },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		expect_kind(cases[i].first, cases[i].kind);
		expect_kind(cases[i].last, cases[i].kind);
		if (cases[i].before)
			expect_kind(cases[i].before, cases[i].kind_before);
		if (cases[i].after)
			expect_kind(cases[i].after, cases[i].kind_after);
	}
}

static void an_ipv4_address_in_ipv6_form_is_never_public(void **state)
{
	(void)state;
	expect_kind("::ffff:10.0.0.1", PRIVATE);
	expect_kind("::ffff:8.8.8.8", NULL); /* the same address, written differently */
	expect_kind("::8.8.8.8", RESERVED);
	expect_kind("::ffff:0:8.8.8.8", RESERVED);
	expect_kind("64:ff9b::8.8.8.8", NAT64);
	expect_kind("64:ff9b:1::8.8.8.8", NAT64);
	expect_kind("2002:808:808::1", SIX_TO_FOUR);
	expect_kind("2001:0:808:808::", TEREDO);
}

static void loopback_is_known_in_all_its_forms(void **state)
{
	static const char *const loopback[] = { "127.0.0.1", "127.0.0.0",        "127.255.255.255",
						"::1",       "::ffff:127.0.0.1", "0.0.0.0",
						"::" };
	static const char *const not [] = { "126.255.255.255", "128.0.0.0", "::2",
					    "::7f00:1",        "0.0.0.1",   "2001:db8::1" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(loopback); i++) {
		struct address a = parsed(loopback[i]);

		assert_true(address_is_loopback(&a));
	}
	for (size_t i = 0; i < COUNT_OF(not ); i++) {
		struct address a = parsed(not [i]);

		assert_false(address_is_loopback(&a));
	}
}

static void metadata_services_are_known_and_their_neighbours_are_not(void **state)
{
	static const char *const metadata[] = {
		"169.254.169.254",        "169.254.170.2", "169.254.170.23",  "169.254.169.123",
		"169.254.169.253",        "169.254.0.23",  "100.100.100.200", "192.0.0.192",
		"168.63.129.16",          "fd00:ec2::254", "fd00:ec2::23",    "fd20:ce::254",
		"::ffff:169.254.169.254",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(metadata); i++) {
		struct address a = parsed(metadata[i]);

		assert_true(address_is_metadata(&a));
		a.bytes[a.bits / 8 - 1] ^= 0x40;
		assert_false(address_is_metadata(&a));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_one_form),
		cmocka_unit_test(nothing_else_is_an_address),
		cmocka_unit_test(a_socket_address_goes_there_and_back),
		cmocka_unit_test(a_mapped_socket_address_is_ipv4),
		cmocka_unit_test(a_network_has_one_form),
		cmocka_unit_test(a_network_that_is_none_is_refused_with_its_reason),
		cmocka_unit_test(a_network_holds_its_first_and_last_address_and_no_neighbour),
		cmocka_unit_test(no_network_of_one_family_holds_an_address_of_the_other),
		cmocka_unit_test(every_special_range_starts_and_ends_where_it_should),
		cmocka_unit_test(an_ipv4_address_in_ipv6_form_is_never_public),
		cmocka_unit_test(loopback_is_known_in_all_its_forms),
		cmocka_unit_test(metadata_services_are_known_and_their_neighbours_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
