/* test_registries - mirrors and insecure registries from the user's file, with real files. */
#include "unit.h"

#include "base/file.h"
#include "base/mem.h"
#include "image/reference.h"
#include "image/registries.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#define HOST "registry.example.org"
#define FILE_OF_HOME ".config/agentkernel/config.toml"
#define FILE_OF_XDG "xdg/agentkernel/config.toml"

/* Each test has its own home. */
struct home {
	char dir[64];
	char *home; /* "HOME=..." */
	char *xdg;
	char *environ_list[3];
};

static int set_up(void **state)
{
	struct home *h = mem_alloc(sizeof(*h));
	cleanup_free char *config = NULL, *xdg = NULL;

	(void)snprintf(h->dir, sizeof(h->dir), "/tmp/registries.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	config = mem_format("%s/.config/agentkernel", h->dir);
	xdg = mem_format("%s/xdg/agentkernel", h->dir);
	assert_int_equal(file_make_dirs(config, 0700), 0);
	assert_int_equal(file_make_dirs(xdg, 0700), 0);
	h->home = mem_format("HOME=%s", h->dir);
	h->xdg = mem_format("XDG_CONFIG_HOME=%s/xdg", h->dir);
	h->environ_list[0] = h->home;
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
	free(h->home);
	free(h->xdg);
	free(h);
	return 0;
}

static void write_file(const struct home *h, const char *name, const char *text)
{
	cleanup_free char *path = mem_format("%s/%s", h->dir, name);

	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0600, text), 0);
}

static void load(const struct home *h, const char *host, struct registries *ret)
{
	struct err e = { 0 };

	if (registries_load(h->environ_list, host, ret, &e) < 0)
		fail_msg("%s", e.msg);
}

/* `mirror` is the only one, or NULL for none. */
static void expect(const struct home *h, const char *host, const char *mirror, bool is_insecure)
{
	CLEANUP(registries_done) struct registries r = { 0 };

	load(h, host, &r);
	assert_int_equal(r.is_insecure, is_insecure);
	if (!mirror) {
		assert_null(r.mirrors);
		return;
	}
	assert_non_null(r.mirrors);
	assert_string_equal(r.mirrors[0], mirror);
	assert_null(r.mirrors[1]);
}

/* The message is the file's path followed by `words`. */
static void expect_refused(const struct home *h, const char *text, const char *words)
{
	cleanup_free char *message = mem_format("%s/" FILE_OF_HOME "%s", h->dir, words);
	struct registries r = { .is_insecure = true };
	struct err e = { 0 };

	write_file(h, FILE_OF_HOME, text);
	if (registries_load(h->environ_list, HOST, &r, &e) == 0)
		fail_msg("taken: %s", text);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.msg, message);
	assert_true(r.is_insecure);
}

static void no_file_and_no_home_set_nothing(void **state)
{
	struct home *h = *state;

	expect(h, HOST, NULL, false);
	h->environ_list[0] = NULL;
	expect(h, HOST, NULL, false);
}

static void mirrors_and_insecure_are_read_for_their_host_only(void **state)
{
	struct home *h = *state;
	CLEANUP(registries_done) struct registries r = { 0 };

	write_file(h, FILE_OF_HOME,
		   "[registries.\"" HOST "\"]\n"
		   "mirrors = [\"https://a.example.org\", 'http://b.example.org:5000/cache']\n"
		   "[registries.'127.0.0.1:5000']\ninsecure = true\n"
		   "[registries.localhost]\nmirrors = []\ninsecure = false\n");
	load(h, HOST, &r);
	assert_string_equal(r.mirrors[0], "https://a.example.org");
	assert_string_equal(r.mirrors[1], "http://b.example.org:5000/cache");
	assert_null(r.mirrors[2]);
	assert_false(r.is_insecure);
	expect(h, "127.0.0.1:5000", NULL, true);
	expect(h, "127.0.0.1", NULL, false);
	expect(h, "other.example.org", NULL, false);
	registries_done(&r);
	load(h, "localhost", &r);
	assert_null(r.mirrors[0]);
}

static void xdg_config_home_comes_before_home(void **state)
{
	struct home *h = *state;

	write_file(h, FILE_OF_HOME, "[registries.\"" HOST "\"]\nmirrors = [\"https://home\"]");
	write_file(h, FILE_OF_XDG, "[registries.\"" HOST "\"]\nmirrors = [\"https://xdg\"]");
	expect(h, HOST, "https://home", false);
	h->environ_list[1] = h->xdg;
	expect(h, HOST, "https://xdg", false);
	h->environ_list[1] = (char *)"XDG_CONFIG_HOME=";
	expect(h, HOST, "https://home", false);
	h->environ_list[1] = (char *)"XDG_CONFIG_HOME=relative";
	expect(h, HOST, "https://home", false);
}

static void hosts_are_compared_as_references_write_them(void **state)
{
	struct home *h = *state;

	write_file(h, FILE_OF_HOME,
		   "[registries]\n"
		   "\"INDEX." REFERENCE_HUB "\".mirrors = [\"https://hub\"]\n"
		   "\"Registry.Example.ORG:5000\".mirrors = [\"https://upper\"]\n"
		   "\"[0:0::1]:5000\".insecure = true\n");
	expect(h, REFERENCE_HUB, "https://hub", false);
	expect(h, "registry.example.org:5000", "https://upper", false);
	expect(h, HOST, NULL, false);
	expect(h, "[::1]:5000", NULL, true);
}

static void other_tables_are_not_judged(void **state)
{
	struct home *h = *state;

	write_file(h, FILE_OF_HOME,
		   "unknown = 1\n[defaults]\nmirror = 5\n[registries.\"" HOST "\"]\n"
		   "insecure = true\n[[registry]]\n");
	expect(h, HOST, NULL, true);
}

