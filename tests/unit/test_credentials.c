/* test_credentials - Docker's file and its helpers, with real files and small real programs. */
#include "unit.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/credentials.h"
#include "image/reference.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#define HOST "registry.example.org"
#define PAIR "dXNlcjpwYXNzOndvcmQ=" /* user:pass:word */
#define QUICK_MS 300u

/* Each test has its own home, with helpers in bin/. */
struct home {
	char dir[64];
	char *path; /* "PATH=..." */
	char *environ_list[2];
};

static int set_up(void **state)
{
	struct home *h = mem_alloc(sizeof(*h));
	cleanup_free char *docker = NULL, *bin = NULL;

	(void)snprintf(h->dir, sizeof(h->dir), "/tmp/credentials.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	docker = mem_format("%s/.docker", h->dir);
	bin = mem_format("%s/bin", h->dir);
	assert_int_equal(mkdir(docker, 0700), 0);
	assert_int_equal(mkdir(bin, 0700), 0);
	h->path = mem_format("PATH=relative:%s:/usr/bin:/bin", bin);
	h->environ_list[0] = h->path;
	*state = h;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct home *h = *state;

	(void)nftw(h->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(h->path);
	free(h);
	return 0;
}

static void write_file(const struct home *h, const char *name, mode_t mode, const char *text)
{
	cleanup_free char *path = mem_format("%s/%s", h->dir, name);

	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, mode, text), 0);
}

static void write_config(const struct home *h, const char *text)
{
	write_file(h, ".docker/config.json", 0600, text);
}

static void write_helper(const struct home *h, const char *script)
{
	cleanup_free char *text = mem_format("#!/bin/sh\n%s\n", script);

	write_file(h, "bin/docker-credential-test", 0700, text);
}

static int find_with(struct home *h, const char *host, struct credentials *ret, struct err *e)
{
	struct credentials_options o = {
		.home = h->dir,
		.environ_list = h->environ_list,
		.helper_max_ms = QUICK_MS,
	};

	return credentials_find(&o, host, ret, e);
}

static void expect_pair(struct home *h, const char *host, const char *user, const char *password)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	struct err e = { 0 };

	if (find_with(h, host, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(c.has_any);
	assert_string_equal(c.user, user);
	assert_string_equal(c.password, password);
	assert_null(c.identity_token);
}

static void expect_token(struct home *h, const char *host, const char *token)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	struct err e = { 0 };

	if (find_with(h, host, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(c.has_any);
	assert_string_equal(c.identity_token, token);
	assert_null(c.password);
}

static void expect_none(struct home *h, const char *host)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	struct err e = { 0 };

	if (find_with(h, host, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_false(c.has_any);
	assert_null(c.user);
}

static void expect_error(struct home *h, enum err_code code, const char *words)
{
	struct credentials c = { 0 };
	struct err e = { 0 };

	assert_int_equal(find_with(h, HOST, &c, &e), -1);
	if (e.code != code || !strstr(e.msg, words))
		fail_msg("says (%d) %s, not (%d) %s", e.code, e.msg, code, words);
	assert_null(strstr(e.msg, "secret"));
	assert_false(c.has_any);
}

static void no_file_and_no_home_are_fine(void **state)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	struct credentials_options nothing = { 0 };
	struct err e = { 0 };

	expect_none(*state, HOST);
	assert_int_equal(credentials_find(&nothing, HOST, &c, &e), 0);
	assert_false(c.has_any);
}

static void docker_config_comes_before_home(void **state)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	struct home *h = *state;
	struct credentials_options o = { .docker_config = h->dir, .home = h->dir };
	struct err e = { 0 };

	write_config(h, "{\"auths\":{\"" HOST "\":{\"username\":\"home\"}}}");
	write_file(h, "config.json", 0600, "{\"auths\":{\"" HOST "\":{\"username\":\"dir\"}}}");
	assert_int_equal(credentials_find(&o, HOST, &c, &e), 0);
	assert_string_equal(c.user, "dir");
}

static void auths_give_pair_or_token(void **state)
{
	struct home *h = *state;

	write_config(h, "{\"auths\":{\"" HOST "\":{\"auth\":\"" PAIR "\"}}}");
	expect_pair(h, HOST, "user", "pass:word");
	expect_none(h, "other.example.org");
	write_config(h, "{\"auths\":{\"" HOST "\":{\"username\":\"u\",\"password\":\"p\"}}}");
	expect_pair(h, HOST, "u", "p");
	write_config(h, "{\"auths\":{\"" HOST "\":{\"auth\":\"" PAIR
			"\",\"identitytoken\":\"tok\"}}}");
	expect_token(h, HOST, "tok");
	write_config(h, "{\"auths\":{\"" HOST "\":{}},\"HttpHeaders\":{\"a\":\"b\"}}");
	expect_none(h, HOST);
}

static void a_server_may_be_written_as_an_address(void **state)
{
	static const char *const spellings[] = { "https://" HOST, "https://" HOST "/",
						 "https://" HOST "/v1/", "http://" HOST "/v2/",
						 "Registry.Example.ORG" };
	static const char *const others[] = { HOST ":5000", "x" HOST, HOST "/team", HOST ".evil",
					      "https://" HOST "@evil" };

	for (size_t i = 0; i < COUNT_OF(spellings); i++) {
		cleanup_free char *text =
			mem_format("{\"auths\":{\"%s\":{\"auth\":\"" PAIR "\"}}}", spellings[i]);

		write_config(*state, text);
		expect_pair(*state, HOST, "user", "pass:word");
	}
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		cleanup_free char *text =
			mem_format("{\"auths\":{\"%s\":{\"auth\":\"" PAIR "\"}}}", others[i]);

		write_config(*state, text);
		expect_none(*state, HOST);
	}
}

