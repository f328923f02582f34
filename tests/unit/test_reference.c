/* test_reference - names of images, parsed like Docker does, and invalid ones. */
#include "unit.h"

#include "image/reference.h"

#include <stdio.h>

#define TEN "abcdefghij"
#define FIFTY TEN TEN TEN TEN TEN
#define HEX "0123456789abcdef"
#define DIGEST "sha256:" HEX HEX HEX HEX

struct pair {
	const char *text;
	const char *expected;
};

static void parse(const char *text, struct reference *ret)
{
	struct err e = { 0 };

	if (reference_parse(text, ret, &e) < 0)
		fail_msg("'%s' is refused: %s", text, e.msg);
}

static void expect_full(const char *text, const char *expected)
{
	char out[REFERENCE_MAX_BYTES + 1];
	struct reference r;

	parse(text, &r);
	reference_format(&r, out);
	assert_string_equal(out, expected);
}

static void expect_refused(const char *text, enum err_code code, const char *words)
{
	struct reference r = { .tag = "untouched" };
	struct err e = { 0 };

	if (reference_parse(text, &r, &e) == 0)
		fail_msg("'%s' is taken, as host '%s' path '%s' tag '%s'", text, r.host, r.path,
			 r.tag);
	assert_int_equal(e.code, code);
	if (!strstr(e.msg, words))
		fail_msg("'%s': \"%s\" does not say \"%s\"", text, e.msg, words);
	assert_string_equal(r.tag, "untouched");
}

static void full_form_is_what_docker_makes_of_it(void **state)
{
	static const struct pair cases[] = {
		{ "python", REFERENCE_HUB "/library/python:latest" },
		{ "python:3.12-alpine", REFERENCE_HUB "/library/python:3.12-alpine" },
		{ "team/tool", REFERENCE_HUB "/team/tool:latest" },
		{ "a/b/c:1", REFERENCE_HUB "/a/b/c:1" },
		{ REFERENCE_HUB "/python", REFERENCE_HUB "/library/python:latest" },
		{ "index." REFERENCE_HUB "/python", REFERENCE_HUB "/library/python:latest" },
		{ "INDEX." REFERENCE_HUB "/team/x", REFERENCE_HUB "/team/x:latest" },
		{ "localhost/x", "localhost/x:latest" },
		{ "localhost:5000/x:y", "localhost:5000/x:y" },
		{ "host:5000", REFERENCE_HUB "/library/host:5000" },
		{ "registry.example.org/x", "registry.example.org/x:latest" },
		{ "Registry.Example.ORG/x", "registry.example.org/x:latest" },
		{ "127.0.0.1:5000/a/b:T_1", "127.0.0.1:5000/a/b:T_1" },
		{ "[::1]:5000/x", "[::1]:5000/x:latest" },
		{ "[0:0::0:1]/x", "[::1]/x:latest" },
		{ "a.b/c__d/e-f---g.h_i", "a.b/c__d/e-f---g.h_i:latest" },
		{ "python@" DIGEST, REFERENCE_HUB "/library/python@" DIGEST },
		{ "x.example/y:tag@" DIGEST, "x.example/y@" DIGEST },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_full(cases[i].text, cases[i].expected);
}

static void short_form_is_what_people_type(void **state)
{
	static const struct pair cases[] = {
		{ REFERENCE_HUB "/library/python:3", "python:3" },
		{ REFERENCE_HUB "/team/tool", "team/tool:latest" },
		{ REFERENCE_HUB "/library/a/b", "library/a/b:latest" },
		{ REFERENCE_HUB "/localhost/x", REFERENCE_HUB "/localhost/x:latest" },
		{ REFERENCE_HUB "/a.b/x", REFERENCE_HUB "/a.b/x:latest" },
		{ REFERENCE_HUB "/localhost", "localhost:latest" },
		{ "registry.example.org/x:1", "registry.example.org/x:1" },
		{ "python@" DIGEST, "python@" DIGEST },
	};
	char out[REFERENCE_MAX_BYTES + 1];
	struct reference r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		parse(cases[i].text, &r);
		reference_format_short(&r, out);
		assert_string_equal(out, cases[i].expected);
	}
}

static void file_form_has_no_slash(void **state)
{
	char out[REFERENCE_MAX_BYTES + 1];
	struct reference r;

	(void)state;
	parse("a.example:1/b/c:d", &r);
	reference_format_file(&r, out);
	assert_string_equal(out, "a.example:1+b+c:d");
}

static void tag_and_digest_are_both_kept_apart(void **state)
{
	struct reference r;

	(void)state;
	parse("x:1@" DIGEST, &r);
	assert_string_equal(r.tag, "1");
	assert_string_equal(r.digest, DIGEST);
	parse("x@" DIGEST, &r);
	assert_string_equal(r.tag, "");
}

