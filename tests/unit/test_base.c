/* test_base - errors, buffers, paths, suggestions, tables, JSON. */
#include "unit.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/shown.h"
#include "base/suggest.h"
#include "base/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void an_error_grows_words_in_front_and_keeps_its_code(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_sys(&e, ENOSPC, "write '%s'", "usr/bin/x"), -1);
	assert_int_equal(err_wrap(&e, "apply layer %d", 3), -1);
	assert_string_equal(e.msg, "apply layer 3: write 'usr/bin/x': No space left on device");
	assert_int_equal(e.code, ERR_SYSTEM);
	assert_int_equal(e.sys, ENOSPC);
}

static void a_long_error_is_cut_and_says_so(void **state)
{
	char words[2 * ERR_MESSAGE_MAX_BYTES];
	struct err e = { 0 };

	(void)state;
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	(void)err_set(&e, ERR_INVALID, "%s", words);
	assert_int_equal(strlen(e.msg), ERR_MESSAGE_MAX_BYTES - 1);
	assert_string_equal(e.msg + ERR_MESSAGE_MAX_BYTES - 4, "...");
	(void)err_wrap(&e, "outer");
	assert_true(strncmp(e.msg, "outer: xxx", 10) == 0);
	assert_string_equal(e.msg + strlen(e.msg) - 3, "...");
}

static void a_foreign_error_is_made_harmless(void **state)
{
	struct err e;

	(void)state;
	memset(&e, 0xff, sizeof(e));
	memcpy(e.msg, "a\033b", 3);
	err_sanitize(&e);
	assert_int_equal(e.code, ERR_SYSTEM);
	assert_int_equal(e.msg[sizeof(e.msg) - 1], '\0');
	assert_int_equal(e.msg[1], '?');
}

