/* test_buildplan - what a Dockerfile asks for, which files a pattern means, what is ignored. */
#include "unit.h"

#include "base/keyrows.h"
#include "base/mem.h"
#include "build/copylist.h"
#include "build/dockerfile.h"
#include "build/glob.h"
#include "build/ignore.h"
#include "build/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- patterns ---- */

static void patterns_mean_what_they_do_in_go(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches, matches_deep;
	} rows[] = {
		{ "*.txt", "a.txt", true, true },
		{ "*.txt", "d/a.txt", false, false },
		{ "*", ".hidden", true, true },
		{ "a?c", "abc", true, true },
		{ "a?c", "a/c", false, false },
		{ "[a-c]x", "bx", true, true },
		{ "[^a-c]x", "bx", false, false },
		{ "[^a-c]x", "dx", true, true },
		{ "[]]x", "]x", true, true },
		{ "\\*", "*", true, true },
		{ "\\*", "a", false, false },
		{ "**/x", "x", false, true },
		{ "**/x", "a/b/x", false, true },
		{ "**/x", "ax", false, false },
		{ "a/**", "a/b/c", false, true },
		{ "a/**/z", "a/z", false, true },
		{ "a/**/z", "a/b/c/z", false, true },
		{ "**", "any/thing", false, true },
		{ "*a*b*", "xxaxxbxx", true, true },
		{ "", "", true, true },
		{ "", "x", false, false },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct glob *plain = NULL, *deep = NULL;

		assert_int_equal(glob_compile(rows[i].pattern, 0, &plain, &e), 0);
		assert_int_equal(glob_compile(rows[i].pattern, GLOB_DEEP, &deep, &e), 0);
		if (strncmp(rows[i].pattern, "**", 2) != 0)
			assert_int_equal(glob_match(plain, rows[i].path), rows[i].matches);
		assert_int_equal(glob_match(deep, rows[i].path), rows[i].matches_deep);
		glob_free(plain);
		glob_free(deep);
	}
}

static void patterns_that_end_too_early_are_refused(void **state)
{
	static const char *const bad[] = { "[", "a[b", "[^", "a\\" };
	struct glob *g = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(glob_compile(bad[i], 0, &g, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

static void a_hostile_pattern_is_not_slow(void **state)
{
	char pattern[2001], path[2001];
	struct glob *g = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		pattern[i] = i % 2 ? 'a' : '*';
		path[i] = 'a';
	}
	pattern[2000] = path[2000] = '\0';
	pattern[1999] = 'b';
	assert_int_equal(glob_compile(pattern, GLOB_DEEP, &g, &e), 0);
	assert_false(glob_match(g, path));
	glob_free(g);
}

static void what_is_ignored_can_be_taken_back(void **state)
{
	static const char text[] =
		"# comment\n\n*.log\n/build/\nnode_modules\n!build/keep\ndocs/**/*.md\n"
		"!docs/a/README.md\n  spaces  \n../outside\n";
	static const struct {
		const char *path;
		bool is_ignored;
	} rows[] = {
		{ "a.log", true },
		{ "d/a.log", false },
		{ "build", true },
		{ "build/x", true },
		{ "build/keep", false },
		{ "node_modules/a/b", true },
		{ "sub/node_modules", false },
		{ "docs/x.md", true },
		{ "docs/a/x.md", true },
		{ "docs/a/README.md", false },
		{ "spaces", true },
		{ "outside", false },
		{ "# comment", false },
	};
	struct ignore *ignore = NULL;
	struct err e;

	(void)state;
	assert_int_equal(ignore_parse("x", text, sizeof(text) - 1, &ignore, &e), 0);
	assert_true(ignore_has_exceptions(ignore));
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (ignore_has(ignore, rows[i].path) != rows[i].is_ignored)
			fail_msg("'%s'", rows[i].path);
	ignore_free(ignore);
	assert_int_equal(ignore_parse("x", "ok\n[\n", 5, &ignore, &e), -1);
	assert_non_null(strstr(e.msg, "x:2: "));
}

/* ---- plans ---- */

static int plan(const char *text, char **given, const char *target, struct dockerfile *d,
		struct plan *p, struct err *e)
{
	if (dockerfile_parse("Dockerfile", text, strlen(text), d, e) < 0)
		return -1;
	return plan_make(d, given, target, p, e);
}

static void stages_need_what_they_copy_from(void **state)
{
	static char *given[] = { (char *)"V=3", NULL };
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	CLEANUP(plan_done) struct plan p = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(plan("ARG V=1\nARG W=${V}x\nFROM base:$W AS one\n"
			      "FROM one AS two\nFROM scratch AS three\nRUN "
			      "--mount=type=bind,from=one,target=/x x\n"
			      "FROM other AS four\nCOPY --from=two /a /b\nCOPY --from=2 /c "
			      "/d\nCOPY --from=image /e /f\n"
			      "FROM never\n",
			      given, "four", &d, &p, &e),
			 0);
	assert_int_equal(p.count, 5);
	assert_string_equal(p.stages[0].base, "base:3x");
	assert_int_equal(p.stages[1].base_stage, 0);
	assert_true(p.stages[2].needs[0] && !p.stages[2].needs[1]);
	assert_true(p.stages[3].needs[1] && p.stages[3].needs[2] && !p.stages[3].needs[0]);
	assert_true(p.stages[0].is_wanted && p.stages[1].is_wanted && p.stages[2].is_wanted);
	assert_false(p.stages[4].is_wanted);
	assert_int_equal(p.target, 3);
}

static void mistakes_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "FROM a\nCOPY --from=0 x y\n",
		  "Dockerfile:2:6: COPY: --from=0: that stage is not before" },
		{ "FROM a\nHEALTHCHECK RUN x\n", "'RUN' is neither CMD nor NONE" },
		{ "FROM a\nSHELL sh\n", "it needs a list in JSON" },
		{ "FROM a\nCMD [\"a\\u0000b\"]\n", "a word has a NUL" },
		{ "FROM a\nONBUILD FROM b\n", "'from' may not be in an ONBUILD" },
		{ "FROM a\nONBUILD COPY x\n", "too few words" },
		{ "FROM a as scratch\n", "'scratch' is the empty image" },
		{ "FROM a b c\n", "what follows the image is 'AS NAME'" },
		{ "ARG A\n", "there is no FROM" },
		{ "FROM a\nUSER\n", "too few words (it is: USER NAME[:GROUP])" },
		{ "FROM a\nRUN --mont=x y\n", "did you mean '--mount'?" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
		CLEANUP(plan_done) struct plan p = { 0 };
		struct err e = { 0 };

		assert_int_equal(plan(rows[i].text, NULL, NULL, &d, &p, &e), -1);
		if (!strstr(e.msg, rows[i].words))
			fail_msg("%s: '%s'", rows[i].text, e.msg);
	}
}

