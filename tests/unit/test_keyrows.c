/* Formats on disk: lists of keys, and a whole policy. */
#include "base/keyrows.h"
#include "base/mem.h"
#include "policy/policyfile.h"
#include "policy/policyshow.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

struct thing {
	char *text;
	char array[8];
	uint64_t number;
	uint32_t id;
	bool flag;
	char **list;
};

static const struct keyrows_row rows[] = {
	KEYROWS_ROW(struct thing, "text", KEYROWS_TEXT, text),
	KEYROWS_ROW(struct thing, "array", KEYROWS_ARRAY, array),
	KEYROWS_ROW(struct thing, "number", KEYROWS_NUMBER, number),
	KEYROWS_ROW(struct thing, "id", KEYROWS_ID, id),
	KEYROWS_ROW(struct thing, "flag", KEYROWS_FLAG, flag),
	KEYROWS_ROW(struct thing, "list", KEYROWS_LIST, list),
};
static const struct keyrows format = {
	.what = "thing", .version = 2, .rows = rows, .count = COUNT_OF(rows)
};

static void thing_done(struct thing *t)
{
	keyrows_done(&format, t);
}

static void every_kind_comes_back(void **state)
{
	char *list[] = { (char *)"", (char *)"a=b\n", NULL };
	struct thing t = { (char *)"x=y", "1234567", UINT64_MAX, UINT32_MAX, true, list };
	CLEANUP(thing_done) struct thing back = { 0 };
	cleanup_buf struct buf out;
	struct err e = { 0 };

	(void)state;
	buf_init(&out, 4096);
	keyrows_format(&format, &t, &out);
	assert_int_equal(keyrows_parse(&format, out.bytes, out.len, &back, &e), 0);
	assert_string_equal(back.text, "x=y");
	assert_string_equal(back.array, "1234567");
	assert_true(back.number == UINT64_MAX);
	assert_true(back.id == UINT32_MAX);
	assert_true(back.flag);
	assert_string_equal(back.list[0], "");
	assert_string_equal(back.list[1], "a=b\n");
	assert_null(back.list[2]);
}

static enum err_code parse_code(const char *bytes, size_t len)
{
	CLEANUP(thing_done) struct thing back = { 0 };
	struct err e = { 0 };

	return keyrows_parse(&format, bytes, len, &back, &e) == 0 ? ERR_NONE : e.code;
}

#define CODE(text) parse_code(text, sizeof(text)) /* with its NUL */

static void what_is_not_ours_is_refused(void **state)
{
	(void)state;
	assert_int_equal(CODE("agentkernel thing 2\0number=7"), ERR_NONE);
	assert_int_equal(CODE("agentkernel thing 3\0number=7"), ERR_UNSUPPORTED);
	assert_int_equal(CODE("agentkernel thing x\0number=7"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel other 2\0number=7"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0nosuch=7"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0number"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0number="), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0number=-1"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0number=7 "), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0number=99999999999999999999"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0id=4294967296"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0flag=no"), ERR_CORRUPT);
	assert_int_equal(CODE("agentkernel thing 2\0array=12345678"), ERR_CORRUPT);
	/* without its last NUL the file is truncated */
	assert_int_equal(parse_code("agentkernel thing 2\0number=7",
				    sizeof("agentkernel thing 2\0number=7") - 1),
			 ERR_CORRUPT);
	assert_int_equal(parse_code("", 0), ERR_CORRUPT);
}

static void make_policy(struct policy *ret)
{
	static const struct policy_setting settings[] = {
		{ POLICY_PROFILE, "restrictive", "--profile" },
		{ POLICY_MOUNT, "/data:/d:ro", "--mount" },
		{ POLICY_MOUNT, "/more", "--mount" },
		{ POLICY_TMPFS, "/scratch:16M", "--tmpfs" },
		{ POLICY_ENV, "A=1\n2", "--env" },
		{ POLICY_NETWORK, "true", "--network" },
		{ POLICY_NETWORK_POLICY, "deny", "--network-policy" },
		{ POLICY_ALLOW_HOST, "*.example.org:443", "--allow-host" },
		{ POLICY_MEMORY, "64M", "--memory" },
		{ POLICY_WORKDIR, "/d", "--workdir" },
	};
	const struct policy_caller caller = { .cwd = "/work", .home = "/home/me" };
	struct err e = { 0 };

	assert_int_equal(policy_resolve(settings, COUNT_OF(settings), &caller, ret, &e), 0);
}

