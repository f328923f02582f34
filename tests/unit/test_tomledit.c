/* test_tomledit - sets or removes one table, and nothing else of the text changes. */
#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/toml.h"
#include "base/tomledit.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME "config.toml"
#define BODY "command = \"ak\"\nargs = [\"mcp\"]\n"
#define SECTION "[mcp_servers.ak]\n" BODY
#define INLINE "{ command = \"ak\", args = [\"mcp\"] }"
#define MARK "\xef\xbb\xbf"

static const char *const path[] = { "mcp_servers", "ak", NULL };

struct change {
	const char *before;
	const char *after; /* NULL: unchanged */
};

static struct tomledit_table table_of(const char *text, const char *const *keys)
{
	return (struct tomledit_table){ NAME, text, strlen(text), keys };
}

static void expect_text(const char *before, const struct buf *out, const char *after)
{
	if (out->len != strlen(after) || strcmp(buf_text(out), after) != 0)
		fail_msg("----\n%s----became\n%s----not\n%s----", before, buf_text(out), after);
}

static void expect_set_to(const struct change *rows, size_t count, const char *const *keys,
			  const char *body, enum tomledit_done done)
{
	for (size_t i = 0; i < count; i++) {
		struct tomledit_table table = table_of(rows[i].before, keys);
		cleanup_buf struct buf out = { 0 };
		struct err e = { 0 };
		int r = tomledit_set_table(&table, body, TOMLEDIT_REPLACE, &out, &e);

		if (r < 0)
			fail_msg("%s\n%s", rows[i].before, e.msg);
		expect_text(rows[i].before, &out, rows[i].after ? rows[i].after : rows[i].before);
		assert_int_equal(r, done);
	}
}

static void expect_set(const struct change *rows, size_t count, enum tomledit_done done)
{
	expect_set_to(rows, count, path, BODY, done);
}

static void expect_removed(const struct change *rows, size_t count, enum tomledit_done done)
{
	for (size_t i = 0; i < count; i++) {
		struct tomledit_table table = table_of(rows[i].before, path);
		cleanup_buf struct buf out = { 0 };
		struct err e = { 0 };
		int r = tomledit_remove_table(&table, &out, &e);

		if (r < 0)
			fail_msg("%s\n%s", rows[i].before, e.msg);
		expect_text(rows[i].before, &out, rows[i].after ? rows[i].after : rows[i].before);
		assert_int_equal(r, done);
	}
}

static void expect_refused(const char *text, const char *const *keys, const char *body,
			   unsigned flags, enum err_code code, const char *message)
{
	struct tomledit_table table = table_of(text, keys);
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_int_equal(tomledit_set_table(&table, body, flags, &out, &e), -1);
	if (e.code != code || strcmp(e.msg, message) != 0)
		fail_msg("%s\n  says (%d) %s\n  not  (%d) %s", text, e.code, e.msg, code, message);
	assert_null(out.bytes);
}

/* ---- a missing table ---- */

static void absent_table_becomes_a_section_at_the_end(void **state)
{
	static const struct change rows[] = {
		{ "", SECTION },
		{ "a = 1\n", "a = 1\n\n" SECTION },
		{ "a = 1\n\n", "a = 1\n\n" SECTION },
		{ "a = 1\n \t\n", "a = 1\n \t\n" SECTION },
		{ "a = 1", "a = 1\n\n" SECTION },
		{ "# c", "# c\n\n" SECTION },
		{ "\n", "\n" SECTION },
		{ MARK, MARK SECTION },
		{ MARK "a = 1\n", MARK "a = 1\n\n" SECTION },
		{ "[mcp_servers]\n", "[mcp_servers]\n\n" SECTION },
		{ "[mcp_servers.ak2]\nx = 1\n[b]\n[[c]]\n",
		  "[mcp_servers.ak2]\nx = 1\n[b]\n[[c]]\n\n" SECTION },
		{ "mcp_servers.other.x = 1\n", "mcp_servers.other.x = 1\n\n" SECTION },
		{ "[mcp_servers]\nother = { x = 1 }\n",
		  "[mcp_servers]\nother = { x = 1 }\n\n" SECTION },
		{ "ak = 1\n[other.ak]\n", "ak = 1\n[other.ak]\n\n" SECTION },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_ADDED);
}