static void docker_hub_has_its_old_address(void **state)
{
	write_config(*state, "{\"auths\":{\"https://index." REFERENCE_HUB "/v1/\":{\"auth\":\"" PAIR
			     "\"}}}");
	expect_pair(*state, REFERENCE_HUB, "user", "pass:word");
	expect_none(*state, HOST);
	write_config(*state, "{\"auths\":{\"" REFERENCE_HUB "\":{\"auth\":\"" PAIR "\"}}}");
	expect_pair(*state, REFERENCE_HUB, "user", "pass:word");
}

static void broken_file_is_an_error_without_its_secrets(void **state)
{
	struct home *h = *state;

	write_config(h, "{\"auths\": secret }");
	expect_error(h, ERR_INVALID, "config.json': it is not a JSON object");
	write_config(h, "{\"auths\":[]}");
	expect_error(h, ERR_INVALID, "'auths' is not an object");
	write_config(h, "{\"auths\":{\"" HOST "\":\"secret\"}}");
	expect_error(h, ERR_INVALID, "'auths' for '" HOST "': not an object");
	write_config(h, "{\"auths\":{\"" HOST "\":{\"auth\":\"!!!\"}}}");
	expect_error(h, ERR_INVALID, "not user:password in base64");
	write_config(h, "{\"auths\":{\"" HOST "\":{\"auth\":\"c2VjcmV0\"}}}");
	expect_error(h, ERR_INVALID, "not user:password in base64");
	write_config(h, "{\"credHelpers\":{\"" HOST "\":1}}");
	expect_error(h, ERR_INVALID, "'credHelpers' for '" HOST "' is not text");
}

static void helper_is_asked_with_get_and_the_server(void **state)
{
	struct home *h = *state;

	write_config(h, "{\"credsStore\":\"test\",\"auths\":{\"" HOST "\":{}}}");
	write_helper(h,
		     "server=$(cat)\n"
		     "echo '{\"ServerURL\":\"\",\"Username\":\"'$1'\",\"Secret\":\"'$server'\"}'");
	expect_pair(h, HOST, "get", HOST);
	expect_pair(h, REFERENCE_HUB, "get", "https://index." REFERENCE_HUB "/v1/");
}

static void helper_of_the_host_comes_before_the_store_and_both_before_auths(void **state)
{
	struct home *h = *state;

	write_helper(h, "echo '{\"Username\":\"helper\",\"Secret\":\"s\"}'");
	write_config(h, "{\"credsStore\":\"absent\",\"credHelpers\":{\"" HOST "\":\"test\"},"
			"\"auths\":{\"" HOST "\":{\"auth\":\"" PAIR "\"}}}");
	expect_pair(h, HOST, "helper", "s");
	write_config(h,
		     "{\"credsStore\":\"test\",\"auths\":{\"" HOST "\":{\"auth\":\"" PAIR "\"}}}");
	expect_pair(h, HOST, "helper", "s");
	write_config(h, "{\"credHelpers\":{\"other.example.org\":\"test\"}}");
	expect_none(h, HOST);
}

static void helper_gives_identity_tokens(void **state)
{
	write_config(*state, "{\"credsStore\":\"test\"}");
	write_helper(*state, "echo '{\"Username\":\"<token>\",\"Secret\":\"tok\"}'");
	expect_token(*state, HOST, "tok");
}

static void helper_that_knows_nothing_is_no_error(void **state)
{
	struct home *h = *state;

	write_helper(h, "echo 'credentials not found in native keychain'; exit 1");
	write_config(h, "{\"credsStore\":\"test\"}");
	expect_none(h, HOST);
	write_config(h,
		     "{\"credsStore\":\"test\",\"auths\":{\"" HOST "\":{\"auth\":\"" PAIR "\"}}}");
	expect_pair(h, HOST, "user", "pass:word");
}

