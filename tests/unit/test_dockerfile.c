/*
 * test_dockerfile - Dockerfiles are read as BuildKit reads them.
 *
 * The published test data is not part of this repository: AGENTKERNEL_DOCKERFILE_TEST names its
 * folder, or it is in ../shared/dockerfile-test, relative to the repository's top. Without it those
 * tests are skipped, with words.
 */
#include "unit.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/shown.h"
#include "build/dockerfile.h"
#include "build/expand.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define GOOD_MIN 30 /* with fewer the data is incomplete */
#define BAD_MIN 4
#define LINES_MIN 150

/* ---- the published data ---- */

static int open_data(void)
{
	const char *path = getenv("AGENTKERNEL_DOCKERFILE_TEST");
	int fd = open(path ? path : "../shared/dockerfile-test", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		print_message("left out: no BuildKit test data in $AGENTKERNEL_DOCKERFILE_TEST or "
			      "../shared/dockerfile-test\n");
		skip();
	}
	return fd;
}

static char *load(int dir_fd, const char *path, size_t *ret_len)
{
	char *text = NULL;

	if (file_read_at(dir_fd, path, 1u << 20, &text, ret_len) < 0)
		fail_msg("'%s' of the test data cannot be read", path);
	return text;
}

/* As Go's %q writes it. */
static void dump_quoted(const char *text, size_t len, struct buf *out)
{
	static const char from[] = "\a\b\f\n\r\t\v\"\\", to[] = "abfnrtv\"\\";

	buf_add_text(out, "\"");
	for (size_t i = 0; i < len; i++) {
		const char *found = text[i] ? strchr(from, text[i]) : NULL;

		if (found)
			buf_addf(out, "\\%c", to[found - from]);
		else if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			buf_addf(out, "\\x%02x", text[i]);
		else
			buf_add(out, text + i, 1);
	}
	buf_add_text(out, "\"");
}

static void dump(const struct dockerfile_instruction *i, struct buf *out)
{
	buf_addf(out, "(%s", i->keyword);
	for (size_t n = 0; i->flags && i->flags[n]; n++) {
		buf_add_text(out, n ? " " : " [");
		dump_quoted(i->flags[n], strlen(i->flags[n]), out);
		if (!i->flags[n + 1])
			buf_add_text(out, "]");
	}
	for (unsigned n = 0; n < i->word_count; n++) {
		buf_add_text(out, " ");
		dump_quoted(i->words[n].text, i->words[n].len, out);
	}
	if (i->sub) {
		buf_add_text(out, " ");
		dump(i->sub, out);
	}
	buf_add_text(out, ")");
}

static bool is_as_expected(int dir_fd, const char *name)
{
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	cleanup_free char *path = mem_format("testfiles/%s/Dockerfile", name);
	cleanup_free char *result_path = mem_format("testfiles/%s/result", name);
	cleanup_free char *text = NULL, *expected = NULL;
	cleanup_buf struct buf got;
	struct err e = { 0 };
	size_t len = 0, ignored;

	buf_init(&got, 1u << 20);
	text = load(dir_fd, path, &len);
	expected = load(dir_fd, result_path, &ignored);
	if (dockerfile_parse(path, text, len, &d, &e) < 0) {
		print_message("refused: %s\n", e.msg);
		return false;
	}
	for (unsigned i = 0; i < d.count; i++) {
		dump(&d.list[i], &got);
		buf_add_text(&got, "\n");
	}
	if (strcmp(buf_text(&got), expected) == 0)
		return true;
	print_message("misread: %s\n%s--- expected\n%s", path, buf_text(&got), expected);
	return false;
}

typedef bool check_fn(int dir_fd, const char *name);

static void check_all(const char *folder, check_fn *check, unsigned min)
{
	cleanup_fd int dir_fd = open_data();
	unsigned count = 0, failed = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		failed += !check(dir_fd, entry->d_name);
	}
	(void)closedir(dir);
	print_message("%s: %u documents, %u failed\n", folder, count, failed);
	assert_int_equal(failed, 0);
	assert_true(count >= min);
}

static void documents_of_buildkit_are_read_as_it_reads_them(void **state)
{
	(void)state;
	check_all("testfiles", is_as_expected, GOOD_MIN);
}

static bool is_refused(int dir_fd, const char *name)
{
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	cleanup_free char *path = mem_format("testfiles-negative/%s/Dockerfile", name);
	cleanup_free char *text = NULL;
	unsigned line, column;
	struct err e = { 0 };
	size_t len = 0;

	text = load(dir_fd, path, &len);
	if (dockerfile_parse("Dockerfile", text, len, &d, &e) == 0) {
		print_message("taken: %s\n", path);
		return false;
	}
	return e.code == ERR_INVALID && sscanf(e.msg, "Dockerfile:%u:%u: ", &line, &column) == 2;
}

