/* test_gitconfig - git's settings, parsed like git does. */
#include "unit.h"

#include "base/buf.h"
#include "base/gitconfig.h"
#include "policy/gitsettings.h"

#include <stdio.h>
#include <string.h>

static int collect(void *context, const struct gitconfig_entry *entry)
{
	buf_addf(context, "%s|%s|%s=%s\n", entry->section,
		 entry->subsection ? entry->subsection : "-", entry->key,
		 entry->value ? entry->value : "(true)");
	return 0;
}

/* Checks the settings of a text, and whether all of it was parsed. */
static void reads(const char *text, int result, const char *expected)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	assert_int_equal(gitconfig_parse(text, strlen(text), collect, &out), result);
	assert_string_equal(buf_text(&out), expected);
}

static void sections_keys_and_values(void **state)
{
	(void)state;
	reads("[core]\n\tbare = false\n", 0, "core|-|bare=false\n");
	reads("[CORE]BARE=x\n[a \"B c\"] k\n", 0, "core|-|bare=x\na|B c|k=(true)\n");
	reads("[a.B.c]\nk=v", 0, "a|b.c|k=v\n");
	reads("\xef\xbb\xbf[a]\r\nk = v\r\n", 0, "a|-|k=v\n");
	reads("[a \"q\\\"\\\\x\"]\nk=\n", 0, "a|q\"\\x|k=\n");
}

static void values_with_quotes_escapes_and_comments(void **state)
{
	(void)state;
	reads("[a]\nk = a b  # c\n", 0, "a|-|k=a b\n");
	reads("[a]\nk = \"a # b\" c ; d\n", 0, "a|-|k=a # b c\n");
	reads("[a]\nk = a\\\n b\n", 0, "a|-|k=a b\n");
	reads("[a]\nk = \" x\\n\\t\\\"\\\\\"\n", 0, "a|-|k= x\n\t\"\\\n");
	reads("# [a]\n; k\n[a] # x\nk=v", 0, "a|-|k=v\n");
}

static void what_git_complains_about_is_told_and_the_rest_is_read(void **state)
{
	(void)state;
	reads("k=v\n[a]\nx=1\n", -1, "a|-|x=1\n");
	reads("[a]\nx=1\nk v\ny=2\n", -1, "a|-|x=1\na|-|y=2\n");
	reads("[a]\nx=1\nk = \\q\ny=2\n", -1, "a|-|x=1\na|-|y=2\n");
	reads("[a]\nx=1\nk = \"open\n[b]\ny=2\n", -1, "a|-|x=1\nb|-|y=2\n");
}

static void plain_texts_are_those_with_one_meaning(void **state)
{
	static const char *const plain[] = { "", "[core]\n\tbare = false\n",
					     "[remote \"o\"]\n\turl = https://example.org/x\n" };
	static const char *const others[] = {
		"[core]\n\tx = \"y\"\n", "[core]\n\tx = y # z\n",    "[core]\n\tx = y\\\n z\n",
		"[core] x = y\n",        "[core]\n    x = y\n",      "# c\n",
		"[a.b]\n\tx = y\n",      "[a \"b\\\"\"]\n\tx = y\n", "[core]\n\tx\n",
		"[core]\r\n\tx = y\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(plain); i++)
		assert_true(gitconfig_is_plain(plain[i], strlen(plain[i])));
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_false(gitconfig_is_plain(others[i], strlen(others[i])));
	assert_false(gitconfig_is_plain("[a]\n\tx = y\0z\n", 14));
}

static int write_again(void *context, const struct gitconfig_entry *entry)
{
	gitconfig_put(context, entry);
	return 0;
}

static void what_is_written_is_read_as_the_same(void **state)
{
	static const char text[] =
		"[a \"q\\\"\\\\\"]\nk = \" x\\n#;\\\"\"\nl\n[b]\nm=1\nn=\n[a]\no=\t2 3\n";
	cleanup_buf struct buf out, first, second;
	struct gitconfig_writer w = { .out = &out };

	(void)state;
	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_init(&first, BUF_TEXT_MAX_BYTES);
	buf_init(&second, BUF_TEXT_MAX_BYTES);
	assert_int_equal(gitconfig_parse(text, strlen(text), write_again, &w), 0);
	gitconfig_writer_done(&w);
	assert_int_equal(gitconfig_parse(text, strlen(text), collect, &first), 0);
	assert_int_equal(gitconfig_parse(out.bytes, out.len, collect, &second), 0);
	assert_string_equal(buf_text(&first), buf_text(&second));
}

static enum gitsettings_kind judge(const char *section, const char *subsection, const char *key,
				   const char *value)
{
	const struct gitconfig_entry entry = { section, subsection, key, value };

	return gitsettings_judge(&entry);
}

static void only_what_is_known_to_be_harmless_is(void **state)
{
	(void)state;
	assert_int_equal(judge("core", NULL, "bare", "true"), GITSETTINGS_HARMLESS);
	assert_int_equal(judge("core", "x", "bare", "true"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("core", NULL, "bar", "true"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("core", NULL, "fsmonitor", "x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("core", NULL, "hookspath", "x"), GITSETTINGS_HOOKS);
	assert_int_equal(judge("include", NULL, "path", "x"), GITSETTINGS_INCLUDE);
	assert_int_equal(judge("includeif", "gitdir:x", "path", "x"), GITSETTINGS_INCLUDE);
	assert_int_equal(judge("remote", "o", "url", "https://example.org/x"),
			 GITSETTINGS_HARMLESS);
	assert_int_equal(judge("remote", "o", "url", "ext::sh -c x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("remote", "o", "url", "--upload-pack=x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("remote", "o", "uploadpack", "x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("submodule", "o", "update", "!x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("diff", NULL, "external", "x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("something", NULL, "new", "x"), GITSETTINGS_COMMAND);
	assert_int_equal(judge("color", "branch", "current", "red"), GITSETTINGS_HARMLESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_keys_and_values),
		cmocka_unit_test(values_with_quotes_escapes_and_comments),
		cmocka_unit_test(what_git_complains_about_is_told_and_the_rest_is_read),
		cmocka_unit_test(plain_texts_are_those_with_one_meaning),
		cmocka_unit_test(what_is_written_is_read_as_the_same),
		cmocka_unit_test(only_what_is_known_to_be_harmless_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