static void helper_that_fails_is_an_error_with_its_words(void **state)
{
	struct home *h = *state;

	write_config(h, "{\"credsStore\":\"test\"}");
	expect_error(h, ERR_NOT_FOUND, "'docker-credential-test' is not in PATH");
	write_helper(h, "printf 'the key\\033chain is locked\\nmore'; exit 3");
	expect_error(h, ERR_DENIED, "'test' fails: the key?chain is locked");
	write_helper(h, "kill -9 $$");
	expect_error(h, ERR_DENIED, "'test' fails");
	write_helper(h, "echo secret");
	expect_error(h, ERR_INVALID, "the answer is not a JSON object");
	write_helper(h, "echo '{\"Username\":\"u\"}'");
	expect_error(h, ERR_INVALID, "'Secret' is missing");
	write_helper(h, "exec cat /dev/zero");
	expect_error(h, ERR_LIMIT, "says more than 65536 bytes");
}

static void name_of_a_helper_is_no_path(void **state)
{
	static const char *const names[] = { "../test", "a/b", "a b", "a;b", "\xc3\xbc" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		cleanup_free char *text = mem_format("{\"credsStore\":\"%s\"}", names[i]);

		write_config(*state, text);
		expect_error(*state, ERR_INVALID, "impossible name");
	}
}

static void helper_is_not_looked_for_in_the_current_directory(void **state)
{
	struct home *h = *state;
	char path[] = "PATH=bin::.";

	write_config(h, "{\"credsStore\":\"test\"}");
	write_helper(h, "echo '{\"Username\":\"u\",\"Secret\":\"p\"}'");
	expect_pair(h, HOST, "u", "p");
	h->environ_list[0] = path;
	assert_int_equal(chdir(h->dir), 0);
	expect_error(h, ERR_NOT_FOUND, "is not in PATH");
	assert_int_equal(chdir("/"), 0);
}

/* Gone, or a zombie. */
static bool has_ended(const char *pid)
{
	cleanup_free char *path = mem_format("/proc/%s/stat", pid);
	char line[512];

	return file_read_line(AT_FDCWD, path, line, sizeof(line)) < 0 || strstr(line, ") Z");
}

/* The helper wrote its child's pid: the child must end too. */
static void expect_child_gone(struct home *h)
{
	char pid[32];
	cleanup_free char *path = mem_format("%s/child", h->dir);

	assert_int_equal(file_read_line(AT_FDCWD, path, pid, sizeof(pid)), 0);
	assert_true(atoi(pid) > 1);
	for (unsigned i = 0; i < 100 && !has_ended(pid); i++)
		(void)usleep(10000);
	assert_true(has_ended(pid));
}

static void slow_helper_is_ended_with_its_children(void **state)
{
	struct home *h = *state;
	cleanup_free char *script = mem_format("sleep 1000 & echo $! > %s/child; wait", h->dir);
	uint64_t start_ms;

	write_config(h, "{\"credsStore\":\"test\"}");
	write_helper(h, script);
	start_ms = clock_now_ms();
	expect_error(h, ERR_TIMEOUT, "gives no answer within 300 ms");
	assert_true(clock_now_ms() - start_ms < 5000);
	expect_child_gone(h);
}

static void helper_that_closes_its_output_and_stays_is_ended(void **state)
{
	write_config(*state, "{\"credsStore\":\"test\"}");
	write_helper(*state, "exec >&-; exec sleep 1000");
	expect_error(*state, ERR_TIMEOUT, "gives no answer within 300 ms");
}

static void helper_that_does_not_read_is_fine(void **state)
{
	write_config(*state, "{\"credsStore\":\"test\"}");
	write_helper(*state, "exec <&-; echo '{\"Username\":\"u\",\"Secret\":\"p\"}'");
	expect_pair(*state, HOST, "u", "p");
}

static void done_runs_twice(void **state)
{
	struct credentials c = { .has_any = true, .user = mem_dup("u"), .password = mem_dup("p") };

	(void)state;
	credentials_done(&c);
	assert_null(c.password);
	credentials_done(&c);
}

#define with_home(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_home(no_file_and_no_home_are_fine),
		with_home(docker_config_comes_before_home),
		with_home(auths_give_pair_or_token),
		with_home(a_server_may_be_written_as_an_address),
		with_home(docker_hub_has_its_old_address),
		with_home(broken_file_is_an_error_without_its_secrets),
		with_home(helper_is_asked_with_get_and_the_server),
		with_home(helper_of_the_host_comes_before_the_store_and_both_before_auths),
		with_home(helper_gives_identity_tokens),
		with_home(helper_that_knows_nothing_is_no_error),
		with_home(helper_that_fails_is_an_error_with_its_words),
		with_home(name_of_a_helper_is_no_path),
		with_home(helper_is_not_looked_for_in_the_current_directory),
		with_home(slow_helper_is_ended_with_its_children),
		with_home(helper_that_closes_its_output_and_stays_is_ended),
		with_home(helper_that_does_not_read_is_fine),
		cmocka_unit_test(done_runs_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