static void documents_that_buildkit_refuses_are_refused(void **state)
{
	(void)state;
	check_all("testfiles-negative", is_refused, BAD_MIN);
}

/* ---- variables and words ---- */

static const char *find(void *context, const char *name)
{
	char *const *list = context;
	size_t len = strlen(name);

	for (; list && *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = '\0';
	return text;
}

static void variables_of_buildkit_are_expanded_as_it_expands_them(void **state)
{
	static char *values[] = { (char *)"PWD=/home", (char *)"SHELL=bash",
				  (char *)"KOREAN=\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4",
				  (char *)"NULL=", NULL };
	const struct expand x = { .escape = '\\', .get = find, .context = values };
	cleanup_fd int dir_fd = open_data();
	unsigned count = 0, failed = 0;
	cleanup_free char *text = NULL;
	char *save = NULL;
	size_t len = 0;

	(void)state;
	text = load(dir_fd, "envVarTest", &len);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *source = strchr(line, '|'),
		     *expected = source ? strchr(source + 1, '|') : NULL;
		cleanup_free char *got = NULL;
		struct err e;

		if (line[0] == '#' || !expected || line[0] == 'W')
			continue;
		*expected++ = '\0';
		source = trim(source + 1);
		expected = trim(expected);
		count++;
		if (expand_word(&x, source, &got, &e) < 0)
			got = mem_dup("error");
		if (strcmp(got, expected) == 0)
			continue;
		failed++;
		print_message("%s: got '%s', expected '%s'\n", source, got, expected);
	}
	print_message("envVarTest: %u lines, %u failed\n", count, failed);
	assert_int_equal(failed, 0);
	assert_true(count >= LINES_MIN);
}

static char *join(char *const *words)
{
	struct buf out;

	buf_init(&out, 1u << 20);
	for (size_t i = 0; words[i]; i++)
		buf_addf(&out, "%s%s", i ? "," : "", words[i]);
	return out.bytes ? out.bytes : mem_dup("");
}

static void words_of_buildkit_are_split_as_it_splits_them(void **state)
{
	CLEANUP(keyrows_list_free) char **values = NULL;
	cleanup_fd int dir_fd = open_data();
	unsigned count = 0, failed = 0;
	cleanup_free char *text = NULL;
	char *save = NULL;
	size_t len = 0;

	(void)state;
	text = load(dir_fd, "wordsTest", &len);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		CLEANUP(keyrows_list_free) char **words = NULL;
		struct expand x = { .escape = '\\', .get = find };
		cleanup_free char *got = NULL;
		char *expected = strchr(line, '|');
		struct err e;

		if (strncmp(line, "ENV ", 4) == 0)
			(void)keyrows_list_add(&values, line + 4);
		if (line[0] == '#' || !expected || strncmp(line, "ENV ", 4) == 0)
			continue;
		*expected++ = '\0';
		expected += strspn(expected, " ");
		x.context = values;
		count++;
		got = expand_words(&x, trim(line), &words, &e) < 0 ? mem_dup("error") : join(words);
		if (strcmp(got, expected) == 0)
			continue;
		failed++;
		print_message("%s: got '%s', expected '%s'\n", line, got, expected);
	}
	print_message("wordsTest: %u lines, %u failed\n", count, failed);
	assert_int_equal(failed, 0);
	assert_true(count >= 20);
}

static void modifiers_take_away_and_replace(void **state)
{
	static char *values[] = { (char *)"F=foobarfoobar", (char *)"V=v1.2.3-rc1",
				  (char *)"P=/usr/local/bin/tool.tar.gz", (char *)"E=", NULL };
	static const struct {
		const char *text, *expected; /* NULL: refused */
	} rows[] = {
		{ "${V#v}", "1.2.3-rc1" },
		{ "${V%-*}", "v1.2.3" },
		{ "${V%%.*}", "v1" },
		{ "${P##*/}", "tool.tar.gz" },
		{ "${P#*/}", "usr/local/bin/tool.tar.gz" },
		{ "${P%.*}", "/usr/local/bin/tool.tar" },
		{ "${F/bar/x}", "fooxfoobar" },
		{ "${F//bar/x}", "fooxfoox" },
		{ "${F//o?/-}", "f-barf-bar" },
		{ "${P//\\//_}", "_usr_local_bin_tool.tar.gz" },
		{ "${F#nothing}", "foobarfoobar" },
		{ "${E-unset}", "" },
		{ "${E:-unset}", "unset" },
		{ "${N-unset}", "unset" },
		{ "${N+set}", "" },
		{ "${E+set}", "set" },
		{ "${N:?no N}", NULL },
		{ "${V:#v}", NULL },
		{ "${V#a\\b}", NULL },
		{ "${F/bar}", NULL },
	};
	const struct expand x = { .escape = '\\', .get = find, .context = values };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		cleanup_free char *got = NULL;
		struct err e = { 0 };
		int r = expand_word(&x, rows[i].text, &got, &e);

		if (!rows[i].expected) {
			assert_int_equal(r, -1);
			assert_int_equal(e.code, ERR_INVALID);
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(got, rows[i].expected);
	}
}

