/* test_policy - settings become one policy, and every value knows who set it. */
#include "unit.h"

#include "base/buf.h"
#include "policy/environment.h"
#include "policy/policyimage.h"
#include "policy/policyshow.h"

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
	assert_int_equal(p.pids_count, 512);
	assert_true(p.is_read_only);
	assert_false(p.has_capabilities);
	assert_string_equal(p.home_dir, "/home/user");
	assert_string_equal(p.origin[POLICY_MEMORY].text, "--test");
	assert_string_equal(p.origin[POLICY_NOFILE].text, "default");
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
		SET(POLICY_IMAGE, ""),
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
		assert_null(p.workdir); /* nothing was returned */
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
	assert_string_equal(environment_get(env, "API_TOKEN"), "x"); /* requested by name */
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

static char *const image_env[] = { "PATH=/opt/bin", "FROM=image", "PLAIN=image", NULL };
static const struct policyimage image = {
	.env = image_env,
	.user = "app",
	.workdir = "/srv/./data/",
	.passwd = "root:x:0:0::/root:/bin/sh\napp:x:70:71::/srv:/bin/sh\n",
	.group = "app:x:71:\nextra:x:72:app\n",
};

/* Resolves the policy of these settings for an image. */
static void resolve_image(const struct policy_setting *more, size_t count,
			  const struct policyimage *i, struct policy *p)
{
	struct policy_setting settings[8] = { SET(POLICY_IMAGE, "registry.example.org/x:1") };
	struct err e = { 0 };

	if (count > 0)
		memcpy(settings + 1, more, count * sizeof(*more));
	assert_int_equal(resolve(settings, count + 1, p, &e), 0);
	assert_int_equal(policyimage_apply(p, i, &e), 0);
}

static void an_image_says_who_where_and_with_what(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve_image(NULL, 0, &image, &p);
	assert_false(policy_is_host_image(&p));
	assert_int_equal(p.uid, 70);
	assert_int_equal(p.gid, 71);
	assert_int_equal(p.group_count, 1);
	assert_int_equal(p.groups[0], 72);
	assert_false(p.has_capabilities);
	assert_string_equal(p.user_name, "app");
	assert_string_equal(p.home_dir, "/srv");
	assert_string_equal(p.workdir, "/srv/data");
	assert_string_equal(p.origin[POLICY_USER].text, "image");
	assert_string_equal(p.origin[POLICY_WORKDIR].text, "image");
}

static void options_win_over_an_image(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_USER, "root"),
						   SET(POLICY_WORKDIR, "/else"),
						   SET(POLICY_ENV, "FROM=option") };
	CLEANUP(policy_done) struct policy p = { 0 };
	char **list;

	(void)state;
	resolve_image(settings, COUNT_OF(settings), &image, &p);
	assert_int_equal(p.uid, 0);
	assert_true(p.has_capabilities);
	assert_string_equal(p.workdir, "/else");
	list = environment_build(&p, &caller, NULL);
	assert_string_equal(environment_get(list, "FROM"), "option");
	assert_string_equal(environment_get(list, "PATH"), "/opt/bin");
	assert_string_equal(environment_get(list, "HOME"), "/root");
	environment_free(list);
}

static void a_profile_without_root_does_not_run_as_an_images_root(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_PROFILE, "restrictive") };
	struct policyimage as_root = image;
	CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 };

	(void)state;
	as_root.user = "root";
	resolve_image(settings, 1, &as_root, &p);
	assert_int_equal(p.uid, POLICY_USER_ID);
	assert_string_equal(p.home_dir, "/home/user");
	resolve_image(settings, 1, &image, &q); /* another user of the image is accepted */
	assert_int_equal(q.uid, 70);
	assert_false(q.has_capabilities);
}

static void an_image_without_words_starts_at_its_root(void **state)
{
	const struct policyimage silent = { .user = "", .workdir = "", .passwd = "", .group = "" };
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve_image(NULL, 0, &silent, &p);
	assert_int_equal(p.uid, 0);
	assert_true(p.has_capabilities);
	assert_string_equal(p.workdir, "/");
}

static void a_user_that_the_image_does_not_have_is_refused(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_IMAGE, "x"),
						   SET(POLICY_USER, "ghost") };
	struct policyimage ghost = image;
	CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(resolve(settings, 2, &p, &e), 0);
	assert_int_equal(policyimage_apply(&p, &image, &e), -1);
	assert_string_equal(e.msg, "--test: no user 'ghost' inside");
	ghost.user = "nobody:here";
	assert_int_equal(resolve(settings, 1, &q, &e), 0);
	assert_int_equal(policyimage_apply(&q, &ghost, &e), -1);
	assert_non_null(strstr(e.msg, "the image's user 'nobody:here': no user 'nobody'"));
}

/* The caller's PATH is for this machine's programs, not for the image's. */
static void a_passed_environment_gives_way_to_the_images(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_PROFILE, "permissive") };
	static char *const own[] = { "PATH=/mine", "LD_PRELOAD=/mine.so", "PLAIN=mine", "KEPT=1",
				     NULL };
	const struct policy_caller other = { "/work/here", "/home/me", own };
	CLEANUP(policy_done) struct policy p = { 0 };
	char **list;

	(void)state;
	resolve_image(settings, 1, &image, &p);
	list = environment_build(&p, &other, NULL);
	assert_string_equal(environment_get(list, "PATH"), "/opt/bin");
	assert_null(environment_get(list, "LD_PRELOAD"));
	assert_string_equal(environment_get(list, "PLAIN"), "image");
	assert_string_equal(environment_get(list, "KEPT"), "1");
	environment_free(list);
}

static void an_image_that_cannot_be_had_gives_way_to_the_host(void **state)
{
	const struct policy_setting settings[] = { SET(POLICY_IMAGE, "x"),
						   SET(POLICY_USER, "user") };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(resolve(settings, 2, &p, &e), 0);
	assert_int_equal(policyimage_use_host(&p, "fallback", &e), 0);
	assert_true(policy_is_host_image(&p));
	assert_int_equal(p.uid, POLICY_USER_ID);
	assert_string_equal(p.workdir, "/home/user");
	assert_string_equal(p.origin[POLICY_IMAGE].text, "fallback");
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
		policyshow_field(&p, field, &out);
		assert_true(out.len > 0);
		assert_non_null(policy_field_name(field));
		assert_non_null(p.origin[field].text);
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
		cmocka_unit_test(an_image_says_who_where_and_with_what),
		cmocka_unit_test(options_win_over_an_image),
		cmocka_unit_test(a_profile_without_root_does_not_run_as_an_images_root),
		cmocka_unit_test(an_image_without_words_starts_at_its_root),
		cmocka_unit_test(a_user_that_the_image_does_not_have_is_refused),
		cmocka_unit_test(a_passed_environment_gives_way_to_the_images),
		cmocka_unit_test(an_image_that_cannot_be_had_gives_way_to_the_host),
		cmocka_unit_test(every_field_can_be_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
