/* test_policy - settings become one policy, and every value knows who set it. */
#include "unit.h"

#include "base/buf.h"
#include "policy/environment.h"
#include "policy/policy.h"

static char *const caller_environ[] = { "HOME=/home/me", "PLAIN=1", "API_TOKEN=x", "TMUX=y", NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = caller_environ,
};

#define SET(field_, text_)                                                                         \
	{                                                                                          \
		.field = (field_), .text = (text_), .origin = "--test"                             \
	}

static int resolve(const struct policy_setting *settings, size_t count, struct policy *p,
		   struct err *e)
{
	return policy_resolve(settings, count, &caller, p, e);
}

static void the_default_is_moderate(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(NULL, 0, &p, &e), 0);
	assert_int_equal(p.profile, PROFILE_MODERATE);
	assert_int_equal(p.uid, 0);
	assert_true(p.has_capabilities);
	assert_false(p.is_read_only);
	assert_null(p.workspace);
	assert_null(p.home);
	assert_int_equal(p.memory_bytes, 2ull << 30);
	assert_int_equal(p.disk_bytes, 1ull << 30);
	assert_string_equal(p.workdir, "/root");
}

static void a_profile_comes_before_single_values_wherever_it_stands(void **state)
{
	const struct policy_setting settings[] = {
		SET(POLICY_MEMORY, "1g"),
		SET(POLICY_USER, "7:8"),
		SET(POLICY_PROFILE, "restrictive"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(settings, COUNT_OF(settings), &p, &e), 0);
	assert_int_equal(p.memory_bytes, 1ull << 30);
	assert_int_equal(p.uid, 7);
	assert_int_equal(p.gid, 8);
	assert_int_equal(p.pids_count, 128);
	assert_true(p.is_read_only);
	assert_false(p.has_capabilities);
	assert_string_equal(p.home_dir, "/home/user");
	assert_string_equal(p.origin[POLICY_MEMORY], "--test");
	assert_string_equal(p.origin[POLICY_NOFILE], "default");
}

static void permissive_shows_home_and_workspace(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_PROFILE, "permissive") };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(settings, 1, &p, &e), 0);
	assert_string_equal(p.workspace, "/work/here");
	assert_string_equal(p.home, "/home/me");
	assert_string_equal(p.workdir, "/work/here");
	assert_int_equal(p.memory_bytes, 0);
}

static void another_user_has_no_capabilities(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_USER, "nobody") };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(settings, 1, &p, &e), 0);
	assert_int_equal(p.uid, 65534);
	assert_false(p.has_capabilities);
}

