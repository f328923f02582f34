/* test_toml - TOML 1.0: the meaning of each form, what is refused, and where the error points. */
#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/toml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAME "a.toml"

struct refusal {
	const char *text;
	const char *message; /* without the name: "1:5: message" */
};

static struct toml *parse_bytes(const char *text, size_t len)
{
	struct toml *t = NULL;
	struct err e = { 0 };

	if (toml_parse(text, len, NAME, &t, &e) < 0)
		fail_msg("%s\n%s", text, e.msg);
	assert_int_equal(e.code, ERR_NONE);
	return t;
}

static struct toml *parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

/* "a.b" is looked up step by step; a number is an index into an array. */
static const struct toml_value *find(const struct toml *t, const char *path)
{
	cleanup_free char *copy = mem_dup(path);
	const struct toml_value *v = toml_root(t);
	char *save = NULL;

	for (char *step = strtok_r(copy, ".", &save); step; step = strtok_r(NULL, ".", &save)) {
		if (toml_type(v) == TOML_ARRAY)
			v = toml_item(v, strtoul(step, NULL, 10));
		else
			v = toml_get(v, step);
		if (!v)
			fail_msg("'%s' is not there", path);
	}
	return v;
}

static void expect_text(const char *value, const char *expected, size_t expected_len)
{
	cleanup_free char *text = mem_format("v = %s", value);
	CLEANUP(toml_freep) struct toml *t = parse(text);
	size_t len = 0;
	const char *bytes = toml_string(find(t, "v"), &len);

	assert_int_equal(len, expected_len);
	assert_memory_equal(bytes, expected, len + 1);
}

static void expect_integer(const char *value, int64_t expected)
{
	cleanup_free char *text = mem_format("v = %s", value);
	CLEANUP(toml_freep) struct toml *t = parse(text);

	assert_true(toml_integer(find(t, "v")) == expected);
}

static void expect_refused_bytes(const char *text, size_t len, enum err_code code,
				 const char *message)
{
	cleanup_free char *expected = mem_format(NAME ":%s", message);
	struct toml *t = NULL;
	struct err e = { 0 };

	if (toml_parse(text, len, NAME, &t, &e) == 0)
		fail_msg("taken: %.200s", text);
	if (e.code != code || strcmp(e.msg, expected) != 0)
		fail_msg("%.200s\n  says (%d) %s\n  not  (%d) %s", text, e.code, e.msg, code,
			 expected);
	assert_null(t);
}

static void expect_refused(const struct refusal *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_refused_bytes(rows[i].text, strlen(rows[i].text), ERR_INVALID,
				     rows[i].message);
}

/* Each is refused as the value of a key; other tests check position and reason. */
static void expect_no_values(const char *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *text = mem_format("v = %s", values[i]);
		struct toml *t = NULL;
		struct err e = { 0 };

		if (toml_parse(text, strlen(text), NAME, &t, &e) == 0)
			fail_msg("taken: %s", text);
		assert_int_equal(e.code, ERR_INVALID);
		assert_memory_equal(e.msg, NAME ":1:", strlen(NAME ":1:"));
	}
}

/* ---- strings ---- */

static void strings_have_four_forms(void **state)
{
	(void)state;
	expect_text("\"a\\tb\"", "a\tb", 3);
	expect_text("'a\\tb'", "a\\tb", 4);
	expect_text("\"\"\"\na\nb\"\"\"", "a\nb", 3);
	expect_text("'''\n\na\\'''", "\na\\", 3);
	expect_text("\"\"", "", 0);
	expect_text("''''''", "", 0);
}

static void escapes_mean_characters_and_nul_is_one(void **state)
{
	(void)state;
	expect_text("\"\\b\\t\\n\\f\\r\\\"\\\\\"", "\b\t\n\f\r\"\\", 7);
	expect_text("\"\\u00e9\\U0001F600\\uFFFF\"", "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbf", 9);
	expect_text("\"a\\u0000b\"", "a\0b", 3);
	expect_text("\"\\U0010FFFF\\u007f\\u0080\"", "\xf4\x8f\xbf\xbf\x7f\xc2\x80", 7);
}

static void quotes_may_stand_inside_and_at_the_end_of_multi_line_strings(void **state)
{
	(void)state;
	expect_text("\"\"\"a\"b\"\"c\"\"\"\"\"", "a\"b\"\"c\"\"", 8);
	expect_text("'''a''''", "a'", 2);
	expect_text("\"\"\"\\\"\"\"\"", "\"", 1);
}

static void backslash_at_the_end_of_a_line_joins_it_with_the_next_word(void **state)
{
	(void)state;
	expect_text("\"\"\"a \\  \n\n \t b\"\"\"", "a b", 3);
	expect_text("\"\"\"a\\\r\n  \r\n b\"\"\"", "ab", 2);
	expect_text("\"\"\"a\\\n\"\"\"", "a", 1);
}

static void ends_of_lines_in_strings_are_line_feeds(void **state)
{
	(void)state;
	expect_text("\"\"\"\r\na\r\nb\"\"\"", "a\nb", 3);
	expect_text("'''\r\na\r\nb'''", "a\nb", 3);
}