static void a_policy_comes_back_whole(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	CLEANUP(policy_done) struct policy back = { 0 };
	cleanup_buf struct buf out;
	struct err e = { 0 };

	(void)state;
	buf_init(&out, POLICYFILE_MAX_BYTES);
	make_policy(&p);
	policyfile_format(&p, &out);
	assert_int_equal(policyfile_parse(out.bytes, out.len, &back, &e), 0);
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf a;
		cleanup_buf struct buf b;

		buf_init(&a, 65536);
		buf_init(&b, 65536);
		policyshow_field(&p, field, &a);
		policyshow_field(&back, field, &b);
		assert_string_equal(buf_text(&a), buf_text(&b));
		assert_string_equal(p.origin[field].text, back.origin[field].text);
	}
	assert_int_equal(back.profile, PROFILE_RESTRICTIVE);
	assert_false(back.has_capabilities);
	assert_int_equal(back.mount_count, 2);
	assert_true(back.mounts[0].is_read_only);
	assert_false(back.mounts[1].is_read_only);
	assert_string_equal(back.env[0], "A=1\n2");
	assert_true(back.tmpfs[0].size_bytes == 16u << 20);
	assert_int_equal(back.egress.fallback, EGRESS_BLOCK);
}

/* A policy truncated anywhere is refused, not a policy with fewer restrictions. */
static void half_a_policy_is_none(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	cleanup_buf struct buf out;

	(void)state;
	buf_init(&out, POLICYFILE_MAX_BYTES);
	make_policy(&p);
	policyfile_format(&p, &out);
	for (size_t len = 0; len < out.len; len++) {
		CLEANUP(policy_done) struct policy back = { 0 };
		struct err e = { 0 };

		assert_int_equal(policyfile_parse(out.bytes, len, &back, &e), -1);
	}
}

static void a_number_beyond_its_maximum_is_damage(void **state)
{
	(void)state;
#define NUMBER(id, name, kind, member, min, max, ...)                                              \
	{                                                                                          \
		CLEANUP(policy_done) struct policy p = { 0 };                                      \
		CLEANUP(policy_done) struct policy back = { 0 };                                   \
		cleanup_buf struct buf out;                                                        \
		struct err e = { 0 };                                                              \
                                                                                                   \
		buf_init(&out, POLICYFILE_MAX_BYTES);                                              \
		make_policy(&p);                                                                   \
		p.member = (uint64_t)(max) + 1;                                                    \
		policyfile_format(&p, &out);                                                       \
		assert_int_equal(policyfile_parse(out.bytes, out.len, &back, &e), -1);             \
		assert_int_equal(e.code, ERR_CORRUPT);                                             \
	}
#include "policy/fields.def"
}

static void only_limits_change(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	const struct policy_setting memory = { POLICY_MEMORY, "128M", "--memory" };
	const struct policy_setting wrong = { POLICY_MEMORY, "1", "--memory" };
	const struct policy_setting profile = { POLICY_PROFILE, "permissive", "--profile" };
	const struct policy_setting mount = { POLICY_MOUNT, "/etc", "--mount" };
	struct err e = { 0 };

	(void)state;
	make_policy(&p);
	assert_int_equal(policy_change(&p, &memory, 1, &e), 0);
	assert_true(p.memory_bytes == 128u << 20);
	assert_int_equal(policy_change(&p, &wrong, 1, &e), -1);
	assert_int_equal(policy_change(&p, &profile, 1, &e), -1);
	assert_int_equal(policy_change(&p, &mount, 1, &e), -1);
	assert_int_equal(p.profile, PROFILE_RESTRICTIVE);
	assert_true(p.memory_bytes == 128u << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_comes_back),
		cmocka_unit_test(what_is_not_ours_is_refused),
		cmocka_unit_test(a_policy_comes_back_whole),
		cmocka_unit_test(half_a_policy_is_none),
		cmocka_unit_test(a_number_beyond_its_maximum_is_damage),
		cmocka_unit_test(only_limits_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