static void bad_settings_name_their_origin(void **state)
{
	static const struct policy_setting bad[] = {
		SET(POLICY_PROFILE, "lax"),
		SET(POLICY_MEMORY, "x"),
		SET(POLICY_USER, "mallory"),
		SET(POLICY_USER, "0:mallory"),
		SET(POLICY_USER, "65535"),
		SET(POLICY_MOUNT, ":/a"),
		SET(POLICY_MOUNT, "/a:b"),
		SET(POLICY_MOUNT, "/a:/proc/sys"),
		SET(POLICY_MOUNT, "/a:/./dev/x"),
		SET(POLICY_MOUNT, "/a:/b/../.."),
		SET(POLICY_TMPFS, "rel"),
		SET(POLICY_TMPFS, "/a:lots"),
		SET(POLICY_WORKDIR, "rel"),
		SET(POLICY_WORKSPACE, "/"),
		SET(POLICY_ENV, "=x"),
		SET(POLICY_IMAGE, "debian"),
		SET(POLICY_BACKEND, "magic"),
		SET(POLICY_NETWORK_POLICY, "maybe"),
		SET(POLICY_ALLOW_HOST, "a b"),
		SET(POLICY_BLOCK_HOST, ""),
		SET(POLICY_ALLOW_CIDR, "a.example"),
		SET(POLICY_ACCEPT_MISSING, "seccomp"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		CLEANUP(policy_done) struct policy p = { 0 };
		struct err e = { 0 };

		assert_int_equal(resolve(&bad[i], 1, &p, &e), -1);
		assert_true(strncmp(e.msg, "--test: ", 8) == 0);
		assert_null(p.workdir); /* nothing was handed out */
	}
}

static void mounts_are_made_absolute(void **state)
{
	const struct policy_setting settings[] = {
		SET(POLICY_MOUNT, "data:/data:ro"),
		SET(POLICY_MOUNT, "/srv/x"),
		SET(POLICY_MOUNT, "../up:/a/./b/"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(settings, COUNT_OF(settings), &p, &e), 0);
	assert_string_equal(p.mounts[0].source, "/work/here/data");
	assert_string_equal(p.mounts[0].target, "/data");
	assert_true(p.mounts[0].is_read_only);
	assert_string_equal(p.mounts[1].target, "/srv/x");
	assert_false(p.mounts[1].is_read_only);
	assert_string_equal(p.mounts[2].source, "/work/up");
	assert_string_equal(p.mounts[2].target, "/a/b");
}

static void too_many_mounts_are_refused(void **state)
{
	struct policy_setting settings[POLICY_MOUNTS_MAX + 1];
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		settings[i] = (struct policy_setting)SET(POLICY_MOUNT, "/a:/b");
	assert_int_equal(resolve(settings, COUNT_OF(settings), &p, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void the_environment_is_clean_or_passed_without_secrets(void **state)
{
	const struct policy_setting permissive[] = {
		SET(POLICY_PROFILE, "permissive"),
		SET(POLICY_ENV, "API_TOKEN"),
		SET(POLICY_ENV, "PLAIN=2"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;
	char **env;

	(void)state;
	assert_int_equal(resolve(NULL, 0, &p, &e), 0);
	env = environment_build(&p, &caller, NULL);
	assert_null(environment_get(env, "PLAIN"));
	assert_string_equal(environment_get(env, "HOME"), "/root");
	environment_free(env);
	policy_done(&p);

	assert_int_equal(resolve(permissive, 1, &p, &e), 0);
	env = environment_build(&p, &caller, "xterm");
	assert_string_equal(environment_get(env, "PLAIN"), "1");
	assert_null(environment_get(env, "API_TOKEN"));
	assert_null(environment_get(env, "TMUX"));
	assert_string_equal(environment_get(env, "TERM"), "xterm");
	environment_free(env);
	policy_done(&p);

	assert_int_equal(resolve(permissive, COUNT_OF(permissive), &p, &e), 0);
	env = environment_build(&p, &caller, NULL);
	assert_string_equal(environment_get(env, "PLAIN"), "2");
	assert_string_equal(environment_get(env, "API_TOKEN"), "x"); /* asked for by name */
	environment_free(env);
}

static void secrets_are_known_by_name_and_by_address(void **state)
{
	static const char *const secret[] = {
		"GITHUB_TOKEN=x",        "aws_secret_access_key=x", "DB_PASSWORD=x",
		"STRIPE_KEY=x",          "SSH_AUTH_SOCK=/x",        "PROXY=http://me:pw@host/",
		"X=a b https://u:p@h c",
	};
	static const char *const plain[] = {
		"PATH=/bin",
		"LANG=C",
		"EDITOR=vi",
		"KEYBOARD=us",
		"URL=https://host/a:b@c",
		"PROXY=http://host:80/",
		"MONKEY=1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(secret); i++)
		assert_true(environment_is_secret(secret[i]));
	for (size_t i = 0; i < COUNT_OF(plain); i++)
		assert_false(environment_is_secret(plain[i]));
}

static void every_field_can_be_shown(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(resolve(NULL, 0, &p, &e), 0);
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf out;

		buf_init(&out, 4096);
		policy_format_field(&p, field, &out);
		assert_true(out.len > 0);
		assert_non_null(policy_field_name(field));
		assert_non_null(p.origin[field]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_moderate),
		cmocka_unit_test(a_profile_comes_before_single_values_wherever_it_stands),
		cmocka_unit_test(permissive_shows_home_and_workspace),
		cmocka_unit_test(another_user_has_no_capabilities),
		cmocka_unit_test(bad_settings_name_their_origin),
		cmocka_unit_test(mounts_are_made_absolute),
		cmocka_unit_test(too_many_mounts_are_refused),
		cmocka_unit_test(the_environment_is_clean_or_passed_without_secrets),
		cmocka_unit_test(secrets_are_known_by_name_and_by_address),
		cmocka_unit_test(every_field_can_be_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