static void broken_strings_are_refused(void **state)
{
	static const struct refusal rows[] = {
		{ "a = \"x", "1:5: a string that is not closed: '\"x'" },
		{ "a = \"x\nb = 1\"", "1:5: a string that is not closed: '\"x'" },
		{ "a = 'x\r\n'", "1:5: a string that is not closed: ''x'" },
		{ "a = \"\"\"x\n\"\"", "1:5: a string that is not closed: '\"\"\"x'" },
		{ "a = \"x\\", "1:7: not an escape (for a plain backslash, write two): '\\'" },
		{ "a = \"x\\yz\"", "1:7: not an escape (for a plain backslash, write two): '\\y'" },
		{ "a = \"\\e\"", "1:6: not an escape (for a plain backslash, write two): '\\e'" },
		{ "a = \"\\x41\"", "1:6: not an escape (for a plain backslash, write two): '\\x'" },
		{ "a = \"\\\n\"", "1:6: not an escape (for a plain backslash, write two): '\\'" },
		{ "a = \"\"\"\\ x\"\"\"",
		  "1:8: not an escape (for a plain backslash, write two): '\\ '" },
		{ "a = \"\\u12g4\"", "1:6: an escape needs 4 hexadecimal digits: '\\u12'" },
		{ "a = \"\\U0001F60\"", "1:6: an escape needs 8 hexadecimal digits: '\\U0001F60'" },
		{ "a = \"\\ud800\"", "1:6: an escape names no character: '\\ud800'" },
		{ "a = \"\\udfff\"", "1:6: an escape names no character: '\\udfff'" },
		{ "a = \"\\U00110000\"", "1:6: an escape names no character: '\\U00110000'" },
		{ "a = '''x''''''", "1:14: the end of the line is expected: '''" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

/* ---- numbers ---- */

static void integers_have_four_bases_and_64_bits(void **state)
{
	(void)state;
	expect_integer("+99", 99);
	expect_integer("-1_000", -1000);
	expect_integer("0", 0);
	expect_integer("-0", 0);
	expect_integer("0xDEAD_beef", 0xdeadbeef);
	expect_integer("0o0755", 0755);
	expect_integer("0b1101", 13);
	expect_integer("9223372036854775807", INT64_MAX);
	expect_integer("-9223372036854775808", INT64_MIN);
	expect_integer("0x7fffffffffffffff", INT64_MAX);
}

static void integers_beyond_64_bits_are_refused(void **state)
{
	static const char *const values[] = { "9223372036854775808", "-9223372036854775809",
					      "0x8000000000000000", "99999999999999999999999999" };

	(void)state;
	expect_no_values(values, COUNT_OF(values));
	expect_refused_bytes("a = 9223372036854775808", 23, ERR_INVALID,
			     "1:5: the integer does not fit into 64 bits: '9223372036854775808'");
}

static void underscores_stand_between_digits_only(void **state)
{
	static const char *const values[] = { "_1",   "1_",     "1__2", "+_1",  "0x_1",
					      "0x1_", "0b1__0", "1_.5", "1._5", "1.5_",
					      "1e_5", "1e5_",   "1_e5", "0_x1", "1.5__5" };

	(void)state;
	expect_no_values(values, COUNT_OF(values));
}

static void zeros_in_front_signs_before_bases_and_half_numbers_are_refused(void **state)
{
	static const char *const values[] = { "01",  "-01", "00",   "0_1", "01.5", "+0x1", "-0b1",
					      "0X1", "0O7", "0x",   "0xg", "0o8",  "0b2",  "1.",
					      ".5",  "+.5", "1.e5", "1e",  "1e+",  "1.5.", "1e5.5",
					      "++1", "+",   "-",    "1a",  "0x1.5" };

	(void)state;
	expect_no_values(values, COUNT_OF(values));
}

static void floats_have_fractions_exponents_infinity_and_nan(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t =
		parse("v = [1.5, -0.0, 6.02e+2_3, 1E-2, 1_0.2_5, +inf, -inf, nan, -nan, 7, 1e06]");
	static const double expected[] = { 1.5, -0.0, 6.02e23, 0.01, 10.25, INFINITY, -INFINITY };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(expected); i++)
		assert_true(toml_float(toml_item(find(t, "v"), i)) == expected[i]);
	assert_true(signbit(toml_float(find(t, "v.1"))));
	assert_true(isnan(toml_float(find(t, "v.7"))));
	assert_true(isnan(toml_float(find(t, "v.8"))));
	assert_int_equal(toml_type(find(t, "v.9")), TOML_INTEGER);
	assert_true(toml_float(find(t, "v.9")) == 7.0);
	assert_true(toml_float(find(t, "v.10")) == 1e6);
}

static void words_that_are_no_value_are_refused(void **state)
{
	static const char *const values[] = { "True", "FALSE", "truer", "fals", "Inf",
					      "NaN",  "inf_",  "+true", "null", "yes",
					      "=",    "",      "# no",  "1e999" };

	(void)state;
	expect_no_values(values, COUNT_OF(values));
	expect_refused_bytes("a = yes # no", 12, ERR_INVALID,
			     "1:5: not a value (text needs quotes): 'yes'");
}

/* ---- dates and times ---- */

static const struct toml_time *time_of(const struct toml *t, const char *key, enum toml_type type)
{
	assert_int_equal(toml_type(find(t, key)), type);
	return toml_time(find(t, key));
}

static void dates_and_times_have_four_kinds(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("a = 1979-05-27T07:32:01.5-07:30\n"
			       "b = 1979-05-27 07:32:00z # comment\n"
			       "c = 1979-05-27t07:32:00.123456789999\n"
			       "d = 1979-05-27 # comment\n"
			       "e = 23:59:60\n");
	const struct toml_time *a = time_of(t, "a", TOML_OFFSET_DATE_TIME);

	(void)state;
	assert_true(a->year == 1979 && a->month == 5 && a->day == 27);
	assert_true(a->hour == 7 && a->minute == 32 && a->second == 1);
	assert_true(a->nanosecond == 500000000 && a->offset_minutes == -450);
	assert_string_equal(a->text, "1979-05-27T07:32:01.5-07:30");
	assert_int_equal(time_of(t, "b", TOML_OFFSET_DATE_TIME)->offset_minutes, 0);
	assert_string_equal(time_of(t, "b", TOML_OFFSET_DATE_TIME)->text, "1979-05-27 07:32:00z");
	assert_int_equal(time_of(t, "c", TOML_LOCAL_DATE_TIME)->nanosecond, 123456789);
	assert_string_equal(time_of(t, "d", TOML_LOCAL_DATE)->text, "1979-05-27");
	assert_int_equal(time_of(t, "e", TOML_LOCAL_TIME)->second, 60);
	assert_int_equal(time_of(t, "e", TOML_LOCAL_TIME)->year, 0);
}

static void february_has_29_days_in_leap_years_only(void **state)
{
	static const char *const none[] = { "2001-02-29", "1900-02-29", "2100-02-29",
					    "2000-02-30" };
	CLEANUP(toml_freep) struct toml *t = parse("a = 2000-02-29\nb = 2024-02-29");

	(void)state;
	assert_int_equal(toml_time(find(t, "a"))->day, 29);
	assert_int_equal(toml_time(find(t, "b"))->day, 29);
	expect_no_values(none, COUNT_OF(none));
}

static void dates_and_times_that_do_not_exist_are_refused(void **state)
{
	static const char *const values[] = {
		"2000-00-01",
		"2000-13-01",
		"2000-01-00",
		"2000-01-32",
		"2000-04-31",
		"2000-1-01",
		"200-01-01",
		"20000-01-01",
		"24:00:00",
		"00:60:00",
		"00:00:61",
		"1:00:00",
		"00:00",
		"00:00:00.",
		"00:00:00.5Z",
		"2000-01-01T",
		"2000-01-01x00:00:00",
		"2000-01-01T00:00",
		"2000-01-01  00:00:00",
		"2000-01-01 24:00:00",
		"2000-01-01T00:00:00+24:00",
		"2000-01-01T00:00:00+00:60",
		"2000-01-01T00:00:00+0000",
		"2000-01-01T00:00:00-1:00",
		"2000-01-01T00:00:00+",
		"2000-01-01T00:00:00Zx",
	};

	(void)state;
	expect_no_values(values, COUNT_OF(values));
}

/* ---- arrays and inline tables ---- */

static void arrays_mix_types_lines_and_comments(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t =
		parse("v = [ # one\n  1, \"two\" # two\n\n , [3.0, [ ]], { four = 4 },\n]\nw = []");

	(void)state;
	assert_int_equal(toml_count(find(t, "v")), 4);
	assert_int_equal(toml_integer(find(t, "v.0")), 1);
	assert_int_equal(toml_count(find(t, "v.2.1")), 0);
	assert_int_equal(toml_integer(find(t, "v.3.four")), 4);
	assert_int_equal(toml_count(find(t, "w")), 0);
}

static void inline_tables_have_dotted_keys_and_nest(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("v = { a.b = 1, a . \"c\" = 2 , d = { }, e = [\n{}, \n] }");

	(void)state;
	assert_int_equal(toml_integer(find(t, "v.a.b")), 1);
	assert_int_equal(toml_integer(find(t, "v.a.c")), 2);
	assert_int_equal(toml_type(find(t, "v.d")), TOML_TABLE);
	assert_int_equal(toml_count(find(t, "v.e")), 1);
}

static void broken_arrays_and_inline_tables_are_refused(void **state)
{
	static const struct refusal rows[] = {
		{ "a = [1 2]", "1:8: ',' or ']' is expected in the array of line 1: '2'" },
		{ "a = [\n1,\n", "3:1: a value is expected: end of file" },
		{ "a = [\n1\nb = 2\n", "3:1: ',' or ']' is expected in the array of line 1: 'b'" },
		{ "a = [,]", "1:6: a value is expected: ','" },
		{ "a = [1,,2]", "1:8: a value is expected: ','" },
		{ "a = { b = 1, }", "1:14: a key is expected: '}'" },
		{ "a = { , }", "1:7: a key is expected: ','" },
		{ "a = {\nb = 1 }", "1:6: a key is expected: end of line" },
		{ "a = { b = 1\n}", "1:12: ',' or '}' is expected in the same line: end of line" },
		{ "a = { b = 1 c = 2 }", "1:13: ',' or '}' is expected in the same line: 'c'" },
		{ "a = { b = 1, b = 2 }", "1:14: this key is already set (line 1): 'b'" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

/* ---- keys, tables and duplicate definitions ---- */

static void keys_are_bare_quoted_or_dotted(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("a-b_C9 = 1\n1234 = 2\n\"\" = 3\n'q\"' = 4\n"
			       "\"\\u00e9\" = 5\nx . \"y.z\".3.14 = 6\n");
	const struct toml_value *root = toml_root(t);

	(void)state;
	assert_int_equal(toml_integer(toml_get(root, "a-b_C9")), 1);
	assert_int_equal(toml_integer(toml_get(root, "1234")), 2);
	assert_int_equal(toml_integer(toml_get(root, "")), 3);
	assert_int_equal(toml_integer(toml_get(root, "q\"")), 4);
	assert_int_equal(toml_integer(toml_get(root, "\xc3\xa9")), 5);
	root = toml_get(toml_get(root, "x"), "y.z");
	assert_int_equal(toml_integer(toml_get(toml_get(root, "3"), "14")), 6);
	assert_null(toml_get(root, "absent"));
}

static void key_with_nul_is_another_key(void **state)
{
	CLEANUP(toml_freep) struct toml *t = parse("\"a\\u0000b\" = 1\na = 2");
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(toml_root(t), &count);

	(void)state;
	assert_int_equal(count, 2);
	assert_int_equal(entries[0].key_len, 3);
	assert_memory_equal(entries[0].key, "a\0b", 4);
	assert_int_equal(toml_integer(toml_get(toml_root(t), "a")), 2);
}

static void broken_keys_and_headers_are_refused(void **state)
{
	static const struct refusal rows[] = {
		{ "= 1", "1:1: a key is expected: '='" },
		{ "a", "1:2: '=' is expected after a key: end of file" },
		{ "a b = 1", "1:3: '=' is expected after a key: 'b'" },
		{ "a\n= 1", "1:2: '=' is expected after a key: end of line" },
		{ "a = 1 b = 2", "1:7: the end of the line is expected: 'b'" },
		{ "a. = 1", "1:4: a key is expected: '='" },
		{ ".a = 1", "1:1: a key is expected: '.a'" },
		{ "\xc3\xa9t = 1", "1:1: a key is expected: '\xc3\xa9t'" },
		{ "\"\"\"a\"\"\" = 1",
		  "1:1: a key cannot be a multi-line string: '\"\"\"a\"\"\"'" },
		{ "[]", "1:2: a key is expected: ']'" },
		{ "[a", "1:3: ']' is expected after a table's name: end of file" },
		{ "[a]b = 1", "1:4: the end of the line is expected: 'b'" },
		{ "[[a]", "1:4: ']]' is expected after a table's name: ']'" },
		{ "[[a] ]", "1:4: ']]' is expected after a table's name: ']'" },
		{ "[ [a]]", "1:3: a key is expected: '['" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

static void tables_keep_the_order_of_their_keys(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("z = 1\na.x = 2\nm = 3\na.y = 4\nf=5\ng=6\n[b]\n[a.c]\n");
	static const char *const keys[] = { "z", "a", "m", "f", "g", "b" };
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(toml_root(t), &count);

	(void)state;
	assert_int_equal(count, COUNT_OF(keys));
	for (size_t i = 0; i < count; i++)
		assert_string_equal(entries[i].key, keys[i]);
	assert_int_equal(toml_integer(find(t, "a.y")), 4);
	assert_int_equal(toml_type(find(t, "a.c")), TOML_TABLE);
}

static void headers_may_come_in_any_order_and_define_what_was_implied(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("[a.b.c]\nx = 1\n[a]\ny = 2\nb.z = 3\n"
			       "[fruit]\napple.color = 4\n"
			       "[fruit.apple.taste]\nsweet = true\n");

	(void)state;
	assert_int_equal(toml_integer(find(t, "a.b.c.x")), 1);
	assert_int_equal(toml_integer(find(t, "a.y")), 2);
	assert_int_equal(toml_integer(find(t, "a.b.z")), 3);
	assert_true(toml_bool(find(t, "fruit.apple.taste.sweet")));
}

static void arrays_of_tables_take_sub_tables_into_their_last_one(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("[[a]]\nn = 1\n[[a.b]]\n[[a.b]]\n[a.c]\nx = 5\n"
			       "[[ a ]]\nn = 2\n[a.c]\nx = 6\n");

	(void)state;
	assert_int_equal(toml_count(find(t, "a")), 2);
	assert_int_equal(toml_count(find(t, "a.0.b")), 2);
	assert_int_equal(toml_integer(find(t, "a.0.c.x")), 5);
	assert_int_equal(toml_integer(find(t, "a.1.c.x")), 6);
}

static void nothing_is_defined_twice(void **state)
{
	static const struct refusal rows[] = {
		{ "a = 1\na = 2", "2:1: this key is already set (line 1): 'a'" },
		{ "a = 1\n\"\\u0061\" = 2",
		  "2:1: this key is already set (line 1): '\"\\u0061\"'" },
		{ "[a]\n[b]\n[a]", "3:2: this table is already defined (line 1): 'a'" },
		{ "[a.b]\n[a]\n[a]", "3:2: this table is already defined (line 2): 'a'" },
		{ "a.b = 1\n[a]", "2:2: this table is already defined (line 1): 'a'" },
		{ "[a]\nb.c.d = 1\n[a.b.c]", "3:6: this table is already defined (line 2): 'c'" },
		{ "[a.b.c]\n[a]\nb.x = 1\n[a.b]",
		  "4:4: this table is already defined (line 1): 'b'" },
		{ "a = 1\n[a]", "2:2: this key is already set and is not a table (line 1): 'a'" },
		{ "a = 1\n[a.b]", "2:2: this key is already set and is not a table (line 1): 'a'" },
		{ "a.b = 1\na.b.c = 2",
		  "2:3: this key is already set and is not a table (line 1): 'b'" },
		{ "a.b = 1\na = 2", "2:1: this key is already set (line 1): 'a'" },
		{ "[[a]]\n[a]", "2:2: this key is already set and is not a table (line 1): 'a'" },
		{ "[a]\n[[a]]",
		  "2:3: this key is already set and is not an array of tables (line 1): 'a'" },
		{ "[a.b]\n[[a]]",
		  "2:3: this key is already set and is not an array of tables (line 1): 'a'" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

static void what_is_closed_is_not_extended(void **state)
{
	static const struct refusal rows[] = {
		{ "a = {}\na.b = 1", "2:1: an inline table cannot be extended (line 1): 'a'" },
		{ "a = {}\n[a.b]", "2:2: an inline table cannot be extended (line 1): 'a'" },
		{ "a = { b = {} }\n[a.b.c]",
		  "2:2: an inline table cannot be extended (line 1): 'a'" },
		{ "a = {}\n[a]", "2:2: this table is already defined (line 1): 'a'" },
		{ "a = { b = {}, b.c = 1 }",
		  "1:15: an inline table cannot be extended (line 1): 'b'" },
		{ "a = [{}]\n[[a]]", "2:3: an array in brackets cannot be extended (line 1): 'a'" },
		{ "a = [{}]\n[a.b]", "2:2: an array in brackets cannot be extended (line 1): 'a'" },
		{ "a = [{}]\na.b = 1", "2:1: a dotted key cannot go into an array (line 1): 'a'" },
		{ "[[a.b]]\n[a]\nb.c = 1",
		  "3:1: a dotted key cannot go into an array (line 1): 'b'" },
		{ "[a.b]\n[a]\nb.c = 1",
		  "3:1: a dotted key cannot extend a table that has its own header (line 1): 'b'" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

/* ---- bytes ---- */

static void bytes_that_are_not_utf8_are_refused_everywhere(void **state)
{
	static const struct refusal rows[] = {
		{ "# \xff", "1:3: not UTF-8: byte 0xff" },
		{ "a = '\xc3'", "1:6: not UTF-8: byte 0xc3" },
		{ "a = '''\n\xed\xa0\x80'''", "2:1: not UTF-8: byte 0xed" }, /* a surrogate */
		{ "a = \"\xc0\xaf\"", "1:6: not UTF-8: byte 0xc0" },         /* overlong */
		{ "a = \"\xe0\x80\xaf\"", "1:6: not UTF-8: byte 0xe0" },     /* overlong */
		{ "a = \"\xf4\x90\x80\x80\"", "1:6: not UTF-8: byte 0xf4" }, /* too large */
		{ "a = \"\xc3\xa9\x80\"", "1:7: not UTF-8: byte 0x80" },
		{ "\xff\xfe", "1:1: not UTF-8: byte 0xff" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
}

static void control_characters_and_bare_carriage_returns_are_refused(void **state)
{
	static const struct refusal rows[] = {
		{ "# \x1b[2J", "1:3: control character: U+001B" },
		{ "a = '\x7f'", "1:6: control character: U+007F" },
		{ "a = \"\"\"\x0b\"\"\"", "1:8: control character: U+000B" },
		{ "a = 1\rb = 2", "1:6: control character: U+000D" },
		{ "a = 1\r", "1:6: control character: U+000D" },
	};

	(void)state;
	expect_refused(rows, COUNT_OF(rows));
	expect_refused_bytes("a = 1 # \0", 9, ERR_INVALID, "1:9: control character: U+0000");
}

static void byte_order_mark_is_fine_at_the_start_only(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("\xef\xbb\xbf"
			       "a = 1");

	(void)state;
	assert_int_equal(toml_where(find(t, "a")).column, 5);
	expect_refused_bytes("\n\xef\xbb\xbf"
			     "a=1",
			     7, ERR_INVALID,
			     "2:1: a key is expected: '\xef\xbb\xbf"
			     "a'");
}

static void empty_documents_are_empty_tables(void **state)
{
	static const char *const texts[] = { "", " \t", "\n", "\r\n", "# only", "\xef\xbb\xbf" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		CLEANUP(toml_freep) struct toml *t = parse(texts[i]);
		size_t count = 7;

		(void)toml_entries(toml_root(t), &count);
		assert_int_equal(count, 0);
	}
}

/* ---- places and messages ---- */

static void expect_where(const struct toml *t, const char *path, unsigned line, unsigned column)
{
	struct toml_where where = toml_where(find(t, path));

	if (where.line != line || where.column != column)
		fail_msg("'%s' is at %u:%u", path, where.line, where.column);
}

static void every_value_knows_its_line_and_column_in_characters(void **state)
{
	CLEANUP(toml_freep)
	struct toml *t = parse("\"\xc3\xa9\" = 1\r\n"
			       "a = ['\xf0\x9f\x98\x80', {b = 2}]\n"
			       "[x.y]\nk = '''\n\n''' # \nm.n = 0\n[x]\n"
			       "  [[l]]\n  [[l]]\n");
	size_t count = 0;

	(void)state;
	expect_where(t, "\xc3\xa9", 1, 7);
	expect_where(t, "a.0", 2, 6);
	expect_where(t, "a.1", 2, 11);
	expect_where(t, "a.1.b", 2, 16);
	expect_where(t, "x.y", 3, 4);
	expect_where(t, "x.y.k", 4, 5);
	expect_where(t, "x.y.m", 7, 1);
	expect_where(t, "x.y.m.n", 7, 7);
	expect_where(t, "x", 8, 2); /* where it is defined, not where it was implied */
	expect_where(t, "l", 9, 5);
	expect_where(t, "l.1", 10, 5);
	assert_int_equal(toml_entries(find(t, "x.y.m"), &count)->where.column, 3);
}

static void expect_span(const char *text, struct toml_span span, const char *expected)
{
	size_t len = span.end - span.start;

	if (len != strlen(expected) || strncmp(text + span.start, expected, len) != 0)
		fail_msg("'%.*s' instead of '%s'", (int)len, text + span.start, expected);
}

static void every_value_and_key_knows_its_bytes(void **state)
{
	static const char text[] = "\xef\xbb\xbf\"\xc3\xa9\" = 1_0 # c\r\n"
				   "a = [ '\xf0\x9f\x98\x80' , { b = 2.5 } ] \n"
				   "[x . 'y']\nk = '''\n\n''' # \n m.n = 1979-05-27 07:32:00\n[x]\n"
				   "  [[l]]\n  [[ \"l\" ]]\n";
	static const char *const rows[][2] = {
		{ "\xc3\xa9", "1_0" },
		{ "a", "[ '\xf0\x9f\x98\x80' , { b = 2.5 } ]" },
		{ "a.0", "'\xf0\x9f\x98\x80'" },
		{ "a.1", "{ b = 2.5 }" },
		{ "a.1.b", "2.5" },
		{ "x", "x" },
		{ "x.y", "'y'" },
		{ "x.y.k", "'''\n\n'''" },
		{ "x.y.m", "m" },
		{ "x.y.m.n", "1979-05-27 07:32:00" },
		{ "l", "l" },
		{ "l.0", "l" },
		{ "l.1", "\"l\"" },
	};
	CLEANUP(toml_freep) struct toml *t = parse(text);
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		expect_span(text, toml_span(find(t, rows[i][0])), rows[i][1]);
	assert_int_equal(toml_span(find(t, "x")).start, strstr(text, "[x]") + 1 - text);
	assert_int_equal(toml_span(find(t, "l.0")).start, strstr(text, "[[l]]") + 2 - text);
	assert_int_equal(toml_span(toml_root(t)).start, 0);
	assert_int_equal(toml_span(toml_root(t)).end, strlen(text));
	expect_span(text, toml_entries(toml_root(t), &count)->span, "\"\xc3\xa9\"");
	expect_span(text, toml_entries(find(t, "x"), &count)->span, "'y'");
	expect_span(text, toml_entries(find(t, "a.1"), &count)->span, "b");
}

static bool is_equal(const char *a, const char *b)
{
	CLEANUP(toml_freep) struct toml *one = parse(a);
	CLEANUP(toml_freep) struct toml *other = parse(b);
	bool result = toml_is_equal(toml_root(one), toml_root(other));

	assert_true(toml_is_equal(toml_root(other), toml_root(one)) == result);
	return result;
}

static void equal_is_what_means_the_same(void **state)
{
	static const struct {
		const char *a, *b;
		bool is_equal;
	} rows[] = {
		{ "a = 1\nb = 'x'", "b = \"\\u0078\" # c\na = 0x1", true },
		{ "[a]\n[a.b]\nc = [1,2]", "a.b = { c = [\n1, 2,] }", true },
		{ "[[a]]\n[[a]]\nb = 1", "a = [{}, {b = 1}]", true },
		{ "a = nan", "a = -nan", true },
		{ "a = 10.0", "a = 1e1", true },
		{ "a = 1979-05-27T07:32:00.5Z", "a = 1979-05-27 07:32:00.500+00:00", true },
		{ "a = 1", "a = 1.0", false },
		{ "a = 1", "a = 2", false },
		{ "a = 1", "b = 1", false },
		{ "a = 1", "a = 1\nb = 1", false },
		{ "a = true", "a = false", false },
		{ "a = 0.0", "a = -0.0", false },
		{ "a = nan", "a = 1.5", false },
		{ "a = inf", "a = -inf", false },
		{ "a = 'x'", "a = 'y'", false },
		{ "a = 'x'", "a = \"x\\u0000\"", false },
		{ "a = [1, 2]", "a = [2, 1]", false },
		{ "a = [1]", "a = [1, 1]", false },
		{ "a = {}", "a = []", false },
		{ "a = 1979-05-27", "a = 1979-05-28", false },
		{ "a = 1979-05-27", "a = 1979-06-27", false },
		{ "a = 1979-05-27", "a = 1978-05-27", false },
		{ "a = 07:32:00", "a = 08:32:00", false },
		{ "a = 07:32:00", "a = 07:33:00", false },
		{ "a = 07:32:00", "a = 07:32:01", false },
		{ "a = 07:32:00", "a = 07:32:00.1", false },
		{ "a = 1979-05-27T07:32:00Z", "a = 1979-05-27T07:32:00", false },
		{ "a = 1979-05-27T07:32:00Z", "a = 1979-05-27T07:32:00+01:00", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (is_equal(rows[i].a, rows[i].b) != rows[i].is_equal)
			fail_msg("'%s' and '%s'", rows[i].a, rows[i].b);
}

static void complaints_about_a_value_carry_its_place(void **state)
{
	CLEANUP(toml_freep) struct toml *t = parse("\n [s]\n k = 1\n n = \"\\u0000\"");
	const char *text = "unchanged";
	size_t count = 0;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(toml_err(find(t, "s.k"), &e, "%d \033 is \xc2\x9b odd", 1), -1);
	assert_string_equal(e.msg, NAME ":3:6: 1 ? is ?? odd");
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(toml_err_key(toml_entries(find(t, "s"), &count), &e, "a key"), -1);
	assert_string_equal(e.msg, NAME ":3:2: a key");
	assert_int_equal(toml_expect(find(t, "s.k"), TOML_TABLE, &e), -1);
	assert_string_equal(e.msg, NAME ":3:6: a table is expected, not an integer");
	assert_int_equal(toml_expect_text(find(t, "s"), &text, &e), -1);
	assert_string_equal(e.msg, NAME ":2:3: a string is expected, not a table");
	assert_int_equal(toml_expect_text(find(t, "s.n"), &text, &e), -1);
	assert_string_equal(e.msg, NAME ":4:6: the string holds a NUL");
	assert_string_equal(text, "unchanged");
}

static void quoted_text_is_short_and_harmless(void **state)
{
	static const char name[] = "/a/very/long/path/";
	CLEANUP(buf_done) struct buf long_name = { 0 };
	struct toml *t = NULL;
	struct err e = { 0 };

	(void)state;
	expect_refused_bytes("a = \xc2\x9b"
			     "31m",
			     9, ERR_INVALID, "1:5: a value is expected: '\?\?31m'");
	/* 39 bytes and half a character */
	expect_refused_bytes("a = 0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9zz", 49,
			     ERR_INVALID,
			     "1:7: the end of the line is expected: "
			     "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'");
	buf_init(&long_name, BUF_TEXT_MAX_BYTES);
	for (unsigned i = 0; i < 100; i++)
		buf_add_text(&long_name, name);
	assert_int_equal(toml_parse("\n =", 3, buf_text(&long_name), &t, &e), -1);
	assert_int_equal(strncmp(e.msg, "...", 3), 0);
	assert_non_null(strstr(e.msg, "/path/:2:2: a key is expected"));
}

/* ---- limits ---- */

/* `count` times a text, with something before and after. */
static void repeat(struct buf *out, const char *before, const char *text, unsigned count,
		   const char *after)
{
	buf_done(out);
	buf_init(out, 2 * TOML_DOCUMENT_MAX_BYTES);
	buf_add_text(out, before);
	for (unsigned i = 0; i < count; i++)
		buf_add_text(out, text);
	buf_add_text(out, after);
}

static void expect_limit(const struct buf *text, const char *words)
{
	struct toml *t = NULL;
	struct err e = { 0 };

	assert_int_equal(toml_parse(text->bytes, text->len, NAME, &t, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(strncmp(e.msg, NAME ":1:", strlen(NAME ":1:")), 0);
	if (!strstr(e.msg, words))
		fail_msg("'%s' says nothing of '%s'", e.msg, words);
}

static void expect_refused_start(const struct buf *text, const char *start)
{
	struct toml *t = NULL;
	struct err e = { 0 };

	assert_int_equal(toml_parse(text->bytes, text->len, NAME, &t, &e), -1);
	if (strncmp(e.msg + strlen(NAME ":"), start, strlen(start)) != 0)
		fail_msg("'%s' does not say '%s'", e.msg, start);
}

static void expect_fine(const struct buf *text)
{
	CLEANUP(toml_freep) struct toml *t = parse_bytes(text->bytes, text->len);

	assert_non_null(t);
}

static void depth_is_bounded_however_it_is_made(void **state)
{
	static const char *const forms[][3] = {
		{ "a=", "[", "" },   { "a=", "{b=", "" },   { "", "a.", "a=1" },
		{ "[", "a.", "a]" }, { "[[", "a.", "a]]" },
	};
	CLEANUP(buf_done) struct buf text = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		repeat(&text, forms[i][0], forms[i][1], 200000, forms[i][2]);
		expect_limit(&text, "nested too deeply");
	}
	repeat(&text, "", "a.", TOML_DEPTH_MAX - 1, "a=1");
	expect_fine(&text);
	repeat(&text, "", "a.", TOML_DEPTH_MAX, "a=1");
	expect_limit(&text, "nested too deeply");
}

static void sizes_and_numbers_are_bounded(void **state)
{
	CLEANUP(buf_done) struct buf text = { 0 };

	(void)state;
	repeat(&text, "a=[", "1,", TOML_VALUES_MAX - 1, "]");
	expect_fine(&text);
	repeat(&text, "a=[", "1,", TOML_VALUES_MAX, "]");
	expect_limit(&text, "too many values");
	repeat(&text, "", "k", TOML_KEY_MAX_BYTES, "=1");
	expect_fine(&text);
	repeat(&text, "", "k", TOML_KEY_MAX_BYTES + 1, "=1");
	expect_limit(&text, "the key is too long");
	repeat(&text, "a=0.", "0", TOML_WORD_MAX_BYTES - 2, "");
	expect_fine(&text);
	repeat(&text, "a=0.", "0", TOML_WORD_MAX_BYTES - 1, "");
	expect_limit(&text, "the value is too long");
	repeat(&text, "#", "x", TOML_DOCUMENT_MAX_BYTES - 1, "");
	expect_fine(&text);
	repeat(&text, "#", "x", TOML_DOCUMENT_MAX_BYTES, "");
	expect_limit(&text, "larger than 1 MiB");
}

/* Keys of one table in any order: each is found, and no duplicate is accepted. */
static void every_key_of_a_large_table_is_found(void **state)
{
	static const unsigned steps[] = { 1, 999, 389 }; /* up, down, across */
	enum { COUNT = 1000 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		CLEANUP(toml_freep) struct toml *t = NULL;
		cleanup_buf struct buf text = { 0 };

		buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
		for (unsigned n = 0; n < COUNT; n++)
			buf_addf(&text, "k%u = %u\n", n * steps[i] % COUNT, n * steps[i] % COUNT);
		t = parse_bytes(text.bytes, text.len);
		for (unsigned n = 0; n < COUNT; n++) {
			cleanup_free char *key = mem_format("k%u", n);
			const struct toml_value *v = toml_get(toml_root(t), key);

			assert_non_null(v);
			assert_int_equal(toml_integer(v), n);
		}
		assert_null(toml_get(toml_root(t), "k1000"));
		assert_null(toml_get(toml_root(t), "k"));
		assert_null(toml_get(toml_root(t), "j9"));
		buf_addf(&text, "k%u = 0", (unsigned)i * 333);
		expect_refused_start(&text, "1001:1: this key is already set (line ");
	}
}

/* Measures cpu time, also with sanitizers: quadratic growth would take minutes. */
static void hostile_documents_take_no_long_time(void **state)
{
	static const struct {
		const char *before, *form; /* the format has one number */
		unsigned count;
	} documents[] = {
		{ "", "key_%05u = 1\n", 65000 },
		{ "", "[table.t%u]\n", 64000 },
		{ "", "[[a.b]]\nx%u = 1\n", 32000 },
		{ "", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a%u.b=1\n", 16000 },
		{ "a = {", "b%05u=1,", 65000 },
		{ "", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk%05u=1\n",
		  14000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(documents); i++) {
		CLEANUP(toml_freep) struct toml *t = NULL;
		cleanup_buf struct buf text = { 0 };
		struct err e = { 0 };
		clock_t start;

		buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
		buf_add_text(&text, documents[i].before);
		for (unsigned n = 0; n < documents[i].count; n++)
			buf_addf(&text, documents[i].form, n);
		if (documents[i].before[0])
			buf_add_text(&text, "z=1}");
		assert_false(text.is_cut);
		start = clock();
		if (toml_parse(text.bytes, text.len, NAME, &t, &e) < 0)
			fail_msg("%s", e.msg);
		assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	}
}

static void free_accepts_nothing(void **state)
{
	struct toml *t = NULL;

	(void)state;
	toml_free(NULL);
	toml_freep(&t);
	t = parse("a = 1");
	toml_freep(&t);
	assert_null(t);
	toml_freep(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_have_four_forms),
		cmocka_unit_test(escapes_mean_characters_and_nul_is_one),
		cmocka_unit_test(quotes_may_stand_inside_and_at_the_end_of_multi_line_strings),
		cmocka_unit_test(backslash_at_the_end_of_a_line_joins_it_with_the_next_word),
		cmocka_unit_test(ends_of_lines_in_strings_are_line_feeds),
		cmocka_unit_test(broken_strings_are_refused),
		cmocka_unit_test(integers_have_four_bases_and_64_bits),
		cmocka_unit_test(integers_beyond_64_bits_are_refused),
		cmocka_unit_test(underscores_stand_between_digits_only),
		cmocka_unit_test(zeros_in_front_signs_before_bases_and_half_numbers_are_refused),
		cmocka_unit_test(floats_have_fractions_exponents_infinity_and_nan),
		cmocka_unit_test(words_that_are_no_value_are_refused),
		cmocka_unit_test(dates_and_times_have_four_kinds),
		cmocka_unit_test(february_has_29_days_in_leap_years_only),
		cmocka_unit_test(dates_and_times_that_do_not_exist_are_refused),
		cmocka_unit_test(arrays_mix_types_lines_and_comments),
		cmocka_unit_test(inline_tables_have_dotted_keys_and_nest),
		cmocka_unit_test(broken_arrays_and_inline_tables_are_refused),
		cmocka_unit_test(keys_are_bare_quoted_or_dotted),
		cmocka_unit_test(key_with_nul_is_another_key),
		cmocka_unit_test(broken_keys_and_headers_are_refused),
		cmocka_unit_test(tables_keep_the_order_of_their_keys),
		cmocka_unit_test(headers_may_come_in_any_order_and_define_what_was_implied),
		cmocka_unit_test(arrays_of_tables_take_sub_tables_into_their_last_one),
		cmocka_unit_test(nothing_is_defined_twice),
		cmocka_unit_test(what_is_closed_is_not_extended),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused_everywhere),
		cmocka_unit_test(control_characters_and_bare_carriage_returns_are_refused),
		cmocka_unit_test(byte_order_mark_is_fine_at_the_start_only),
		cmocka_unit_test(empty_documents_are_empty_tables),
		cmocka_unit_test(every_value_knows_its_line_and_column_in_characters),
		cmocka_unit_test(every_value_and_key_knows_its_bytes),
		cmocka_unit_test(equal_is_what_means_the_same),
		cmocka_unit_test(complaints_about_a_value_carry_its_place),
		cmocka_unit_test(quoted_text_is_short_and_harmless),
		cmocka_unit_test(depth_is_bounded_however_it_is_made),
		cmocka_unit_test(sizes_and_numbers_are_bounded),
		cmocka_unit_test(every_key_of_a_large_table_is_found),
		cmocka_unit_test(hostile_documents_take_no_long_time),
		cmocka_unit_test(free_accepts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
