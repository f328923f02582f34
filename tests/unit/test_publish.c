/* test_publish - what -P accepts, and the one form in which a policy keeps it. */
#include "unit.h"

#include "base/keyrows.h"
#include "policy/publish.h"

static void expect(const char *typed, const char *const *texts)
{
	CLEANUP(keyrows_list_free) char **list = NULL;
	struct err e = { 0 };
	size_t count = 0;

	if (publish_add(&list, typed, &e) < 0)
		fail_msg("'%s' is refused: %s", typed, e.msg);
	for (; texts[count]; count++) {
		struct publish p;
		char again[PUBLISH_TEXT_MAX_BYTES];

		assert_non_null(list[count]);
		assert_string_equal(list[count], texts[count]);
		assert_int_equal(publish_parse(list[count], &p, &e), 0);
		assert_string_equal(publish_format(&p, again), texts[count]);
	}
	assert_int_equal(keyrows_list_count(list), count);
}

#define EXPECT(typed, ...) expect(typed, (const char *const[]){ __VA_ARGS__, NULL })

static void every_form_has_one_text(void **state)
{
	(void)state;
	EXPECT("8080", "127.0.0.1:8080:8080");
	EXPECT("8080:3000", "127.0.0.1:8080:3000");
	EXPECT("8080:3000/tcp", "127.0.0.1:8080:3000");
	EXPECT("0:3000", "127.0.0.1:0:3000");
	EXPECT("localhost:8080", "127.0.0.1:8080:8080");
	EXPECT("127.0.0.1:8080", "127.0.0.1:8080:8080");
	EXPECT("0.0.0.0:8080:80", "0.0.0.0:8080:80");
	EXPECT("[::1]:8080:80", "[::1]:8080:80");
	EXPECT("[::]:8080", "[::]:8080:8080");
	EXPECT("8000-8002", "127.0.0.1:8000:8000", "127.0.0.1:8001:8001", "127.0.0.1:8002:8002");
	EXPECT("10.0.0.1:8000-8001:3000-3001", "10.0.0.1:8000:3000", "10.0.0.1:8001:3001");
	EXPECT("65535:1", "127.0.0.1:65535:1");
}

static void anything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"0",
		":80",
		"80:",
		"80:0",
		"65536",
		"-1",
		"80-",
		"-80",
		"80-79",
		"80:81:82",
		"1.2.3:80",
		"[::1]",
		"[::1]80",
		"[::1:80",
		"x:80",
		"80/udp",
		"80/",
		"1-65",
		"+80",
		" 80",
		"80 ",
		"0x50",
		"1-2:3-5",
		"*:80",
		"a.b:80:80",
		"::1:80",
		"80:3000:",
		"127.0.0.1",
		"127.0.0.1:",
		"[127.0.0.1]:80:80:80",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		CLEANUP(keyrows_list_free) char **list = NULL;
		struct err e = { 0 };

		if (publish_add(&list, texts[i], &e) == 0)
			fail_msg("'%s' is taken, as '%s'", texts[i], list[0]);
		assert_true(e.msg[0]);
	}
}

static void a_port_is_kept_once_and_their_number_is_bounded(void **state)
{
	CLEANUP(keyrows_list_free) char **list = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(publish_add(&list, "8080:80", &e), 0);
	assert_int_equal(publish_add(&list, "127.0.0.1:8080:80", &e), 0);
	assert_int_equal(keyrows_list_count(list), 1);
	assert_int_equal(publish_add(&list, "0:80", &e), 0);
	assert_int_equal(publish_add(&list, "0:80", &e), 0); /* two free ports */
	assert_int_equal(keyrows_list_count(list), 3);
	assert_int_equal(publish_add(&list, "9001-9064", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_has_one_text),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(a_port_is_kept_once_and_their_number_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