static void what_is_no_name_is_refused_with_its_reason(void **state)
{
	static const struct pair cases[] = {
		{ "", "empty" },
		{ "Python", "upper case" },
		{ "Team/x", "upper case" },
		{ "registry.example.org/X", "upper case" },
		{ "-x", "not the name" },
		{ "--help", "not the name" },
		{ "x-", "not the name" },
		{ "a..b", "not the name" },
		{ "a___b", "not the name" },
		{ "a._b", "not the name" },
		{ "a//b", "not the name" },
		{ "/a", "not the name" },
		{ "a/", "not the name" },
		{ "a.b/", "not the name" },
		{ "../x", "not a host" },
		{ "./x", "not a host" },
		{ "a/../b", "not the name" },
		{ "a b", "not the name" },
		{ "a+b", "not the name" },
		{ "a%2fb", "not the name" },
		{ "a?b", "not the name" },
		{ "b\xc3\xbc", "not the name" },
		{ "x:", "not a tag" },
		{ "x:-a", "not a tag" },
		{ "x:.a", "not a tag" },
		{ "x:a:b", "not a tag" },
		{ "x:a/b", "the port" },
		{ "a/x:a/b", "not a tag" },
		{ "x:" FIFTY FIFTY TEN TEN "123456789", "not a tag" },
		{ "x@", "not a digest" },
		{ "x@" HEX HEX HEX HEX, "not a digest" },
		{ "x@sha512:" HEX HEX HEX HEX, "not a digest" },
		{ "x@sha256:" HEX HEX HEX "0123456789ABCDEF", "not a digest" },
		{ "x@" DIGEST "0", "not a digest" },
		{ "x@" DIGEST "@" DIGEST, "not a digest" },
		{ "user@a.example/x", "not a digest" },
		{ "a.example:0/x", "the port" },
		{ "a.example:65536/x", "the port" },
		{ "a.example:080/x", "the port" },
		{ "a.example:/x", "the port" },
		{ "a.example:5x/x", "the port" },
		{ "-a.example/x", "not a host" },
		{ "a-.example/x", "not a host" },
		{ "a..example/x", "not a host" },
		{ "a.example./x", "not a host" },
		{ "a_b.example/x", "not a host" },
		{ "[::1/x", "not a host" },
		{ "[::1%lo]/x", "not a host" },
		{ "[1.2.3.4]/x", "not a host" },
		{ "[::1]x:1/x", "the port" },
		{ "::1/x", "not a host" },
		{ "https://a.example/x", "the port" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_refused(cases[i].text, ERR_INVALID, cases[i].expected);
}

static void longest_full_form_fits_and_one_more_does_not(void **state)
{
	/* REFERENCE_HUB "/" and ":latest" are 17 of the 240 bytes */
	static const char fits[] = "a/" FIFTY FIFTY FIFTY FIFTY TEN TEN "a";
	static const char too_long[] = "a/" FIFTY FIFTY FIFTY FIFTY TEN TEN "ab";
	char out[REFERENCE_MAX_BYTES + 1];
	struct reference r;

	(void)state;
	parse(fits, &r);
	reference_format(&r, out);
	assert_int_equal(strlen(out), REFERENCE_MAX_BYTES);
	expect_refused(too_long, ERR_LIMIT, "longer than 240");
	expect_refused(FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY, ERR_LIMIT,
		       "longer than 240");
	expect_refused("library/" FIFTY FIFTY FIFTY FIFTY FIFTY, ERR_LIMIT, "longer than 240");
}

static void words_cannot_steer_a_terminal(void **state)
{
	struct reference r;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(reference_parse("a\033[2Jb", &r, &e), -1);
	assert_null(strchr(e.msg, '\033'));
}

static void digest_has_one_form(void **state)
{
	(void)state;
	assert_true(reference_is_digest(DIGEST));
	assert_false(reference_is_digest("sha256:" HEX HEX HEX "0123456789abcde"));
	assert_false(reference_is_digest("sha256:" HEX HEX HEX "0123456789abcdeg"));
	assert_false(reference_is_digest(""));
}

static void this_machine_is_known_by_its_names(void **state)
{
	static const char *const ours[] = { "localhost",      "localhost:5000", "127.0.0.1",
					    "127.255.0.1:80", "[::1]",          "[::1]:5000" };
	static const char *const others[] = {
		"localhost.example",  "128.0.0.1", "127.0.0.1.example", "[::2]",
		"[::ffff:127.0.0.1]", "127.1",     "0.0.0.0",           ""
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ours); i++)
		assert_true(reference_is_loopback(ours[i]));
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_false(reference_is_loopback(others[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_form_is_what_docker_makes_of_it),
		cmocka_unit_test(short_form_is_what_people_type),
		cmocka_unit_test(file_form_has_no_slash),
		cmocka_unit_test(tag_and_digest_are_both_kept_apart),
		cmocka_unit_test(what_is_no_name_is_refused_with_its_reason),
		cmocka_unit_test(longest_full_form_fits_and_one_more_does_not),
		cmocka_unit_test(words_cannot_steer_a_terminal),
		cmocka_unit_test(digest_has_one_form),
		cmocka_unit_test(this_machine_is_known_by_its_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