static void values_that_double_end_at_the_maximum(void **state)
{
	cleanup_free char *big = mem_alloc(EXPAND_RESULT_MAX_BYTES / 2 + 64);
	char *values[] = { big, NULL };
	const struct expand x = { .escape = '\\', .get = find, .context = values };
	cleanup_free char *got = NULL;
	struct err e = { 0 };

	(void)state;
	memset(big, 'x', EXPAND_RESULT_MAX_BYTES / 2 + 62);
	memcpy(big, "A=", 2);
	assert_int_equal(expand_word(&x, "$A", &got, &e), 0);
	assert_int_equal(expand_word(&x, "$A$A", &got, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

/* ---- here-documents and errors ---- */

static int parse(const char *text, struct dockerfile *d, struct err *e)
{
	return dockerfile_parse("Dockerfile", text, strlen(text), d, e);
}

static void here_documents_belong_to_their_instruction(void **state)
{
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	const struct dockerfile_instruction *i;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse("FROM a\n"
			       "RUN <<EOF cat && 3<<-'two' sh\n"
			       "one $x \\\n"
			       "# no comment\n"
			       "EOF\n"
			       "\ttabs\n"
			       "\ttwo\n"
			       "COPY <<a <<\"b\" /dir/\nA\na\nB\nb\n"
			       "RUN [\"<<EOF\"]\n"
			       "RUN echo $((1<<4)) \"<<no\"\n"
			       "ONBUILD RUN <<x\nin x\nx\n",
			       &d, &e),
			 0);
	assert_int_equal(d.count, 6);
	i = &d.list[1];
	assert_int_equal(i->heredoc_count, 2);
	assert_string_equal(i->heredocs[0].content, "one $x \\\n# no comment\n");
	assert_true(i->heredocs[0].expands && !i->heredocs[0].is_chomp);
	assert_string_equal(i->heredocs[1].name, "two");
	assert_string_equal(i->heredocs[1].content, "\ttabs\n");
	assert_true(!i->heredocs[1].expands && i->heredocs[1].is_chomp);
	assert_int_equal(i->heredocs[1].fd, 3);
	assert_int_equal(i->line, 2);
	assert_int_equal(i->end_line, 7);
	assert_int_equal(d.list[2].heredoc_count, 2);
	assert_string_equal(d.list[2].heredocs[1].content, "B\n");
	assert_int_equal(d.list[3].heredoc_count, 0);
	assert_int_equal(d.list[4].heredoc_count, 0);
	assert_int_equal(d.list[5].sub->heredoc_count, 1);
}

static void errors_name_the_place_and_what_would_be_right(void **state)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{ "FROM a\nRUNN x\n",
		  "Dockerfile:2:6: RUNN: there is no instruction 'runn', did you mean 'run'?" },
		{ "FROM a\n  ENV A\n", "Dockerfile:2:7: ENV: 'A' has no value (write A=VALUE)" },
		{ "FROM a\nENV A=1 B\n", "Dockerfile:2:5: ENV: 'B' has no '=' (write NAME=VALUE)" },
		{ "FROM a\nCMD [\"a\", 1]\n",
		  "Dockerfile:2:5: CMD: a number stands in a list in JSON, where only texts in "
		  "double quotes may" },
		{ "FROM a\nRUN <<EOF\nx\n",
		  "Dockerfile:2:5: RUN: the here-document 'EOF' has no end: a line with 'EOF' "
		  "alone" },
		{ "# escape=x\nFROM a\n",
		  "Dockerfile:1:1: escape=x: the escape character is \\ or `" },
		{ "# escape=`\n# escape=`\nFROM a\n",
		  "Dockerfile:2:1: the directive 'escape' may stand there once" },
		{ "FROM a\nONBUILD ONBUILD RUN x\n",
		  "Dockerfile:2:9: ONBUILD: an ONBUILD may not be within an ONBUILD" },
		{ "\n# nothing\n",
		  "Dockerfile:2:1: there are no instructions (it begins with FROM)" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
		struct err e = { 0 };

		assert_int_equal(parse(rows[i].text, &d, &e), -1);
		assert_string_equal(e.msg, rows[i].expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_of_buildkit_are_read_as_it_reads_them),
		cmocka_unit_test(documents_that_buildkit_refuses_are_refused),
		cmocka_unit_test(variables_of_buildkit_are_expanded_as_it_expands_them),
		cmocka_unit_test(words_of_buildkit_are_split_as_it_splits_them),
		cmocka_unit_test(modifiers_take_away_and_replace),
		cmocka_unit_test(values_that_double_end_at_the_maximum),
		cmocka_unit_test(here_documents_belong_to_their_instruction),
		cmocka_unit_test(errors_name_the_place_and_what_would_be_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