static void what_a_terminal_would_obey_is_made_visible(void **state)
{
	static const struct {
		const char *text, *replaced, *escaped;
	} cases[] = {
		{ "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\033[2Jb", "a?[2Jb", "a\\x1b[2Jb" },
		{ "a\nb\x7f", "a?b?", "a\\x0ab\\x7f" },
		{ "\xc2\x9b"
		  "2J",
		  "??2J", "\\xc2\\x9b2J" }, /* U+009B is ESC [ */
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0" },
		{ "\x9b"
		  "2J\xff",
		  "?2J?", "\\x9b2J\\xff" }, /* no UTF-8 at all */
		{ "\xe0\x82\x9b\xed\xa0\x80", "??????",
		  "\\xe0\\x82\\x9b\\xed\\xa0\\x80" }, /* overlong, a surrogate */
		{ "\xe2\x80\xae"
		  "exe",
		  "???exe", "\\xe2\\x80\\xaeexe" }, /* right to left */
		{ "\xe2\x80\xa8\xe2\x81\xa9", "??????", "\\xe2\\x80\\xa8\\xe2\\x81\\xa9" },
		{ "end\xc3", "end?", "end\\xc3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char copy[64];
		cleanup_buf struct buf out;

		buf_init(&out, 256);
		(void)snprintf(copy, sizeof(copy), "%s", cases[i].text);
		shown_replace(copy);
		assert_string_equal(copy, cases[i].replaced);
		shown_add(&out, cases[i].text);
		assert_string_equal(buf_text(&out), cases[i].escaped);
	}
	{
		char lines[] = "a\nb\033\xc2\x85\n";

		shown_replace_lines(lines, strlen(lines));
		assert_string_equal(lines, "a\nb???\n");
	}
}

static void json_escapes_every_control_character(void **state)
{
	cleanup_buf struct buf out;
	struct json j;

	(void)state;
	buf_init(&out, 256);
	json_init(&j, &out);
	json_add_text(&j, NULL, "\x1b\x7f\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\x9b\xc2");
	assert_string_equal(
		buf_text(&out),
		"\"\\u001b\\u007f\\u0080\\u009b\\u009f\xc2\xa0\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void a_buffer_never_exceeds_its_maximum(void **state)
{
	cleanup_buf struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_string_equal(buf_text(&b), "");
	buf_add_text(&b, "12345");
	assert_false(b.is_cut);
	buf_add_text(&b, "67890");
	assert_false(b.is_cut);
	buf_add_text(&b, "x");
	assert_true(b.is_cut);
	assert_string_equal(buf_text(&b), "1234567890");
	assert_int_equal(b.len, 10);
}

static void paths_become_absolute_and_normal(void **state)
{
	static const struct {
		const char *base, *path, *wanted;
	} cases[] = {
		{ "/a/b", "c", "/a/b/c" }, { "/a/b", "../c", "/a/c" },
		{ "/", "x", "/x" },        { "/a", "/x//y/./z/", "/x/y/z" },
		{ "/a", ".", "/a" },       { "/a", "/", "/" },
		{ "/a", "..", "/" },       { "/a", "../..", NULL },
		{ "/", "/../x", NULL },    { "/a", "...", "/a/..." },
		{ "/a", "", "/a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		cleanup_free char *path = path_absolute(cases[i].base, cases[i].path);

		if (cases[i].wanted)
			assert_string_equal(path, cases[i].wanted);
		else
			assert_null(path);
	}
	assert_true(path_is_within("/a/b", "/a"));
	assert_true(path_is_within("/a", "/a"));
	assert_true(path_is_within("/a", "/"));
	assert_false(path_is_within("/ab", "/a"));
}

static void near_words_are_suggested_and_far_ones_not(void **state)
{
	static const char *const words[] = { "memory", "timeout", "mount", "run" };

	(void)state;
	assert_string_equal(suggest_nearest("memroy", words, 4), "memory");
	assert_string_equal(suggest_nearest("mem", words, 4), "memory");
	assert_string_equal(suggest_nearest("mout", words, 4), "mount");
	assert_string_equal(suggest_nearest("rnu", words, 4), "run");
	assert_null(suggest_nearest("zzzzzz", words, 4));
	assert_null(suggest_nearest("x", words, 4));
}

static void json_is_valid_whatever_the_bytes(void **state)
{
	static const char bytes[] =
		"a\"b\\c\n\x01\xff\xc3\xa9\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xe2\x82";
	cleanup_buf struct buf out;
	struct json j;

	(void)state;
	buf_init(&out, 4096);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_bytes(&j, "k", bytes, sizeof(bytes) - 1);
	json_open_array(&j, "list");
	json_add_number(&j, NULL, -5);
	json_add_bool(&j, NULL, true);
	json_add_null(&j, NULL);
	json_close_array(&j);
	json_close_object(&j);
	assert_string_equal(buf_text(&out), "{\"k\":\"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\xc3\xa9"
					    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
					    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
					    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\","
					    "\"list\":[-5,true,null]}");
}

static void a_table_aligns_and_defuses_its_cells(void **state)
{
	CLEANUP(table_freep) struct table *t = table_new(2);
	cleanup_buf struct buf out;

	(void)state;
	buf_init(&out, 4096);
	table_add_row(t, (const char *const[]){ "a", "b\033[31m" });
	table_add_row(t, (const char *const[]){ "l\xc3\xa9ong", "c" });
	table_format(t, &out);
	assert_string_equal(buf_text(&out), "a      b?[31m\nl\xc3\xa9ong  c\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_grows_words_in_front_and_keeps_its_code),
		cmocka_unit_test(a_long_error_is_cut_and_says_so),
		cmocka_unit_test(a_foreign_error_is_made_harmless),
		cmocka_unit_test(what_a_terminal_would_obey_is_made_visible),
		cmocka_unit_test(json_escapes_every_control_character),
		cmocka_unit_test(a_buffer_never_exceeds_its_maximum),
		cmocka_unit_test(paths_become_absolute_and_normal),
		cmocka_unit_test(near_words_are_suggested_and_far_ones_not),
		cmocka_unit_test(json_is_valid_whatever_the_bytes),
		cmocka_unit_test(a_table_aligns_and_defuses_its_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
