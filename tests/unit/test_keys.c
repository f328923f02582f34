/* Keys of the HTTP server: which sandboxes each sees. */
#include "http/keys.h"
#include "unit.h"

#include <string.h>

static void lines_with_one_name_are_one_owner_and_bare_keys_are_several(void **state)
{
	struct keys k = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(keys_parse("ci one\r\n\n  ci\ttwo  \nthree\nfour\nops five admin", &k, &e),
			 0);
	assert_int_equal(k.count, 5);
	assert_true(k.is_isolated);
	assert_string_equal(keys_owner(&k, keys_find(&k, "one")), "name:ci");
	assert_string_equal(keys_owner(&k, keys_find(&k, "two")), "name:ci");
	assert_true(strncmp(keys_owner(&k, keys_find(&k, "three")), "key:", 4) == 0);
	assert_string_not_equal(keys_owner(&k, keys_find(&k, "three")),
				keys_owner(&k, keys_find(&k, "four")));
	assert_null(strstr(keys_owner(&k, keys_find(&k, "three")), "three"));
	assert_non_null(keys_find(&k, "five"));
	assert_null(keys_owner(&k, keys_find(&k, "five")));
	assert_null(keys_find(&k, "on"));
	assert_null(keys_find(&k, "onee"));
	assert_null(keys_find(&k, "ci one"));
	assert_null(keys_find(&k, ""));
	keys_done(&k);
	keys_done(&k);
}

static void one_key_alone_sees_all(void **state)
{
	struct keys k = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(keys_parse("only", &k, &e), 0);
	assert_null(keys_owner(&k, keys_find(&k, "only")));
	k.is_isolated = true;
	assert_non_null(keys_owner(&k, keys_find(&k, "only")));
	keys_done(&k);
}

static void lines_that_could_mean_two_things_are_refused(void **state)
{
	static const char *const bad[] = { "a b c\n",   "a b admin more\n",  "A key\n",
					   "a/b key\n", "same\nname same\n", "x same\ny same\n" };
	struct keys k = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(keys_parse(bad[i], &k, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_with_one_name_are_one_owner_and_bare_keys_are_several),
		cmocka_unit_test(one_key_alone_sees_all),
		cmocka_unit_test(lines_that_could_mean_two_things_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
