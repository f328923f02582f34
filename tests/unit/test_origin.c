/* Host and Origin: which requests are accepted, depending on the listening address. */
#include "http/origin.h"
#include "unit.h"

#include <arpa/inet.h>
#include <string.h>

static struct origin_place place(const char *address, uint16_t port, bool is_tls)
{
	struct origin_place p = { .is_tls = is_tls };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&p.address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&p.address;

	if (strchr(address, ':')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, address, &v6->sin6_addr), 1);
		p.is_loopback = strcmp(address, "::1") == 0;
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, address, &v4->sin_addr), 1);
		p.is_loopback = strncmp(address, "127.", 4) == 0;
	}
	return p;
}

static bool is_answered(const struct origin_place *p, const char *host, const char *origin)
{
	return !origin_check(p, &(struct origin_claims){ .host = host, .origin = origin });
}

static void loopback_answers_its_own_names_and_origins_alone(void **state)
{
	const struct origin_place p = place("127.0.0.2", 80, false),
				  v6 = place("::1", 18888, false);

	(void)state;
	assert_true(is_answered(&p, "127.0.0.2", "http://127.0.0.2"));
	assert_true(is_answered(&p, "127.0.0.2:80", "http://localhost:80"));
	assert_true(is_answered(&p, NULL, NULL));
	assert_false(is_answered(&p, "127.0.0.3", NULL));
	assert_false(is_answered(&p, "localhost:81", NULL));
	assert_false(is_answered(&p, "localhost", "http://localhost:3000"));
	assert_false(is_answered(&p, "localhost", "https://localhost"));
	assert_true(is_answered(&v6, "[::1]:18888", "http://[::1]:18888"));
	assert_true(is_answered(&v6, "[0:0::1]:18888", NULL));
	assert_false(is_answered(&v6, "::1", NULL));
	assert_false(is_answered(&v6, "[::1]:18888", "http://[::1]"));
}

static void elsewhere_a_page_must_be_of_the_name_that_it_asks(void **state)
{
	const struct origin_place p = place("0.0.0.0", 8443, true);

	(void)state;
	assert_true(is_answered(&p, "api.example:8443", NULL));
	assert_true(is_answered(&p, "api.example:8443", "https://api.example:8443"));
	assert_true(is_answered(&p, "api.example", "https://api.example:443"));
	assert_false(is_answered(&p, "api.example:8443", "https://evil.example:8443"));
	assert_false(is_answered(&p, "api.example:8443", "https://api.example"));
	assert_false(is_answered(&p, "api.example:8443", "http://api.example:8443"));
	assert_false(is_answered(&p, NULL, "https://api.example:8443"));
	assert_false(is_answered(&p, "a@api.example", NULL));
}

static void what_is_not_exactly_an_authority_is_none(void **state)
{
	static const char *const bad[] = { "",         ":",     ":80",       "a:",    "a:0",
					   "a:65536",  "a:080", "a:+80",     "a: 80", "a:8 0",
					   "a b",      "a/b",   "a@b",       "a:1@b", "a?b",
					   "a#b",      "[::1",  "::1]",      "[]",    "[::1]80",
					   "[::1]:",   "[a]",   "[1.2.3.4]", "a\tb",  "a:1:2",
					   "\xc3\xa4", "a%2eb", "a\\b" };
	struct origin_authority a;
	char longest[ORIGIN_HOST_MAX_BYTES + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (origin_parse_authority(bad[i], &a))
			fail_msg("taken: '%s'", bad[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_false(origin_parse_authority(longest, &a));
	longest[sizeof(longest) - 2] = '\0';
	assert_true(origin_parse_authority(longest, &a));
	assert_true(origin_parse_authority("A.B:65535", &a));
	assert_string_equal(a.host, "a.b");
	assert_int_equal(a.port, 65535);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_answers_its_own_names_and_origins_alone),
		cmocka_unit_test(elsewhere_a_page_must_be_of_the_name_that_it_asks),
		cmocka_unit_test(what_is_not_exactly_an_authority_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
