/* test_parse - numbers that people type. */
#include "unit.h"

#include "base/parse.h"

#define MAX UINT64_MAX

static void sizes_are_binary_and_exact(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "1k", 1024 },
		{ "1KB", 1024 },
		{ "1KiB", 1024 },
		{ "64m", 64ull << 20 },
		{ "2GiB", 2ull << 30 },
		{ "1.5g", 3ull << 29 },
		{ "0.125m", 1u << 17 },
		{ "1T", 1ull << 40 },
		{ "18446744073709551", 18446744073709551u },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		uint64_t value = 77;

		assert_int_equal(parse_bytes(good[i].text, 0, MAX, &value, &e), 0);
		assert_int_equal(value, good[i].bytes);
	}
}

static void bad_sizes_are_refused_and_leave_the_output_alone(void **state)
{
	static const char *const bad[] = {
		"",
		" 1",
		"1 ",
		"x",
		"-1",
		"+1",
		"1x",
		"1kk",
		"1..5",
		"1.",
		".5",
		"1.2345",
		"99999999999999999999",
		"99999999999T",
		"1e3",
		"0x10",
		"1\n",
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		uint64_t value = 77;

		assert_int_equal(parse_bytes(bad[i], 0, MAX, &value, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_int_equal(value, 77);
	}
}

static void ranges_are_kept_at_both_ends(void **state)
{
	uint64_t value = 0;
	struct err e;

	(void)state;
	assert_int_equal(parse_bytes("1k", 1024, 2048, &value, &e), 0);
	assert_int_equal(parse_bytes("2k", 1024, 2048, &value, &e), 0);
	assert_int_equal(parse_bytes("1023", 1024, 2048, &value, &e), -1);
	assert_int_equal(parse_bytes("2049", 1024, 2048, &value, &e), -1);
	assert_non_null(strstr(e.msg, "outside 1 KiB to 2 KiB"));
	assert_int_equal(parse_count("5", 5, 5, &value, &e), 0);
	assert_int_equal(parse_count("4", 5, 5, &value, &e), -1);
	assert_int_equal(parse_milli("0.5", 500, 500, &value, &e), 0);
	assert_int_equal(parse_milli("0.501", 500, 500, &value, &e), -1);
}

static void durations_add_up(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {
		{ "30", 30000 },      { "1.5s", 1500 },   { "250ms", 250 },     { "2h", 7200000 },
		{ "1h30m", 5400000 }, { "1d", 86400000 }, { "1m1s1ms", 61001 },
	};
	static const char *const bad[] = { "",
					   "s",
					   "1y",
					   "1h30x",
					   "-5s",
					   "99999999999999999d",
					   "9999999999999999999ms9999999999999999999ms" };
	uint64_t value = 0;
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_int_equal(parse_duration_ms(good[i].text, 0, MAX, &value, &e), 0);
		assert_int_equal(value, good[i].ms);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(parse_duration_ms(bad[i], 0, MAX, &value, &e), -1);
}

static void rates_may_end_in_per_second(void **state)
{
	uint64_t value = 0;
	struct err e;

	(void)state;
	assert_int_equal(parse_rate("10MB/s", 0, MAX, &value, &e), 0);
	assert_int_equal(value, 10u << 20);
	assert_int_equal(parse_rate("10m", 0, MAX, &value, &e), 0);
	assert_int_equal(parse_rate("10MB/m", 0, MAX, &value, &e), -1);
	assert_int_equal(parse_rate("/s", 0, MAX, &value, &e), -1);
}

static void what_is_formatted_can_be_read(void **state)
{
	char text[PARSE_FORMAT_MAX_BYTES];

	(void)state;
	assert_string_equal(parse_format_bytes(0, text), "0 bytes");
	assert_string_equal(parse_format_bytes(2ull << 30, text), "2 GiB");
	assert_string_equal(parse_format_bytes(3ull << 29, text), "1.5 GiB");
	assert_string_equal(parse_format_bytes(UINT64_MAX, text), "15.9 EiB");
	assert_string_equal(parse_format_duration(0, text), "0s");
	assert_string_equal(parse_format_duration(90000, text), "1m30s");
	assert_string_equal(parse_format_duration(250, text), "250ms");
	(void)parse_format_duration(UINT64_MAX, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_binary_and_exact),
		cmocka_unit_test(bad_sizes_are_refused_and_leave_the_output_alone),
		cmocka_unit_test(ranges_are_kept_at_both_ends),
		cmocka_unit_test(durations_add_up),
		cmocka_unit_test(rates_may_end_in_per_second),
		cmocka_unit_test(what_is_formatted_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