/* ---- files ---- */

static int make_tree(char *path)
{
	int fd;

	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, "d", 0755), 0);
	assert_int_equal(mkdirat(fd, "d/e", 0755), 0);
	close(openat(fd, "d/e/f", O_CREAT | O_WRONLY, 0644));
	close(openat(fd, "d/x.txt", O_CREAT | O_WRONLY, 0644));
	close(openat(fd, "a.txt", O_CREAT | O_WRONLY, 0644));
	assert_int_equal(symlinkat("/etc/passwd", fd, "out"), 0);
	assert_int_equal(symlinkat("../../../../etc", fd, "up"), 0);
	assert_int_equal(symlinkat("d/e", fd, "in"), 0);
	assert_int_equal(symlinkat("loop", fd, "loop"), 0);
	return fd;
}

static void nothing_outside_of_a_context_can_be_named(void **state)
{
	static const char *const refused[] = { "../x", "out",       "up",  "up/passwd",
					       "loop", "d/../../x", "none" };
	static const struct {
		const char *word;
		size_t sources, entries;
	} taken[] = {
		{ "*.txt", 1, 1 }, { "*/*.txt", 1, 1 }, { "d", 1, 4 },     { ".", 1, 10 },
		{ "in", 1, 2 },    { "no*", 0, 0 },     { "/d/e/", 1, 2 }, { "[ad]*", 2, 5 }
	};
	char path[] = "/tmp/agentkernel-unit.XXXXXX";
	cleanup_fd int fd = make_tree(path);
	const struct copylist_options o = { .root_fd = fd, .where = "here" };
	cleanup_free char *command = mem_format("rm -rf %s", path);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		CLEANUP(copylist_done) struct copylist l = { 0 };
		struct err e = { 0 };

		assert_int_equal(copylist_add(&l, &o, refused[i], &e), -1);
		assert_true(e.code == ERR_NOT_FOUND || e.code == ERR_INVALID);
	}
	for (size_t i = 0; i < COUNT_OF(taken); i++) {
		CLEANUP(copylist_done) struct copylist l = { 0 };
		struct err e = { 0 };

		if (copylist_add(&l, &o, taken[i].word, &e) < 0)
			fail_msg("%s: %s", taken[i].word, e.msg);
		assert_int_equal(l.source_count, taken[i].sources);
		assert_int_equal(l.count, taken[i].entries);
	}
	assert_int_equal(system(command), 0);
}

static void a_fingerprint_changes_with_a_file(void **state)
{
	char path[] = "/tmp/agentkernel-unit.XXXXXX";
	cleanup_fd int fd = make_tree(path);
	const struct copylist_options o = { .root_fd = fd, .where = "here" };
	char prints[3][COPYLIST_PRINT_BYTES];
	cleanup_free char *command = mem_format("rm -rf %s", path);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(prints); i++) {
		CLEANUP(copylist_done) struct copylist l = { 0 };
		struct err e = { 0 };

		if (i == 2)
			assert_int_equal(fchmodat(fd, "d/e/f", 0600, 0), 0);
		assert_int_equal(copylist_add(&l, &o, "d", &e), 0);
		copylist_fingerprint(&l, prints[i]);
	}
	assert_string_equal(prints[0], prints[1]);
	assert_string_not_equal(prints[0], prints[2]);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_mean_what_they_do_in_go),
		cmocka_unit_test(patterns_that_end_too_early_are_refused),
		cmocka_unit_test(a_hostile_pattern_is_not_slow),
		cmocka_unit_test(what_is_ignored_can_be_taken_back),
		cmocka_unit_test(stages_need_what_they_copy_from),
		cmocka_unit_test(mistakes_are_refused_with_their_place),
		cmocka_unit_test(nothing_outside_of_a_context_can_be_named),
		cmocka_unit_test(a_fingerprint_changes_with_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
