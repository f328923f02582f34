/* test_config - what a command of an image gets, and which configs are refused. */
#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"
#include "image/config.h"

#include <stdio.h>

#define HEX16 "0123456789abcdef"
#define DIFF "sha256:" HEX16 HEX16 HEX16 HEX16
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" DIFF "\"]}"
#define WITH(fields) "{" fields "," ROOTFS "}"

struct refusal {
	const char *text;
	enum err_code code;
	const char *words;
};

static void parse(const char *text, struct config *ret)
{
	struct err e = { 0 };

	if (config_parse(text, strlen(text), ret, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
}

static void expect_refused(const char *text, size_t len, enum err_code code, const char *words)
{
	struct config c = { .diff_count = 77 };
	struct err e = { 0 };

	if (config_parse(text, len, &c, &e) == 0)
		fail_msg("taken: %.300s", text);
	if (e.code != code || !strstr(e.msg, words))
		fail_msg("%.200s\n  says    (%d) %s\n  not     (%d) %s", text, e.code, e.msg, code,
			 words);
	assert_int_equal(c.diff_count, 77);
}

static void everything_comes_through(void **state)
{
	cleanup_free char *text =
		mem_format("{\"os\":\"linux\",\"architecture\":\"%s\",\"created\":\"2024\","
			   "\"config\":{\"Env\":[\"A=1\",\"B=\"],\"Entrypoint\":[\"/a\",\"\"],"
			   "\"Cmd\":[\"x\"],\"User\":\"u:g\",\"WorkingDir\":\"/w\",\"Labels\":{}},"
			   "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\",\"%s\"]}}",
			   manifest_architecture(), DIFF, DIFF);
	CLEANUP(config_done) struct config c = { 0 };

	(void)state;
	parse(text, &c);
	assert_string_equal(c.env[0], "A=1");
	assert_string_equal(c.env[1], "B=");
	assert_null(c.env[2]);
	assert_string_equal(c.entrypoint[0], "/a");
	assert_string_equal(c.entrypoint[1], "");
	assert_null(c.entrypoint[2]);
	assert_string_equal(c.cmd[0], "x");
	assert_null(c.cmd[1]);
	assert_string_equal(c.user, "u:g");
	assert_string_equal(c.workdir, "/w");
	assert_string_equal(c.created, "2024");
	assert_int_equal(c.diff_count, 2);
	assert_string_equal(c.diff_ids[1], DIFF);
}

static void expect_empty(const char *text)
{
	CLEANUP(config_done) struct config c = { 0 };

	parse(text, &c);
	assert_null(c.env[0]);
	assert_null(c.entrypoint[0]);
	assert_null(c.cmd[0]);
	assert_string_equal(c.user, "");
	assert_string_equal(c.workdir, "");
	assert_string_equal(c.created, "");
}

static void absent_and_null_are_the_same(void **state)
{
	(void)state;
	expect_empty("{" ROOTFS "}");
	expect_empty(WITH("\"config\":null,\"os\":null,\"architecture\":\"\""));
	expect_empty(WITH("\"config\":{}"));
	expect_empty(WITH("\"config\":{\"Env\":null,\"Entrypoint\":null,\"Cmd\":null,"
			  "\"User\":null,\"WorkingDir\":null}"));
	expect_empty(WITH("\"config\":{\"Env\":[],\"Entrypoint\":[],\"Cmd\":[]}"));
}

static void what_is_wrong_is_refused_with_its_field(void **state)
{
	static const struct refusal cases[] = {
		{ "", ERR_INVALID, "not JSON" },
		{ "{}", ERR_INVALID, "'rootfs' is missing" },
		{ "{\"rootfs\":{\"diff_ids\":[]}}", ERR_INVALID, "'rootfs': 'type' is missing" },
		{ "{\"rootfs\":{\"type\":\"x\",\"diff_ids\":[]}}", ERR_UNSUPPORTED, "'x'" },
		{ "{\"rootfs\":{\"type\":\"layers\"}}", ERR_INVALID, "'diff_ids' is missing" },
		{ "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[1]}}", ERR_INVALID,
		  "'diff_ids' 0" },
		{ "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" DIFF "\",\"" DIFF "0\"]}}",
		  ERR_INVALID, "'diff_ids' 1" },
		{ WITH("\"config\":[]"), ERR_INVALID, "'config' is not an object" },
		{ WITH("\"config\":{\"Env\":{}}"), ERR_INVALID, "'Env' is not a list" },
		{ WITH("\"config\":{\"Env\":[1]}"), ERR_INVALID, "'Env' holds what is not text" },
		{ WITH("\"config\":{\"Env\":[\"A\"]}"), ERR_INVALID, "'A', not NAME=VALUE" },
		{ WITH("\"config\":{\"Env\":[\"=A\"]}"), ERR_INVALID, "'=A', not NAME=VALUE" },
		{ WITH("\"config\":{\"Env\":[\"\"]}"), ERR_INVALID, "not NAME=VALUE" },
		{ WITH("\"config\":{\"Env\":[\"A=\\u0000\"]}"), ERR_INVALID, "not JSON" },
		{ WITH("\"config\":{\"Cmd\":\"sh\"}"), ERR_INVALID, "'Cmd' is not a list" },
		{ WITH("\"config\":{\"Entrypoint\":[null]}"), ERR_INVALID, "'Entrypoint' holds" },
		{ WITH("\"config\":{\"User\":0}"), ERR_INVALID, "'User' is not text" },
		{ WITH("\"config\":{\"WorkingDir\":[]}"), ERR_INVALID, "'WorkingDir' is not text" },
		{ WITH("\"os\":\"windows\",\"architecture\":\"amd64\""), ERR_UNSUPPORTED,
		  "made for windows/amd64, and this machine is linux/" },
		{ WITH("\"os\":\"linux\",\"architecture\":\"pdp11\""), ERR_UNSUPPORTED,
		  "made for linux/pdp11" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_refused(cases[i].text, strlen(cases[i].text), cases[i].code, cases[i].words);
}

/* A config whose Env has `count` entries "A=" with `len` more bytes each. */
static void fill_env(struct buf *b, unsigned count, size_t len)
{
	cleanup_free char *value = mem_alloc(len + 1);

	memset(value, 'x', len);
	buf_init(b, CONFIG_MAX_BYTES);
	buf_add_text(b, "{\"config\":{\"Env\":[");
	for (unsigned i = 0; i < count; i++)
		buf_addf(b, "%s\"A=%s\"", i ? "," : "", value);
	buf_add_text(b, "]}," ROOTFS "}");
}

static void expect_env_limit(unsigned count, size_t len, const char *words)
{
	CLEANUP(config_done) struct config c = { 0 };
	cleanup_buf struct buf b;

	fill_env(&b, count, len);
	if (words)
		expect_refused(b.bytes, b.len, ERR_LIMIT, words);
	else
		parse(b.bytes, &c);
}

static void limits_are_where_the_header_says(void **state)
{
	(void)state;
	expect_env_limit(CONFIG_LIST_MAX, 1, NULL);
	expect_env_limit(CONFIG_LIST_MAX + 1, 1, "'Env' has 1025 entries");
	expect_env_limit(1, CONFIG_TEXT_MAX_BYTES - 3, NULL);
	expect_env_limit(1, CONFIG_TEXT_MAX_BYTES - 2, "an entry of more than");
	expect_env_limit(3, CONFIG_TEXT_MAX_BYTES - 3, NULL);
	expect_env_limit(4, CONFIG_TEXT_MAX_BYTES - 3, "the text of all entries");
}

static void done_runs_twice(void **state)
{
	struct config c = { 0 };

	(void)state;
	parse(WITH("\"config\":{\"Env\":[\"A=1\"]}"), &c);
	config_done(&c);
	config_done(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_through),
		cmocka_unit_test(absent_and_null_are_the_same),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_field),
		cmocka_unit_test(limits_are_where_the_header_says),
		cmocka_unit_test(done_runs_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
