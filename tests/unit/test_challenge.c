/* test_challenge - WWW-Authenticate in all its forms. */
#include "unit.h"

#include "image/challenge.h"

#include <stdio.h>

struct row {
	const char *value;
	enum challenge_scheme scheme;
	const char *realm, *service;
};

static void best_challenge_is_found(void **state)
{
	static const struct row rows[] = {
		{ "Basic", CHALLENGE_BASIC, "", "" },
		{ "basic realm=\"a b\"", CHALLENGE_BASIC, "a b", "" },
		{ "Bearer realm=\"https://a.example/token\",service=\"s\",scope=\"x:y:z\"",
		  CHALLENGE_BEARER, "https://a.example/token", "s" },
		{ "BEARER  Service=s , REALM = \"r\"", CHALLENGE_BEARER, "r", "s" },
		{ "Bearer realm=\"a\\\"b\\\\c\"", CHALLENGE_BEARER, "a\"b\\c", "" },
		{ "Bearer realm=\"a,b=c\",error=\"insufficient_scope\"", CHALLENGE_BEARER, "a,b=c",
		  "" },
		{ "Basic realm=\"x\", Bearer realm=\"y\"", CHALLENGE_BEARER, "y", "" },
		{ "Bearer realm=\"y\", Basic realm=\"x\"", CHALLENGE_BEARER, "y", "" },
		{ "Bearer realm=\"first\", Bearer realm=\"second\"", CHALLENGE_BEARER, "first",
		  "" },
		{ "Negotiate, Basic realm=\"x\"", CHALLENGE_BASIC, "x", "" },
		{ "Negotiate abc+/==, Basic realm=\"x\"", CHALLENGE_BASIC, "x", "" },
		{ "Digest nonce=\"n\", qop=auth, Bearer realm=\"y\"", CHALLENGE_BEARER, "y", "" },
		{ ",, Basic realm=x ,", CHALLENGE_BASIC, "x", "" },
		{ "Bearer error=\"x\", Basic", CHALLENGE_BASIC, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct challenge c = { 0 };
		struct err e = { 0 };

		if (challenge_parse(rows[i].value, &c, &e) < 0)
			fail_msg("'%s': %s", rows[i].value, e.msg);
		assert_int_equal(c.scheme, rows[i].scheme);
		assert_string_equal(c.realm, rows[i].realm);
		assert_string_equal(c.service, rows[i].service);
	}
}

static void expect_refused(const char *value, const char *words)
{
	struct challenge c = { .realm = "untouched" };
	struct err e = { 0 };

	if (challenge_parse(value, &c, &e) == 0)
		fail_msg("'%s' is taken", value);
	assert_int_equal(e.code, ERR_REMOTE);
	assert_non_null(strstr(e.msg, words));
	assert_string_equal(c.realm, "untouched");
}

static void what_we_cannot_answer_is_refused(void **state)
{
	static const char *const malformed[] = {
		"=",
		"\"",
		"Bearer realm=\"x",
		"Bearer realm=\"x\\",
		"Bearer realm=\"x\" service=\"y\"",
		"Bearer realm=\"x\",realm=\"y\"",
		"Bearer realm=\"a\nb\"",
		"Bearer realm=\"a\x7f\"",
		"Bearer realm=@",
		"Bearer @",
		"Bea@rer realm=\"x\"",
		"Basic realm=\"x\", Bearer realm=\"y",
	};
	static const char *const unknown[] = { "", " , ", "Negotiate", "Bearer", "Digest a=b" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(malformed); i++)
		expect_refused(malformed[i], "not well formed");
	for (size_t i = 0; i < COUNT_OF(unknown); i++)
		expect_refused(unknown[i], "neither a token nor a password");
}

static void longest_realm_fits_and_one_more_does_not(void **state)
{
	char value[CHALLENGE_TEXT_MAX_BYTES + 32];
	struct err e = { 0 };
	struct challenge c;

	(void)state;
	(void)snprintf(value, sizeof(value), "Bearer realm=\"%0*d\"", CHALLENGE_TEXT_MAX_BYTES - 1,
		       0);
	assert_int_equal(challenge_parse(value, &c, &e), 0);
	assert_int_equal(strlen(c.realm), CHALLENGE_TEXT_MAX_BYTES - 1);
	(void)snprintf(value, sizeof(value), "Bearer realm=\"%0*d\"", CHALLENGE_TEXT_MAX_BYTES, 0);
	expect_refused(value, "not well formed");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_challenge_is_found),
		cmocka_unit_test(what_we_cannot_answer_is_refused),
		cmocka_unit_test(longest_realm_fits_and_one_more_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
