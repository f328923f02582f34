/*
 * test_jsonedit - JSON settings: which are refused and at which position, and what an edit
 * preserves.
 *
 * Documents are passed without a NUL after them, so that a sanitizer detects reads beyond the end.
 */
#include "unit.h"

#include "base/buf.h"
#include "base/jsonedit.h"
#include "base/jsonwalk.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME "a.json"
#define VALUE "{\"command\":\"ak\",\"args\":[\"mcp\",\"server\"]}"
#define JSONC (JSONEDIT_ALLOW_COMMENTS | JSONEDIT_ALLOW_TRAILING_COMMAS)

static const char *const keys[] = { "mcp", "ak", NULL };

struct pair {
	const char *text;
	const char *result; /* after the edit; or the message, without the name */
};

/* Exactly these bytes on the heap. */
static struct jsonscan_text document_of(const char *bytes, size_t len)
{
	char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return (struct jsonscan_text){ NAME, copy, len };
}

static void document_done(struct jsonscan_text *t)
{
	free((char *)t->bytes);
}

#define cleanup_document CLEANUP(document_done)

static void expect_taken(const char *text, unsigned flags)
{
	cleanup_document struct jsonscan_text t = document_of(text, strlen(text));
	struct err e = { 0 };

	if (jsonscan_check(&t, flags, &e) < 0)
		fail_msg("%s\n%s", text, e.msg);
	assert_int_equal(e.code, ERR_NONE);
}

static void expect_refused_bytes(const char *text, size_t len, unsigned flags, enum err_code code,
				 const char *message)
{
	cleanup_document struct jsonscan_text t = document_of(text, len);
	cleanup_free char *expected = mem_format(NAME ":%s", message);
	struct err e = { 0 };

	if (jsonscan_check(&t, flags, &e) == 0)
		fail_msg("taken: %.200s", text);
	assert_string_equal(e.msg, expected);
	assert_int_equal(e.code, code);
}

static void expect_refused(const char *text, unsigned flags, const char *message)
{
	expect_refused_bytes(text, strlen(text), flags, ERR_INVALID, message);
}

static void expect_state(const char *text, const char *value, unsigned flags,
			 enum jsonedit_state expected)
{
	cleanup_document struct jsonscan_text t = document_of(text, strlen(text));
	enum jsonedit_state state = JSONEDIT_ABSENT;
	struct err e = { 0 };

	if (jsonedit_look(&t, keys, value, flags, &state, &e) < 0)
		fail_msg("%s\n%s", text, e.msg);
	if (state != expected)
		fail_msg("%s\n%s\nis %d, not %d", text, value, state, expected);
}

/* The edit gives `expected`; repeated, it changes nothing. */
static void expect_set(const char *text, unsigned flags, const char *expected)
{
	cleanup_document struct jsonscan_text t = document_of(text, strlen(text));
	cleanup_free char *result = NULL;
	cleanup_free char *again = NULL;
	size_t len = 0;
	struct err e = { 0 };
	int r = jsonedit_set(&t, keys, VALUE, flags, &result, &len, &e);

	if (r < 0)
		fail_msg("%s\n%s", text, e.msg);
	assert_int_equal(r, 1);
	assert_string_equal(result, expected);
	assert_int_equal(len, strlen(expected));
	expect_state(result, VALUE, flags, JSONEDIT_SAME);
	t = (document_done(&t), document_of(result, len));
	assert_int_equal(jsonedit_set(&t, keys, VALUE, flags, &again, &len, &e), 0);
	assert_null(again);
}

static void expect_set_refused(const char *text, unsigned flags, enum err_code code,
			       const char *message)
{
	cleanup_document struct jsonscan_text t = document_of(text, strlen(text));
	cleanup_free char *expected = mem_format(NAME ":%s", message);
	cleanup_free char *result = NULL;
	size_t len = 0;
	struct err e = { 0 };

	if (jsonedit_set(&t, keys, VALUE, flags, &result, &len, &e) >= 0)
		fail_msg("taken: %s\n%s", text, result);
	assert_string_equal(e.msg, expected);
	assert_int_equal(e.code, code);
	assert_null(result);
}

static void expect_removed(const char *text, unsigned flags, const char *expected)
{
	cleanup_document struct jsonscan_text t = document_of(text, strlen(text));
	cleanup_free char *result = NULL;
	size_t len = 0;
	struct err e = { 0 };
	int r = jsonedit_remove(&t, keys, flags, &result, &len, &e);

	if (r < 0)
		fail_msg("%s\n%s", text, e.msg);
	assert_int_equal(r, expected != NULL);
	if (!expected)
		return;
	assert_string_equal(result, expected);
	assert_int_equal(len, strlen(expected));
	expect_state(result, VALUE, flags, JSONEDIT_ABSENT);
}

/* ---- the check ---- */