static void absent_table_of_an_inline_table_becomes_an_entry_of_it(void **state)
{
	static const struct change rows[] = {
		{ "mcp_servers = {} # c\nb = 1\n",
		  "mcp_servers = { ak = " INLINE " } # c\nb = 1\n" },
		{ "mcp_servers = {  }", "mcp_servers = { ak = " INLINE " }" },
		{ "mcp_servers = { o = { x = [\n1, # one\n] } }\n",
		  "mcp_servers = { o = { x = [\n1, # one\n] }, ak = " INLINE " }\n" },
		{ "mcp_servers = {o.x = 1 }\n", "mcp_servers = {o.x = 1, ak = " INLINE " }\n" },
	};
	static const char *const deep[] = { "a", "b c", "d", "e", NULL };
	static const struct change deep_rows[] = {
		{ "a = { 'b c'.d.x = 1 }\n", "a = { 'b c'.d.x = 1, \"b c\".d.e = " INLINE " }\n" },
		{ "a.'b c' = { d.x = 1, f = {} }\n",
		  "a.'b c' = { d.x = 1, f = {}, d.e = " INLINE " }\n" },
		{ "[a]\n'b c' = { d = {} }\n", "[a]\n'b c' = { d = { e = " INLINE " } }\n" },
		{ "a.'b c'.x = {}\n",
		  "a.'b c'.x = {}\n\n[a.\"b c\".d.e]\ncommand = \"ak\"\nargs = [\"mcp\"]\n" },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_ADDED);
	expect_set_to(deep_rows, COUNT_OF(deep_rows), deep, BODY, TOMLEDIT_ADDED);
}

/* ---- an existing table ---- */

static void table_that_means_the_same_is_left_as_it_is(void **state)
{
	static const struct change rows[] = {
		{ SECTION, NULL },
		{ "[mcp_servers.ak]\nargs = [ 'mcp', ] # c\n\ncommand = 'ak'", NULL },
		{ "mcp_servers = { ak = { args = ['mcp'], command = 'ak' } }\n", NULL },
		{ "mcp_servers.ak.args = ['mcp']\nb = 1\nmcp_servers.ak.command = 'ak'\n", NULL },
		{ "[mcp_servers.ak]\r\nargs = ['mcp']\r\ncommand = 'ak'\r\n", NULL },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_UNCHANGED);
}

static void other_contents_are_not_replaced_unless_asked_for(void **state)
{
	(void)state;
	expect_refused("a = 1\n\n[mcp_servers.ak]\ncommand = 'x'\n", path, BODY, 0, ERR_EXISTS,
		       NAME ":3:14: the table 'mcp_servers.ak' is there, with other contents");
	expect_refused("mcp_servers.ak = { args = ['mcp'], command = 'ak', x = 1 }", path, BODY, 0,
		       ERR_EXISTS,
		       NAME ":1:18: the table 'mcp_servers.ak' is there, with other contents");
	expect_refused("[mcp_servers]\nak.env.A = '1'\n", path, BODY, 0, ERR_EXISTS,
		       NAME ":2:1: the table 'mcp_servers.ak' is there, with other contents");
}