static void unknown_keys_are_refused_with_the_nearest_known_one(void **state)
{
	expect_refused(*state, "[registries.\"" HOST "\"]\n  miror = []",
		       ":2:3: a registry has no 'miror'; did you mean 'mirrors'?");
	expect_refused(*state, "[registries.\"" HOST "\"]\ninsecur = true",
		       ":2:1: a registry has no 'insecur'; did you mean 'insecure'?");
	expect_refused(*state, "[registries.\"" HOST "\"]\npassword = 'x'",
		       ":2:1: a registry has no 'password', only 'mirrors', 'insecure', "
		       "'private-redirects' and 'timeout'");
	expect_refused(*state, "[registries.\"" HOST "\"]\n\"mirrors\\u0000\" = []",
		       ":2:1: a registry has no 'mirrors'; did you mean 'mirrors'?");
	/* an error for another host is refused as well */
	expect_refused(*state, "[registries.'x.example.org']\ninsecur = true",
		       ":2:1: a registry has no 'insecur'; did you mean 'insecure'?");
}

static void wrong_types_are_refused_with_their_place(void **state)
{
	expect_refused(*state, "registries = 5", ":1:14: a table is expected, not an integer");
	expect_refused(*state, "registries.\"" HOST "\" = 'x'",
		       ":1:37: a table is expected, not a string");
	expect_refused(*state, "[registries.\"" HOST "\"]\nmirrors = \"https://a\"",
		       ":2:11: an array is expected, not a string");
	expect_refused(*state, "[registries.\"" HOST "\"]\nmirrors = [\"https://a\",\n  5]",
		       ":3:3: a string is expected, not an integer");
	expect_refused(*state, "[registries.\"" HOST "\"]\nmirrors = [\"https://a\\u0000\"]",
		       ":2:12: the string holds a NUL");
	expect_refused(*state, "[registries.\"" HOST "\"]\ninsecure = 'true'",
		       ":2:12: true or false is expected, not a string");
}

static void mirrors_are_http_addresses_and_not_too_many(void **state)
{
	static const char *const texts[] = { "mirror.example.org", "ftp://a",  "https://",
					     "http:///x",          "HTTPS//a", "" };

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		cleanup_free char *text =
			mem_format("[registries.\"" HOST "\"]\nmirrors = ['%s']", texts[i]);
		cleanup_free char *words = mem_format(":2:12: a mirror is an address as "
						      "https://mirror.example.org, not '%s'",
						      texts[i]);

		expect_refused(*state, text, words);
	}
#define FOUR "'http://a','http://a','http://a','http://a',"
	write_file(*state, FILE_OF_HOME,
		   "[registries.\"x.example.org\"]\nmirrors = [" FOUR FOUR FOUR FOUR "]");
	expect(*state, HOST, NULL, false);
	expect_refused(*state,
		       "registries.\"" HOST "\".mirrors = [" FOUR FOUR FOUR FOUR "'http://a']",
		       ":1:45: more than 16 mirrors");
#undef FOUR
}

static void keys_that_are_no_host_are_refused(void **state)
{
	expect_refused(
		*state, "[registries." HOST "]\ninsecure = true",
		":1:13: 'registry' is not the host of a registry (one with dots needs quotes)");
	expect_refused(*state, "[registries.\"https://" HOST "\"]",
		       ":1:13: 'https://" HOST
		       "' is not the host of a registry (one with dots needs quotes)");
	expect_refused(*state, "[registries.\"" HOST "/path\"]",
		       ":1:13: '" HOST
		       "/path' is not the host of a registry (one with dots needs quotes)");
	expect_refused(*state, "[registries.\"" HOST "\\u0000\"]",
		       ":1:13: '" HOST
		       "' is not the host of a registry (one with dots needs quotes)");
	expect_refused(*state, "[registries.\"\"]",
		       ":1:13: '' is not the host of a registry (one with dots needs quotes)");
	expect_refused(*state, "[registries.\"" HOST "\"]\n[registries.\"REGISTRY.example.org\"]",
		       ":2:13: 'REGISTRY.example.org' is the same registry as '" HOST "'");
}

static void broken_and_huge_files_are_errors(void **state)
{
	struct home *h = *state;
	cleanup_free char *huge = mem_alloc(REGISTRIES_FILE_MAX_BYTES + 2);
	struct registries r = { 0 };
	struct err e = { 0 };

	expect_refused(h, "a = 1\n[registries\n",
		       ":2:12: ']' is expected after a table's name: end of line");
	memset(huge, '#', REGISTRIES_FILE_MAX_BYTES + 1);
	write_file(h, FILE_OF_HOME, huge);
	assert_int_equal(registries_load(h->environ_list, HOST, &r, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "config.toml' is larger than 1048576 bytes"));
}

static void done_runs_twice(void **state)
{
	struct registries r = { .mirrors = mem_alloc(2 * sizeof(char *)) };

	(void)state;
	r.mirrors[0] = mem_dup("https://a");
	registries_done(&r);
	assert_null(r.mirrors);
	registries_done(&r);
}

#define with_home(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_home(no_file_and_no_home_set_nothing),
		with_home(mirrors_and_insecure_are_read_for_their_host_only),
		with_home(xdg_config_home_comes_before_home),
		with_home(hosts_are_compared_as_references_write_them),
		with_home(other_tables_are_not_judged),
		with_home(unknown_keys_are_refused_with_the_nearest_known_one),
		with_home(wrong_types_are_refused_with_their_place),
		with_home(mirrors_are_http_addresses_and_not_too_many),
		with_home(keys_that_are_no_host_are_refused),
		with_home(broken_and_huge_files_are_errors),
		cmocka_unit_test(done_runs_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