static void every_form_of_value_is_taken(void **state)
{
	static const char *const texts[] = {
		"null",
		" true ",
		"false",
		"0",
		"-0",
		"10",
		"1239",
		"-12.50",
		"1e5",
		"1E+5",
		"0.5e-10",
		"\"\"",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\uD83D\\uDE00\\ud800\"",
		"\"\xc3\xa9 \xf0\x9f\x98\x80\x7f\"",
		"[]",
		"[ 1 , [ ] , { } ]",
		"{}",
		"{\"\":{\"a\":[{}]}}",
		"\t\r\n {\r\n\t}\n",
		"\xef\xbb\xbf{}",
		"[1]\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		expect_taken(texts[i], 0);
}

static void what_is_no_json_is_refused_with_line_and_column(void **state)
{
	static const struct pair pairs[] = {
		{ "", "1:1: a value is expected: end of file" },
		{ " \n\t", "2:2: a value is expected: end of file" },
		{ "{", "1:2: a key in double quotes is expected: end of file" },
		{ "{\n  foo: 1}", "2:3: a key in double quotes is expected: 'foo'" },
		{ "{'a': 1}", "1:2: a key in double quotes is expected: ''a''" },
		{ "{\"a\" 1}", "1:6: ':' is expected after a key: '1'" },
		{ "{\"a\":}", "1:6: a value is expected: '}'" },
		{ "{\"a\":1 \"b\":2}", "1:8: ',' or '}' is expected: '\"'" },
		{ "{\"a\":1\n", "2:1: ',' or '}' is expected: end of file" },
		{ "{\"a\":1,}", "1:7: a comma before '}' is not allowed here" },
		{ "[1,\n]", "1:3: a comma before ']' is not allowed here" },
		{ "{,}", "1:2: a key in double quotes is expected: ','" },
		{ "[,]", "1:2: a value is expected: ','" },
		{ "[1 2]", "1:4: ',' or ']' is expected: '2'" },
		{ "[1}", "1:3: ',' or ']' is expected: '}'" },
		{ "]", "1:1: a value is expected: ']'" },
		{ "tru", "1:1: a value is expected: 'tru'" },
		{ "nulls", "1:1: a value is expected: 'nulls'" },
		{ "True", "1:1: a value is expected: 'True'" },
		{ "NaN", "1:1: a value is expected: 'NaN'" },
		{ "01", "1:1: not a number: '01'" },
		{ "-", "1:1: not a number: '-'" },
		{ "1.", "1:1: not a number: '1.'" },
		{ ".5", "1:1: a value is expected: '.5'" },
		{ "+1", "1:1: a value is expected: '+1'" },
		{ "1e", "1:1: not a number: '1e'" },
		{ "1e+", "1:1: not a number: '1e+'" },
		{ "0x10", "1:1: not a number: '0x10'" },
		{ "\"abc", "1:1: a string that does not end" },
		{ "[\"abc\n\"]", "1:2: a string that does not end" },
		{ "[\"abc\r\n\"]", "1:2: a string that does not end" },
		{ "\"\\", "1:2: an unknown escape in a string: '\\'" },
		{ "\"\\x41\"", "1:2: an unknown escape in a string: '\\x41'" },
		{ "\"\\u12", "1:2: an unknown escape in a string: '\\u12'" },
		{ "\"\\u12\"", "1:2: an unknown escape in a string: '\\u12'" },
		{ "\"\\u12g4\"", "1:2: an unknown escape in a string: '\\u12g4'" },
		{ "\"\\u\x10\x10\x10\x10\"", "1:2: an unknown escape in a string: '\\u\?\?\?\?'" },
		{ "\"a\tb\"", "1:3: control character in a string: U+0009" },
		{ "{} {}", "1:4: more than one value: '{'" },
		{ "{}\n/", "2:1: more than one value: '/'" },
		{ "{}\v", "1:3: more than one value: '?'" },
		{ "{\xc2\xa0}", "1:2: a key in double quotes is expected: '\xc2\xa0'" },
		{ "{} // c", "1:4: comments are not allowed here: '/'" },
		{ "{/* c */}", "1:2: comments are not allowed here: '/'" },
		{ "\"\xc3\xa9\" x", "1:5: more than one value: 'x'" },
		{ "\xef\xbb\xbf x", "1:2: a value is expected: 'x'" },
		{ "{\xef\xbb\xbf}", "1:2: a key in double quotes is expected: '\xef\xbb\xbf'" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		expect_refused(pairs[i].text, 0, pairs[i].result);
}

static void bytes_that_are_not_utf8_are_refused_everywhere(void **state)
{
	(void)state;
	expect_refused("{\"a\": \"\xff\"}", 0, "1:8: not UTF-8: byte 0xff");
	expect_refused("{\"a\": 1, \"\xc0\xaf\": 1}", 0, "1:11: not UTF-8: byte 0xc0");
	expect_refused("// \xed\xa0\x80\n{}", JSONSCAN_COMMENTS, "1:4: not UTF-8: byte 0xed");
	expect_refused("\"\xe2\x82", 0, "1:2: not UTF-8: byte 0xe2");
}

static void nul_bytes_are_refused(void **state)
{
	(void)state;
	expect_refused_bytes("{\0}", 3, 0, ERR_INVALID,
			     "1:2: a key in double quotes is expected: ''");
	expect_refused_bytes("\"\0\"", 3, 0, ERR_INVALID,
			     "1:2: control character in a string: U+0000");
	expect_refused_bytes("1\0", 2, 0, ERR_INVALID, "1:1: not a number: '1'");
	expect_refused_bytes("{}\0", 3, 0, ERR_INVALID, "1:3: more than one value: ''");
	expect_refused_bytes("\"\\\0\"", 4, 0, ERR_INVALID,
			     "1:2: an unknown escape in a string: '\\'");
}

static void comments_are_taken_where_the_reader_takes_them(void **state)
{
	static const char *const texts[] = {
		"// a\n{ // b\n } // c",
		"/* a */{/* b */\"a\"/**/:/***/1/* c\n d */,\n\"b\":[//\r\n]}/* */",
		"{\"a\": \"// not /* one\"} //",
		"{}//\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		expect_taken(texts[i], JSONSCAN_COMMENTS);
	expect_refused("{} /* no end", JSONSCAN_COMMENTS, "1:4: a comment that does not end");
	expect_refused("{} /*/", JSONSCAN_COMMENTS, "1:4: a comment that does not end");
	expect_refused("{} // a\rb\n", JSONSCAN_COMMENTS,
		       "1:8: a carriage return in a comment that ends no line");
	expect_refused("{} # a", JSONSCAN_COMMENTS, "1:4: more than one value: '#'");
	expect_refused("{\"a\":1,}", JSONSCAN_COMMENTS,
		       "1:7: a comma before '}' is not allowed here");
}

static void commas_at_the_end_are_taken_where_the_reader_takes_them(void **state)
{
	(void)state;
	expect_taken("{\"a\":[1,],}", JSONSCAN_TRAILING_COMMAS);
	expect_refused("{,}", JSONSCAN_TRAILING_COMMAS,
		       "1:2: a key in double quotes is expected: ','");
	expect_refused("[1,,]", JSONSCAN_TRAILING_COMMAS, "1:4: a value is expected: ','");
	expect_refused("{\"a\":1, // c\n}", JSONSCAN_TRAILING_COMMAS,
		       "1:9: comments are not allowed here: '/'");
}

static void quoted_text_is_short_and_harmless(void **state)
{
	(void)state;
	expect_refused("{abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz}", 0,
		       "1:2: a key in double quotes is expected: "
		       "'abcdefghijklmnopqrstuvwxyzabcdefghijklmn'");
	/* does not cut inside a character */
	expect_refused("{abcdefghijklmnopqrstuvwxyzabcdefghijklm\xc3\xa9z}", 0,
		       "1:2: a key in double quotes is expected: "
		       "'abcdefghijklmnopqrstuvwxyzabcdefghijklm'");
	expect_refused("{\x1b[31m}", 0, "1:2: a key in double quotes is expected: '?'");
}

static void long_names_lose_their_front(void **state)
{
	char name[1000];
	struct jsonscan_text t = { name, "x", 1 };
	struct err e = { 0 };

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 6, "tail", 5);
	name[sizeof(name) - 2] = '\0';
	assert_int_equal(jsonscan_check(&t, 0, &e), -1);
	assert_int_equal(strncmp(e.msg, "...nnn", 6), 0);
	assert_non_null(strstr(e.msg, "tail:1:1: a value is expected: 'x'"));
}

static void depth_and_size_are_bounded(void **state)
{
	char text[2 * JSONSCAN_DEPTH_MAX + 2];
	cleanup_free char *large = malloc(JSONSCAN_DOCUMENT_MAX_BYTES + 1);
	cleanup_buf struct buf beside;

	(void)state;
	memset(text, '[', JSONSCAN_DEPTH_MAX);
	memset(text + JSONSCAN_DEPTH_MAX, ']', JSONSCAN_DEPTH_MAX);
	text[2 * JSONSCAN_DEPTH_MAX] = '\0';
	expect_taken(text, 0);
	memset(text, '[', JSONSCAN_DEPTH_MAX + 1);
	expect_refused_bytes(text, strlen(text), 0, ERR_LIMIT,
			     "1:129: more than 128 objects and arrays in each other");
	/* nested, not adjacent */
	buf_init(&beside, BUF_TEXT_MAX_BYTES);
	buf_add_text(&beside, "[");
	for (unsigned i = 0; i < 2 * JSONSCAN_DEPTH_MAX; i++)
		buf_add_text(&beside, "{},");
	buf_add_text(&beside, "1]");
	expect_taken(buf_text(&beside), 0);
	assert_non_null(large);
	memset(large, ' ', JSONSCAN_DOCUMENT_MAX_BYTES + 1);
	large[0] = '1';
	expect_refused_bytes(large, JSONSCAN_DOCUMENT_MAX_BYTES + 1, 0, ERR_LIMIT,
			     "1:1: larger than 16 MiB");
	large[JSONSCAN_DOCUMENT_MAX_BYTES] = '\0';
	expect_taken(large, 0);
}

/* ---- comparing ---- */

static void expect_compared(const char *a, const char *b, bool is_same)
{
	cleanup_free char *left = mem_format("{\"mcp\":{\"ak\":%s}}", a);
	cleanup_free char *right = mem_format("{\"mcp\":{\"ak\":%s}}", b);

	expect_state(left, b, 0, is_same ? JSONEDIT_SAME : JSONEDIT_DIFFERENT);
	expect_state(right, a, 0, is_same ? JSONEDIT_SAME : JSONEDIT_DIFFERENT);
}

static void values_are_the_same_when_they_mean_the_same(void **state)
{
	static const struct pair same[] = {
		{ "1", "1.0" },
		{ "100", "1e2" },
		{ "0", "-0" },
		{ "{}", "{ \n}" },
		{ "[]", "[ ]" },
		{ "\"a\\/\\u00e9\\n\"", "\"a/\xc3\xa9\\u000A\"" },
		{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
		{ "\"\\b\\f\\r\\t\\\"\\\\\"", "\"\\u0008\\u000c\\u000d\\u0009\\u0022\\u005c\"" },
		{ "{\"a\":1,\"b\":[true,null]}", "{ \"b\" : [ true , null ], \"\\u0061\" : 1 }" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":2}" },
		{ "\"\\ud83d\\u0078\"", "\"\\ud83dx\"" },
		{ "\"\\u0041\\udc00\"", "\"A\\udc00\"" },
		{ "\"\\u00ff\\u00FF\"", "\"\xc3\xbf\xc3\xbf\"" },
		{ "0.00000000000000000000000000000000000000000000000000000000000000", "0" },
		{ "{\"a\":{\"x\":1},\"a\":2}", "{\"a\":3,\"a\":2}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(same); i++)
		expect_compared(same[i].text, same[i].result, true);
}

static void values_differ_when_they_mean_something_else(void **state)
{
	static const struct pair different[] = {
		{ "1", "2" },
		{ "1", "\"1\"" },
		{ "12", "\"\"" },
		{ "true", "false" },
		{ "null", "{}" },
		{ "null", "0" },
		{ "true", "null" },
		{ "[]", "{}" },
		{ "[1]", "[1,2]" },
		{ "[1,2]", "[2,1]" },
		{ "{\"a\":1}", "{\"a\":1,\"b\":2}" },
		{ "{\"a\":1}", "{\"b\":1}" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":1}" },
		{ "\"a\"", "\"ab\"" },
		{ "\"\\ud83d\"", "\"\\ud83d\\ude00\"" },
		{ "\"\\\\n\"", "\"\\n\"" },
		{ "\"\\ud83dx\"", "\"\\ud83d\\u0078y\"" },
		{ "10000000000000000000000000000000000000000000000000000000000000000000", "1e67" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(different); i++)
		expect_compared(different[i].text, different[i].result, false);
}

/* ---- setting ---- */

#define TWO                                                                                        \
	"{\n"                                                                                      \
	"  \"mcp\": {\n"                                                                           \
	"    \"ak\": {\n"                                                                          \
	"      \"command\": \"ak\",\n"                                                             \
	"      \"args\": [\"mcp\", \"server\"]\n"                                                  \
	"    }\n"                                                                                  \
	"  }\n"                                                                                    \
	"}"

static void nothing_becomes_a_document(void **state)
{
	(void)state;
	expect_set("", 0, TWO "\n");
	expect_set(" \n\n", 0, TWO "\n");
	expect_set("{}", 0, TWO);
	expect_set("{}\n", 0, TWO "\n");
	expect_set("{\n}\n", 0, TWO "\n");
	expect_set("{ }", 0, TWO);
	expect_set("\xef\xbb\xbf", 0, "\xef\xbb\xbf" TWO "\n");
	expect_set("\xef\xbb\xbf{}\n", 0, "\xef\xbb\xbf" TWO "\n");
	expect_set("// mine", JSONC, "// mine\n" TWO "\n");
	expect_set("// mine\n", JSONC, "// mine\n" TWO "\n");
	expect_set_refused("// mine\n", 0, ERR_INVALID, "1:1: comments are not allowed here: '/'");
}

static void new_entries_follow_the_indentation_that_is_there(void **state)
{
	(void)state;
	expect_set("{\n    \"mcp\": {}\n}", 0,
		   "{\n    \"mcp\": {\n        \"ak\": {\n            \"command\": \"ak\",\n"
		   "            \"args\": [\"mcp\", \"server\"]\n        }\n    }\n}");
	expect_set("{\n\t\"mcp\": {\n\t\t\"x\": 1\n\t},\n\t\"z\": 2\n}\n", 0,
		   "{\n\t\"mcp\": {\n\t\t\"x\": 1,\n\t\t\"ak\": {\n\t\t\t\"command\": \"ak\",\n"
		   "\t\t\t\"args\": [\"mcp\", \"server\"]\n\t\t}\n\t},\n\t\"z\": 2\n}\n");
	/* the object's own indentation if it differs */
	expect_set("{\n  \"mcp\": {\n       \"x\": 1\n  }\n}", 0,
		   "{\n  \"mcp\": {\n       \"x\": 1,\n       \"ak\": {\n         \"command\": "
		   "\"ak\",\n         \"args\": [\"mcp\", \"server\"]\n       }\n  }\n}");
	/* blanks before the document do not count */
	expect_set("    {\"mcp\": {\n\"x\": 1\n}}", 0,
		   "    {\"mcp\": {\n\"x\": 1,\n\"ak\": {\n  \"command\": \"ak\",\n"
		   "  \"args\": [\"mcp\", \"server\"]\n}\n}}");
	/* no indentation at all */
	expect_set("{\n\"x\":1\n}", 0,
		   "{\n\"x\":1,\n\"mcp\":{\n  \"ak\":{\n    \"command\":\"ak\",\n"
		   "    \"args\":[\"mcp\",\"server\"]\n  }\n}\n}");
}

static void line_ends_of_the_document_are_used(void **state)
{
	(void)state;
	expect_set("\n{}", 0, "\n" TWO);
	expect_set("{\r\n  \"x\": 1\r\n}\r\n", 0,
		   "{\r\n  \"x\": 1,\r\n  \"mcp\": {\r\n    \"ak\": {\r\n      \"command\": \"ak\","
		   "\r\n      \"args\": [\"mcp\", \"server\"]\r\n    }\r\n  }\r\n}\r\n");
	expect_set("{} // c\r\n", JSONC,
		   "{\r\n  \"mcp\": {\r\n    \"ak\": {\r\n      \"command\": \"ak\",\r\n"
		   "      \"args\": [\"mcp\", \"server\"]\r\n    }\r\n  }\r\n} // c\r\n");
}

static void documents_in_one_line_stay_in_one_line(void **state)
{
	(void)state;
	expect_set("{\"x\":1}", 0, "{\"x\":1,\"mcp\":{\"ak\":" VALUE "}}");
	expect_set("{\"mcp\":{}}", 0, "{\"mcp\":{\"ak\":" VALUE "}}");
	expect_set("{\"mcp\":{ }}", 0, "{\"mcp\":{\"ak\":" VALUE "}}");
	expect_set("{\"mcp\":{\"x\":1},\"z\":2}\n", 0,
		   "{\"mcp\":{\"x\":1,\"ak\":" VALUE "},\"z\":2}\n");
	expect_set("{\"x\": 1}", 0,
		   "{\"x\": 1, \"mcp\": {\"ak\": {\"command\": \"ak\", \"args\": [\"mcp\", "
		   "\"server\"]}}}");
	expect_set("{ \"mcp\": { \"x\": 1 } }", 0,
		   "{ \"mcp\": { \"x\": 1, \"ak\": { \"command\": \"ak\", \"args\": [\"mcp\", "
		   "\"server\"] } } }");
	expect_set(
		"{ \"mcp\": {} }", 0,
		"{ \"mcp\": { \"ak\": { \"command\": \"ak\", \"args\": [\"mcp\", \"server\"] } } "
		"}");
	/* in one line, as the object */
	expect_set("{\n  \"mcp\": {\"x\": 1}\n}", 0,
		   "{\n  \"mcp\": {\"x\": 1, \"ak\": {\"command\": \"ak\", \"args\": [\"mcp\", "
		   "\"server\"]}}\n}");
}

static void comments_and_trailing_commas_stay_where_they_are(void **state)
{
#define ENTRY(indent)                                                                              \
	indent "\"ak\": {\n" indent "  \"command\": \"ak\",\n" indent                              \
	       "  \"args\": [\"mcp\", \"server\"]\n" indent "}"

	(void)state;
	expect_set(
		"{\n  // one\n  \"mcp\": { // two\n    \"x\": 1 // three\n    // four\n  } /* five "
		"*/\n} // six\n",
		JSONC,
		"{\n  // one\n  \"mcp\": { // two\n    \"x\": 1, // three\n    // "
		"four\n" ENTRY("    ") "\n  } /* five */\n} // six\n");
	expect_set("{\n  \"mcp\": {\n    \"x\": 1, // three\n    // four\n  },\n}\n", JSONC,
		   "{\n  \"mcp\": {\n    \"x\": 1, // three\n    // four\n" ENTRY(
			   "    ") ",\n  },\n}\n");
	expect_set("{\n  \"mcp\": {\n    // none yet\n  }\n}\n", JSONC,
		   "{\n  \"mcp\": {\n    // none yet\n" ENTRY("    ") "\n  }\n}\n");
	expect_set("{\n  \"mcp\": { /* none */ }\n}\n", JSONC,
		   "{\n  \"mcp\": { /* none */\n" ENTRY("    ") "\n  }\n}\n");
	expect_set("{\"mcp\":{ // none\n}}", JSONC, "{\"mcp\":{\"ak\":" VALUE " // none\n}}");
	expect_set("{\"mcp\":{\"x\":1 // one\n}}", JSONC,
		   "{\"mcp\":{\"x\":1,\"ak\":" VALUE " // one\n}}");
	expect_set("{\"mcp\":{\"x\":1,},}", JSONC, "{\"mcp\":{\"x\":1,\"ak\":" VALUE ",},}");
	expect_set("{\"mcp\":{/* none */}}", JSONC, "{\"mcp\":{\"ak\":" VALUE "/* none */}}");
}

static void values_of_every_form_are_laid_out(void **state)
{
	static const char value[] = "{\"a\":{},\"b\":[],\"c\":{\"d\":[1,\"x\",{\"e\":null}]}}";
	struct jsonscan_text t = { NAME, "{}", 2 };
	cleanup_free char *spread = NULL;
	cleanup_free char *inline_ = NULL;
	size_t len = 0;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(jsonedit_set(&t, keys + 1, value, 0, &spread, &len, &e), 1);
	assert_string_equal(spread, "{\n  \"ak\": {\n    \"a\": {},\n    \"b\": [],\n    \"c\": {\n"
				    "      \"d\": [1, \"x\", {\n          \"e\": null\n        }]\n"
				    "    }\n  }\n}");
	t = (struct jsonscan_text){ NAME, "{\"x\":1}", 7 };
	assert_int_equal(jsonedit_set(&t, keys + 1, value, 0, &inline_, &len, &e), 1);
	assert_string_equal(inline_, "{\"x\":1,\"ak\":{\"a\":{},\"b\":[],\"c\":{\"d\":[1,\"x\","
				     "{\"e\":null}]}}}");
}

static void same_value_is_left_as_it_is_written(void **state)
{
	static const char *const texts[] = {
		"{\"mcp\":{\"ak\":{ \"args\" : [\"mcp\",\"server\"], \"command\": \"\\u0061k\" }}}",
		"{\"mcp\":{\"ak\":1,\"ak\":" VALUE "}}",
		"{\"mcp\":{\"ak\":2},\"mcp\":{\"ak\":" VALUE "}}",
		"{\"\\u006dcp\":{\"ak\":" VALUE "}}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		cleanup_document struct jsonscan_text t = document_of(texts[i], strlen(texts[i]));
		char *result = NULL;
		size_t len = 0;
		struct err e = { 0 };

		assert_int_equal(jsonedit_set(&t, keys, VALUE, JSONEDIT_REPLACE, &result, &len, &e),
				 0);
		assert_null(result);
	}
}

static void different_value_is_replaced_only_when_asked(void **state)
{
	const char *text = "{\n  \"mcp\": {\n    \"ak\": {\n      \"command\": \"x\"\n    }, // c\n"
			   "    \"z\": 1\n  }\n}\n";

	(void)state;
	expect_set_refused(text, JSONC, ERR_EXISTS, "3:5: a different 'ak' already exists");
	expect_set(text, JSONC | JSONEDIT_REPLACE,
		   "{\n  \"mcp\": {\n" ENTRY("    ") ", // c\n    \"z\": 1\n  }\n}\n");
	expect_set("{\"mcp\": {\"ak\": null}}", JSONEDIT_REPLACE,
		   "{\"mcp\": {\"ak\": {\"command\": \"ak\", \"args\": [\"mcp\", \"server\"]}}}");
	expect_set(
		"{\n \"mcp\": {\"ak\": null}}", JSONEDIT_REPLACE,
		"{\n \"mcp\": {\"ak\": {\"command\": \"ak\", \"args\": [\"mcp\", \"server\"]}}}");
}

static void replacement_has_the_indentation_of_its_own_line(void **state)
{
	(void)state;
	expect_set("{\n \"mcp\": {\n  \"x\": 1,\n      \"ak\": 1\n }\n}", JSONEDIT_REPLACE,
		   "{\n \"mcp\": {\n  \"x\": 1,\n      \"ak\": {\n       \"command\": \"ak\",\n"
		   "       \"args\": [\"mcp\", \"server\"]\n      }\n }\n}");
	expect_set("{\"mcp\": {\"x\": 1,\n    \"ak\": 1}}", JSONEDIT_REPLACE,
		   "{\"mcp\": {\"x\": 1,\n    \"ak\": {\n      \"command\": \"ak\",\n"
		   "      \"args\": [\"mcp\", \"server\"]\n    }}}");
	/* not the first on its line: in one line */
	expect_set("{\n \"mcp\": {\n  \"x\": 1, \"ak\": 1\n }\n}", JSONEDIT_REPLACE,
		   "{\n \"mcp\": {\n  \"x\": 1, \"ak\": {\"command\": \"ak\", \"args\": [\"mcp\", "
		   "\"server\"]}\n }\n}");
}

static void of_several_members_with_one_key_the_last_is_changed(void **state)
{
	(void)state;
	expect_set("{\"mcp\":{\"ak\":1},\"mcp\":{\"x\":1}}", 0,
		   "{\"mcp\":{\"ak\":1},\"mcp\":{\"x\":1,\"ak\":" VALUE "}}");
	expect_set("{\"mcp\":{\"ak\":" VALUE ",\"ak\":2}}", JSONEDIT_REPLACE,
		   "{\"mcp\":{\"ak\":" VALUE ",\"ak\":" VALUE "}}");
	expect_set_refused("{\"mcp\":{\"ak\":" VALUE ",\"ak\":2}}", 0, ERR_EXISTS,
			   "1:55: a different 'ak' already exists");
}

static void what_is_no_object_on_the_way_is_not_replaced(void **state)
{
	(void)state;
	expect_set_refused("[]", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:1: an object is expected, not an array");
	expect_set_refused("\n 1", JSONEDIT_REPLACE, ERR_INVALID,
			   "2:2: an object is expected, not a number");
	expect_set_refused("{\n  \"mcp\": null}", JSONEDIT_REPLACE, ERR_INVALID,
			   "2:10: 'mcp' is null where an object is expected");
	expect_set_refused("{\"mcp\": []}", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:9: 'mcp' is an array where an object is expected");
	expect_set_refused("{\"mcp\": \"x\"}", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:9: 'mcp' is a string where an object is expected");
	expect_set_refused("{\"mcp\": {}, \"mcp\": true}", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:20: 'mcp' is a boolean where an object is expected");
}

static void broken_documents_are_not_edited(void **state)
{
	(void)state;
	expect_set_refused("{\"mcp\": {}", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:11: ',' or '}' is expected: end of file");
	expect_set_refused("{\"mcp\": {}, // c\n}", JSONEDIT_REPLACE, ERR_INVALID,
			   "1:13: comments are not allowed here: '/'");
}

static void endless_indentation_is_not_followed(void **state)
{
	enum { BLANKS = 1 << 20 };
	cleanup_free char *text = malloc(BLANKS + 100);
	cleanup_free char *result = NULL;
	struct jsonscan_text t = { NAME, text, 0 };
	size_t len = 0;
	struct err e = { 0 };

	(void)state;
	assert_non_null(text);
	memcpy(text, "{\n", 2);
	memset(text + 2, ' ', BLANKS);
	(void)strcpy(text + 2 + BLANKS, "\"x\": 1}");
	t.len = strlen(text);
	assert_int_equal(jsonedit_set(&t, keys, VALUE, 0, &result, &len, &e), 1);
	assert_true(len < t.len + 64 * JSONEDIT_INDENT_MAX_BYTES);
	expect_state(result, VALUE, 0, JSONEDIT_SAME);
}

static void document_does_not_grow_past_its_maximum(void **state)
{
	cleanup_free char *text = malloc(JSONSCAN_DOCUMENT_MAX_BYTES);
	cleanup_free char *result = NULL;
	struct jsonscan_text t = { NAME, text, JSONSCAN_DOCUMENT_MAX_BYTES };
	size_t len = 0;
	struct err e = { 0 };

	(void)state;
	assert_non_null(text);
	memset(text, ' ', t.len);
	memcpy(text, "{\"x\":1}", 7);
	assert_int_equal(jsonedit_set(&t, keys, VALUE, 0, &result, &len, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.msg, NAME ":1:1: would become larger than 16 MiB");
}

/* ---- removing ---- */

static void removing_undoes_setting(void **state)
{
	static const char *const texts[] = {
		"{\n  \"x\": 1\n}\n",
		"{\r\n\t\"x\": 1\r\n}",
		"{\"x\":1}",
		"{ \"x\": 1 }",
		"{\n  \"mcp\": {\n    \"x\": 1\n  },\n  \"z\": {}\n}\n",
		"{\n  \"mcp\": {\n    \"x\": 1 // one\n    // two\n  }\n}\n",
		"{\n  \"mcp\": {\n    \"x\": 1, // one\n  },\n}\n",
		"{\"mcp\":{\"x\":1}}",
		"{\n  \"mcp\": {\n    // none\n  }\n}\n",
		"{}",
		"{}\n",
		"\xef\xbb\xbf{}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		cleanup_document struct jsonscan_text t = document_of(texts[i], strlen(texts[i]));
		cleanup_free char *result = NULL;
		size_t len = 0;
		struct err e = { 0 };

		assert_int_equal(jsonedit_set(&t, keys, VALUE, JSONC, &result, &len, &e), 1);
		expect_removed(result, JSONC, texts[i]);
	}
}

static void members_are_removed_with_one_comma_and_their_line(void **state)
{
	static const struct pair pairs[] = {
		{ "{\"mcp\":{\"ak\":1,\"x\":2}}", "{\"mcp\":{\"x\":2}}" },
		{ "{\"mcp\":{\"ak\": 1, \"x\": 2}}", "{\"mcp\":{\"x\": 2}}" },
		{ "{\"mcp\":{\"w\": 0, \"ak\": 1, \"x\": 2}}", "{\"mcp\":{\"w\": 0, \"x\": 2}}" },
		{ "{\"mcp\":{\"w\": 0, \"ak\": 1 }}", "{\"mcp\":{\"w\": 0 }}" },
		{ "{\n \"mcp\": {\n  \"ak\": {\n   \"a\": 1\n  },\n  \"x\": 2\n }\n}",
		  "{\n \"mcp\": {\n  \"x\": 2\n }\n}" },
		{ "{\r\n \"mcp\": {\r\n  \"x\": 2,\r\n  \"ak\": 1\r\n }\r\n}",
		  "{\r\n \"mcp\": {\r\n  \"x\": 2\r\n }\r\n}" },
		{ "{\r\n \"mcp\": {\r\n  \"ak\": 1, \r\n  \"x\": 2\r\n }\r\n}",
		  "{\r\n \"mcp\": {\r\n  \"x\": 2\r\n }\r\n}" },
		{ "{\"mcp\":{\"w\":0, // zero\n \"ak\":1}}", "{\"mcp\":{\"w\":0 // zero\n }}" },
		{ "{\"mcp\":{\"w\":0 // zero\n, \"ak\":1 // one\n}}",
		  "{\"mcp\":{\"w\":0 // zero\n // one\n}}" },
		{ "{\"mcp\":{\n// ours\n\"ak\":1\n}}", "{\"mcp\":{\n// ours\n}}" },
		{ "{\"mcp\":{\"ak\":1, // ours\n}}", "{\"mcp\":{// ours\n}}" },
		{ "{\"mcp\":{\"x\":1,\"ak\":1,},}", "{\"mcp\":{\"x\":1,},}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		expect_removed(pairs[i].text, JSONC, pairs[i].result);
}

static void objects_that_hold_nothing_else_go_too(void **state)
{
	(void)state;
	expect_removed("{\"mcp\":{\"ak\":1}}", 0, "{}");
	expect_removed("{\"mcp\":{\"ak\":1},\"x\":{}}", 0, "{\"x\":{}}");
	expect_removed("{\"mcp\":{\"ak\":1 /* c */}}", JSONC, "{\"mcp\":{ /* c */}}");
	/* another 'mcp' would take effect */
	expect_removed("{\"mcp\":{\"old\":1},\"mcp\":{\"ak\":1}}", 0,
		       "{\"mcp\":{\"old\":1},\"mcp\":{}}");
}

static void all_members_with_the_key_are_removed(void **state)
{
	cleanup_buf struct buf many;
	struct jsonscan_text t = { .name = NAME };
	char *result = NULL;
	size_t len = 0;
	struct err e = { 0 };

	(void)state;
	expect_removed("{\"mcp\":{\"ak\":1,\"x\":2,\"ak\":3}}", 0, "{\"mcp\":{\"x\":2}}");
	expect_removed("{\"mcp\":{\"ak\":1,\"ak\":3}}", 0, "{}");
	buf_init(&many, BUF_TEXT_MAX_BYTES);
	buf_add_text(&many, "{\"mcp\":{\"x\":1");
	for (unsigned i = 0; i < JSONEDIT_SAME_KEY_MAX; i++)
		buf_add_text(&many, ",\"ak\":0");
	buf_add_text(&many, "}}");
	expect_removed(buf_text(&many), 0, "{\"mcp\":{\"x\":1}}");
	many.len -= 2;
	buf_add_text(&many, ",\"ak\":0}}");
	t.bytes = buf_text(&many);
	t.len = many.len;
	assert_int_equal(jsonedit_remove(&t, keys, 0, &result, &len, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.msg, NAME ":1:463: 'ak' is there 65 times");
}

static void nothing_to_remove_changes_nothing(void **state)
{
	(void)state;
	expect_removed("", 0, NULL);
	expect_removed("{}", 0, NULL);
	expect_removed("{\"mcp\":{}}", 0, NULL);
	expect_removed("{\"ak\":1}", 0, NULL);
	expect_removed("{\"mcp\":{\"ak\":1},\"mcp\":{}}", 0, NULL);
}

static void keys_are_as_many_and_as_odd_as_they_like(void **state)
{
	static const char *const deep[] = {
		"1", "2", "3", "4", "5", "6", "7", "\\ \"\xc3\xa9", NULL
	};
	static const char text[] =
		"{\"1\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"x\":1}}}}}}}}";
	struct jsonscan_text t = { NAME, text, sizeof(text) - 1 };
	enum jsonedit_state found = JSONEDIT_ABSENT;
	cleanup_free char *set = NULL;
	cleanup_free char *removed = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(COUNT_OF(deep), JSONEDIT_KEYS_MAX + 1);
	assert_int_equal(jsonedit_set(&t, deep, "1", 0, &set, &t.len, &e), 1);
	t.bytes = set;
	assert_int_equal(jsonedit_look(&t, deep, "1", 0, &found, &e), 0);
	assert_int_equal(found, JSONEDIT_SAME);
	assert_non_null(strstr(set, "\"\\\\ \\\"\xc3\xa9\":1"));
	assert_int_equal(jsonedit_remove(&t, deep, 0, &removed, &t.len, &e), 1);
	assert_string_equal(removed, text);
}

static void empty_documents_are_known(void **state)
{
	static const char *const empty[] = { "", " \n", "{}", "\xef\xbb\xbf{ }\n", " {\r\n} " };
	static const char *const full[] = { "{\"a\":1}", "[]", "{/**/}",  "{} //",
					    "// a",      "1",  "// a\n{}" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(empty); i++)
		assert_true(jsonedit_is_empty(empty[i], strlen(empty[i])));
	for (size_t i = 0; i < COUNT_OF(full); i++)
		assert_false(jsonedit_is_empty(full[i], strlen(full[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_value_is_taken),
		cmocka_unit_test(what_is_no_json_is_refused_with_line_and_column),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused_everywhere),
		cmocka_unit_test(nul_bytes_are_refused),
		cmocka_unit_test(comments_are_taken_where_the_reader_takes_them),
		cmocka_unit_test(commas_at_the_end_are_taken_where_the_reader_takes_them),
		cmocka_unit_test(quoted_text_is_short_and_harmless),
		cmocka_unit_test(long_names_lose_their_front),
		cmocka_unit_test(depth_and_size_are_bounded),
		cmocka_unit_test(values_are_the_same_when_they_mean_the_same),
		cmocka_unit_test(values_differ_when_they_mean_something_else),
		cmocka_unit_test(nothing_becomes_a_document),
		cmocka_unit_test(new_entries_follow_the_indentation_that_is_there),
		cmocka_unit_test(line_ends_of_the_document_are_used),
		cmocka_unit_test(documents_in_one_line_stay_in_one_line),
		cmocka_unit_test(comments_and_trailing_commas_stay_where_they_are),
		cmocka_unit_test(values_of_every_form_are_laid_out),
		cmocka_unit_test(same_value_is_left_as_it_is_written),
		cmocka_unit_test(different_value_is_replaced_only_when_asked),
		cmocka_unit_test(replacement_has_the_indentation_of_its_own_line),
		cmocka_unit_test(of_several_members_with_one_key_the_last_is_changed),
		cmocka_unit_test(what_is_no_object_on_the_way_is_not_replaced),
		cmocka_unit_test(broken_documents_are_not_edited),
		cmocka_unit_test(endless_indentation_is_not_followed),
		cmocka_unit_test(document_does_not_grow_past_its_maximum),
		cmocka_unit_test(removing_undoes_setting),
		cmocka_unit_test(members_are_removed_with_one_comma_and_their_line),
		cmocka_unit_test(objects_that_hold_nothing_else_go_too),
		cmocka_unit_test(all_members_with_the_key_are_removed),
		cmocka_unit_test(nothing_to_remove_changes_nothing),
		cmocka_unit_test(keys_are_as_many_and_as_odd_as_they_like),
		cmocka_unit_test(empty_documents_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