static void section_is_replaced_below_its_header(void **state)
{
	static const struct change rows[] = {
		{ "[mcp_servers.ak]\ncommand = 'x'\n", SECTION },
		{ "[mcp_servers.ak]", SECTION },
		{ "[mcp_servers.ak]\nenv = { A = 1, B.c = [{ d = 1 }] }\nx = 1\n[b]\n",
		  SECTION "[b]\n" },
		{ "[mcp_servers.ak] # mine", "[mcp_servers.ak] # mine\n" BODY },
		{ "a = 1\n[ mcp_servers . 'ak' ] # mine\nx = 1\n[b]\n",
		  "a = 1\n[ mcp_servers . 'ak' ] # mine\n" BODY "[b]\n" },
		{ "# 1\n\n[mcp_servers.ak]\ncommand = 'x'\n\n# 2\n[b] # 3\nc = 1 # 4\n",
		  "# 1\n\n" SECTION "\n# 2\n[b] # 3\nc = 1 # 4\n" },
		{ "[mcp_servers.ak]\ncommand = '''\n[no]\n''' \n[b]\n", SECTION "[b]\n" },
		{ "[mcp_servers.ak]\n\tcommand = 'x'\n\n\targs = [\n'a',\n]\n\n[b]\n",
		  SECTION "\n[b]\n" },
		{ "[mcp_servers.ak]\n\ncommand = 'x'\n\n[b]\n", SECTION "\n[b]\n" },
		{ MARK "[mcp_servers.ak]\nx = 1\n", MARK SECTION },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

static void sub_tables_go_wherever_they_are(void **state)
{
	static const struct change rows[] = {
		{ "[mcp_servers.ak]\nx = 1\n\n[mcp_servers.ak.env]\nA = '1'\n\n[b]\n",
		  SECTION "\n[b]\n" },
		{ "[mcp_servers.ak]\nx = 1\n\n[mcp_servers.ak.env]\nA = '1'\n", SECTION },
		{ "[mcp_servers.ak.env]\nA = 1\n[b]\nc = 1\n[mcp_servers.ak]\nx.y = 1\n[d]\n",
		  "[b]\nc = 1\n" SECTION "[d]\n" },
		{ "[mcp_servers.ak]\n[[mcp_servers.ak.l]]\nx = 1\n[b]\n[[mcp_servers.ak.l]]\n"
		  "[mcp_servers.ak.l.m]\ny = 1\n[mcp_servers.ak2.l]\n",
		  SECTION "[b]\n[mcp_servers.ak2.l]\n" },
		{ "[a]\n\n  [mcp_servers.ak.env]\n  A = 1\n\n[b]\n", "[a]\n\n" SECTION "\n[b]\n" },
		{ "[a]\n  [mcp_servers.ak.env] # c\n  A = 1\n[b]\n",
		  "[a]\n" SECTION "  # c\n[b]\n" },
		{ "[mcp_servers.ak.env]\nA = 1\n[mcp_servers.ak.x]\n", SECTION },
		{ MARK "[mcp_servers.ak.env]\nA = 1\n", MARK SECTION },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

static void comments_stay(void **state)
{
	static const struct change rows[] = {
		{ "# 1\n[mcp_servers.ak] # 2\n# 3\ncommand = 'x' # 4\n  # 5\nargs = [] \t# 6\n"
		  "\n# 7\n[mcp_servers.ak.env] # 8\nA = '#'#9\n# 10\n",
		  "# 1\n[mcp_servers.ak] # 2\n" BODY
		  "# 3\n# 4\n  # 5\n# 6\n\n# 7\n# 8\n#9\n# 10\n" },
		{ "[mcp_servers]\n  ak.x = 1 # 1\n# 2\n", "[mcp_servers]\n  # 1\n# 2\n\n" SECTION },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

static void inline_table_is_replaced_where_it_is(void **state)
{
	static const struct change rows[] = {
		{ "[mcp_servers]\nak = { x = 1 } # c\no = 1\n",
		  "[mcp_servers]\nak = " INLINE " # c\no = 1\n" },
		{ "mcp_servers.ak={}", "mcp_servers.ak=" INLINE },
		{ "mcp_servers = { a = 1, ak = { x = [\n#\n] } , b = 2 }\n",
		  "mcp_servers = { a = 1, ak = " INLINE " , b = 2 }\n" },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

static void dotted_keys_in_an_inline_table_become_one_entry(void **state)
{
	static const struct change rows[] = {
		{ "mcp_servers = { ak.x = 1 }\n", "mcp_servers = { ak = " INLINE " }\n" },
		{ "mcp_servers = {ak.x = 1, o = 1, ak.y.z = 2}\n",
		  "mcp_servers = {o = 1, ak = " INLINE "}\n" },
		{ "mcp_servers = { o = 1 , ak.x = 1, ak.y = 2, p = 2 , ak.z = 3 }\n",
		  "mcp_servers = { o = 1, p = 2, ak = " INLINE " }\n" },
		{ "mcp_servers = { ak.x = 1, ak.y = { ak = 1 } , o = 1 }\n",
		  "mcp_servers = { o = 1, ak = " INLINE " }\n" },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

static void dotted_keys_become_a_section(void **state)
{
	static const struct change rows[] = {
		{ "mcp_servers.ak.x = 1\n", SECTION },
		{ "a = 1\nmcp_servers.ak.x = 1\nmcp_servers.o.x = 1\nmcp_servers.ak.y.z = [\n1]",
		  "a = 1\nmcp_servers.o.x = 1\n\n" SECTION },
		{ "[mcp_servers]\nak.x = 1\no.x = 1\n\n[mcp_servers.ak.env]\nA = 1\n",
		  "[mcp_servers]\no.x = 1\n\n" SECTION },
		{ "[mcp_servers]\n\nak.x = 1\n\n[b]\n", "[mcp_servers]\n\n[b]\n\n" SECTION },
	};

	(void)state;
	expect_set(rows, COUNT_OF(rows), TOMLEDIT_REPLACED);
}

/* ---- ends of lines ---- */

static void lines_end_as_those_of_the_file(void **state)
{
	static const struct change added[] = {
		{ "a = 1\r\n",
		  "a = 1\r\n\r\n[mcp_servers.ak]\r\ncommand = \"ak\"\r\nargs = [\"mcp\"]\r\n" },
		{ "a = 1\r\n\r\nb = 1",
		  "a = 1\r\n\r\nb = 1\r\n\r\n"
		  "[mcp_servers.ak]\r\ncommand = \"ak\"\r\nargs = [\"mcp\"]\r\n" },
	};
	static const struct change replaced[] = {
		{ "[mcp_servers.ak]\r\nx = 1 # c\r\n\r\n[b]\r\n",
		  "[mcp_servers.ak]\r\ncommand = \"ak\"\r\nargs = [\"mcp\"]\r\n# "
		  "c\r\n\r\n[b]\r\n" },
		{ "a = 1\r\n\r\n[mcp_servers.ak.env]\r\nx = 1\r\n\r\n[b]\r\n",
		  "a = 1\r\n\r\n[mcp_servers.ak]\r\ncommand = \"ak\"\r\nargs = [\"mcp\"]\r\n\r\n"
		  "[b]\r\n" },
	};

	(void)state;
	expect_set(added, COUNT_OF(added), TOMLEDIT_ADDED);
	expect_set(replaced, COUNT_OF(replaced), TOMLEDIT_REPLACED);
}

static void lines_inside_the_body_end_so_too_and_mean_the_same(void **state)
{
	static const char *const a[] = { "a", NULL };
	static const struct change windows[] = {
		{ "b = 1\r\n", "b = 1\r\n\r\n[a]\r\nx = '''\r\n1\r\n2'''\r\ny = [\r\n]\r\n" },
	};
	static const struct change unix_ends[] = {
		{ "b = 1\n", "b = 1\n\n[a]\nx = '''\n1\n2'''\ny = [\n]\n" },
	};
	static const struct change in_place[] = {
		{ "b = 1\r\na = {}\r\n", "b = 1\r\na = { x = '''\r\n1\r\n2''', y = [\r\n] }\r\n" },
	};

	(void)state;
	expect_set_to(windows, 1, a, "x = '''\n1\n2'''\ny = [\n]", TOMLEDIT_ADDED);
	expect_set_to(unix_ends, 1, a, "x = '''\r\n1\r\n2'''\r\ny = [\r\n]\r\n", TOMLEDIT_ADDED);
	expect_set_to(in_place, 1, a, "x = '''\n1\n2'''\n# c\ny = [\n]\n", TOMLEDIT_REPLACED);
}

/* ---- bodies and paths ---- */

static void inline_tables_in_the_body_stay_what_they_are(void **state)
{
	static const struct change rows[] = {
		{ "mcp_servers = {}\n",
		  "mcp_servers = { ak = { env = { A = 1, B.c = [{ d = 1 }] }, x = 1 } }\n" },
	};

	(void)state;
	expect_set_to(rows, 1, path, "env = { A = 1, B.c = [{ d = 1 }] }\nx = 1\n", TOMLEDIT_ADDED);
}

static void empty_body_is_an_empty_table(void **state)
{
	static const struct change added[] = {
		{ "", "[mcp_servers.ak]\n" },
		{ "mcp_servers = {}\n", "mcp_servers = { ak = {} }\n" },
	};
	static const struct change replaced[] = {
		{ "[mcp_servers.ak]\nx = 1\n", "[mcp_servers.ak]\n" },
		{ "mcp_servers.ak = { x = 1 }\n", "mcp_servers.ak = {}\n" },
	};

	(void)state;
	expect_set_to(added, COUNT_OF(added), path, "", TOMLEDIT_ADDED);
	expect_set_to(replaced, COUNT_OF(replaced), path, "", TOMLEDIT_REPLACED);
}

static void names_that_need_quotes_get_them(void **state)
{
	static const char *const keys[] = { "a b", "", "c\"\\\n\x7f.d", "\xc3\xa9", "_-9", NULL };
	static const struct change rows[] = {
		{ "", "[\"a b\".\"\".\"c\\\"\\\\\\u000A\\u007F.d\".\"\xc3\xa9\"._-9]\nx = 1\n" },
	};

	(void)state;
	expect_set_to(rows, 1, keys, "x = 1\n", TOMLEDIT_ADDED);
}

static void strings_for_bodies_are_read_back_as_they_were(void **state)
{
	static const char text[] = "a\"b\\c\n\td\x01\x7f\xc3\xa9'";
	cleanup_buf struct buf body = { 0 };
	CLEANUP(toml_freep) struct toml *t = NULL;
	const char *back = NULL;
	struct err e = { 0 };

	(void)state;
	buf_init(&body, BUF_TEXT_MAX_BYTES);
	buf_add_text(&body, "x = ");
	tomledit_add_string(&body, text);
	assert_int_equal(toml_parse(body.bytes, body.len, NAME, &t, &e), 0);
	assert_int_equal(toml_expect_text(toml_get(toml_root(t), "x"), &back, &e), 0);
	assert_string_equal(back, text);
}

static void bodies_and_names_that_are_not_toml_are_refused(void **state)
{
	static const char *const bad[] = { "a", "b\xff", NULL };

	(void)state;
	expect_refused("", path, "a = ", 0, ERR_INVALID,
		       "the table's body:1:5: a value is expected: end of file");
	expect_refused("", path, "a = 1\n[b]\n", 0, ERR_INVALID,
		       "the table's body:2:2: the body of a table has no headers");
	expect_refused("", path, "[[b]]", 0, ERR_INVALID,
		       "the table's body:1:3: the body of a table has no headers");
	expect_refused("", bad, "", 0, ERR_INVALID, "the table's name:1:6: not UTF-8: byte 0xff");
}

static void documents_that_are_not_toml_are_refused(void **state)
{
	struct tomledit_table table = table_of("a = 1\nb", path);
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	expect_refused("a = 1\nb", path, BODY, 0, ERR_INVALID,
		       NAME ":2:2: '=' is expected after a key: end of file");
	assert_int_equal(tomledit_remove_table(&table, &out, &e), -1);
	assert_string_equal(e.msg, NAME ":2:2: '=' is expected after a key: end of file");
}

static void what_is_no_table_on_the_way_is_refused_in_words(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "mcp_servers = 3", NAME ":1:15: 'mcp_servers' is an integer, not a table" },
		{ "[[mcp_servers]]\n[mcp_servers.ak]\n",
		  NAME ":1:3: 'mcp_servers' is an array, not a table" },
		{ "mcp_servers = [{}]", NAME ":1:15: 'mcp_servers' is an array, not a table" },
		{ "[mcp_servers]\nak = 'x'", NAME ":2:6: 'ak' is a string, not a table" },
		{ "[[mcp_servers.ak]]", NAME ":1:15: 'ak' is an array, not a table" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct tomledit_table table = table_of(rows[i].text, path);
		struct buf out = { 0 };
		struct err e = { 0 };

		expect_refused(rows[i].text, path, BODY, TOMLEDIT_REPLACE, ERR_INVALID,
			       rows[i].message);
		assert_int_equal(tomledit_remove_table(&table, &out, &e), -1);
		assert_string_equal(e.msg, rows[i].message);
	}
}

/* ---- removing ---- */

static void removed_table_leaves_all_else(void **state)
{
	static const struct change rows[] = {
		{ SECTION, "" },
		{ "a = 1\n\n" SECTION, "a = 1\n" },
		{ "a = 1\n" SECTION "[b]\n", "a = 1\n[b]\n" },
		{ "a = 1\n\n" SECTION "\n[b]\n", "a = 1\n\n[b]\n" },
		{ SECTION "\n[b]\n", "[b]\n" },
		{ "# 1\n[mcp_servers.ak] # 2\nx = 1\n# 3\n[b]\n", "# 1\n# 2\n# 3\n[b]\n" },
		{ "[mcp_servers]\no = 1\n\n" SECTION "\n[mcp_servers.ak.env]\nA = 1\n",
		  "[mcp_servers]\no = 1\n" },
		{ "[mcp_servers.ak.env]\nA = 1\n[b]\nc = 1\n\n[mcp_servers.ak]\n\n[d]\n",
		  "[b]\nc = 1\n\n[d]\n" },
		{ "mcp_servers.ak.x = 1\nmcp_servers.ak.y = 1\n", "" },
		{ "[mcp_servers]\nak = {}\n", "[mcp_servers]\n" },
		{ "mcp_servers = { ak = {} }\n", "mcp_servers = {}\n" },
		{ "mcp_servers = { ak = {}, o = 1 }\n", "mcp_servers = { o = 1 }\n" },
		{ "mcp_servers = { o = 1 , ak = {} }\n", "mcp_servers = { o = 1 }\n" },
		{ "mcp_servers = { o = 1 , ak = {}, p = 2 }\n",
		  "mcp_servers = { o = 1, p = 2 }\n" },
		{ "mcp_servers = { ak.x = 1, o = 1, ak.y = 2 }\n", "mcp_servers = { o = 1 }\n" },
		{ "a = 1\r\n\r\n[mcp_servers.ak]\r\nx = 1\r\n\r\n[b]\r\n", "a = 1\r\n\r\n[b]\r\n" },
		{ MARK "[mcp_servers.ak]\nx = 1\n[c]\n", MARK "[c]\n" },
	};

	(void)state;
	expect_removed(rows, COUNT_OF(rows), TOMLEDIT_REMOVED);
}

static void removing_what_is_not_there_changes_nothing(void **state)
{
	static const struct change rows[] = {
		{ "", NULL },
		{ "ak = {}\nmcp_servers = { ak2 = {} }\n", NULL },
		{ "[mcp_servers]\n\n\n[b.ak]", NULL },
	};

	(void)state;
	expect_removed(rows, COUNT_OF(rows), TOMLEDIT_UNCHANGED);
}

static void what_was_set_and_removed_again_was_never_there(void **state)
{
	static const char *const texts[] = {
		"",
		"# only a comment\n",
		"a = 1\n[b]\nc = 1 # d\n",
		"[mcp_servers.o]\nx = 1\n",
		"mcp_servers = { o = 1 }\n",
		"mcp_servers = {}\n",
		"a = 1\r\n[mcp_servers]\r\no = 1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct tomledit_table table = table_of(texts[i], path);
		cleanup_buf struct buf with = { 0 };
		cleanup_buf struct buf without = { 0 };
		struct err e = { 0 };

		assert_int_equal(tomledit_set_table(&table, BODY, 0, &with, &e), TOMLEDIT_ADDED);
		table = table_of(buf_text(&with), path);
		assert_int_equal(tomledit_remove_table(&table, &without, &e), TOMLEDIT_REMOVED);
		expect_text(texts[i], &without, texts[i]);
	}
}

/* ---- limits ---- */

static void result_beyond_a_limit_is_refused(void **state)
{
	cleanup_buf struct buf text = { 0 };
	struct tomledit_table table;
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
	buf_add_text(&text, "#");
	while (!text.is_cut)
		buf_add_text(&text, "x");
	table = table_of(buf_text(&text), path);
	assert_int_equal(tomledit_set_table(&table, BODY, 0, &out, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.msg, "with the table 'mcp_servers.ak' in it: " NAME
				   ":1:1: the document is larger than 1 MiB");
	assert_null(out.bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_table_becomes_a_section_at_the_end),
		cmocka_unit_test(absent_table_of_an_inline_table_becomes_an_entry_of_it),
		cmocka_unit_test(table_that_means_the_same_is_left_as_it_is),
		cmocka_unit_test(other_contents_are_not_replaced_unless_asked_for),
		cmocka_unit_test(section_is_replaced_below_its_header),
		cmocka_unit_test(sub_tables_go_wherever_they_are),
		cmocka_unit_test(comments_stay),
		cmocka_unit_test(inline_table_is_replaced_where_it_is),
		cmocka_unit_test(dotted_keys_in_an_inline_table_become_one_entry),
		cmocka_unit_test(dotted_keys_become_a_section),
		cmocka_unit_test(lines_end_as_those_of_the_file),
		cmocka_unit_test(lines_inside_the_body_end_so_too_and_mean_the_same),
		cmocka_unit_test(inline_tables_in_the_body_stay_what_they_are),
		cmocka_unit_test(empty_body_is_an_empty_table),
		cmocka_unit_test(names_that_need_quotes_get_them),
		cmocka_unit_test(strings_for_bodies_are_read_back_as_they_were),
		cmocka_unit_test(bodies_and_names_that_are_not_toml_are_refused),
		cmocka_unit_test(documents_that_are_not_toml_are_refused),
		cmocka_unit_test(what_is_no_table_on_the_way_is_refused_in_words),
		cmocka_unit_test(removed_table_leaves_all_else),
		cmocka_unit_test(removing_what_is_not_there_changes_nothing),
		cmocka_unit_test(what_was_set_and_removed_again_was_never_there),
		cmocka_unit_test(result_beyond_a_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
