/*
 * fuzz_tomledit - sets and removes the table m.a in a TOML document.
 *
 * A document is refused only if it is no TOML, if something on the path is no table, or at a limit;
 * never because the edit failed. Doing the same twice changes nothing, removing only omits bytes,
 * and no comment on its own line is lost.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/toml.h"
#include "base/tomledit.h"

#include <stdbool.h>
#include <string.h>

#define NAME "fuzz.toml"
#define BODY "x = 1\ny.z = [\n2] # c\n'v w' = '''\n3'''\n"

static const char *const path[] = { "m", "a", NULL };

static struct tomledit_table table_of(const char *text, size_t len)
{
	return (struct tomledit_table){ NAME, text, len, path };
}

/* Finds the table, and whether the path to it is free. */
static const struct toml_value *find(const struct toml *t, bool *ret_is_free)
{
	const struct toml_value *v = toml_root(t);

	*ret_is_free = true;
	for (size_t i = 0; path[i]; i++) {
		v = toml_get(v, path[i]);
		if (!v)
			return NULL;
		if (toml_type(v) != TOML_TABLE) {
			*ret_is_free = false;
			return NULL;
		}
	}
	return v;
}

/* ---- comments ---- */

static bool is_in_value(const struct toml_value *v, const char *text, size_t at)
{
	struct toml_span span = toml_span(v);
	const struct toml_entry *entries;
	size_t count = 0;

	if (toml_type(v) == TOML_ARRAY && text[span.start] != '[') {
		for (size_t i = 0; i < toml_count(v); i++)
			if (is_in_value(toml_item(v, i), text, at))
				return true;
		return false;
	}
	if (toml_type(v) != TOML_TABLE || text[span.start] == '{')
		return at >= span.start && at < span.end;
	entries = toml_entries(v, &count);
	for (size_t i = 0; i < count; i++)
		if (is_in_value(entries[i].value, text, at))
			return true;
	return false;
}

/* The root's span is the whole text, which may begin with anything. */
static bool is_in_a_value(const struct toml *t, const char *text, size_t at)
{
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(toml_root(t), &count);

	for (size_t i = 0; i < count; i++)
		if (is_in_value(entries[i].value, text, at))
			return true;
	return false;
}

static void check_comments(const struct toml *t, const char *text, const struct buf *out)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t blanks = strspn(line, " \t");
		cleanup_free char *comment = mem_dup_bytes(line, strcspn(line, "\n"));

		if (comment[blanks] != '#' || is_in_a_value(t, text, (size_t)(line - text)))
			continue;
		FUZZ_CHECK(strstr(buf_text(out), comment));
	}
}

/* ---- changes ---- */

static void check_left_out(const char *text, size_t len, const struct buf *out)
{
	size_t used = 0;

	for (size_t i = 0; i < len && used < out->len; i++)
		used += text[i] == out->bytes[used];
	FUZZ_CHECK(used == out->len);
}

/* Repeats the edit: nothing to do. */
static void check_again(const struct buf *out, bool is_set)
{
	struct tomledit_table table = table_of(buf_text(out), out->len);
	cleanup_buf struct buf again = { 0 };
	struct err e = { 0 };
	int r;

	if (is_set)
		r = tomledit_set_table(&table, BODY, 0, &again, &e);
	else
		r = tomledit_remove_table(&table, &again, &e);
	FUZZ_CHECK(r == TOMLEDIT_UNCHANGED);
	FUZZ_CHECK(again.len == out->len);
	FUZZ_CHECK(memcmp(buf_text(&again), buf_text(out), out->len) == 0);
}

static void check_refusal(const struct err *e, bool is_free)
{
	FUZZ_CHECK(e->code == (is_free ? ERR_LIMIT : ERR_INVALID));
	FUZZ_CHECK(e->msg[0]);
}

static void check_set(const struct toml *t, const char *text, size_t len)
{
	struct tomledit_table table = table_of(text, len);
	cleanup_buf struct buf out = { 0 };
	struct err e = { 0 };
	bool is_free = true, is_there = find(t, &is_free);
	int r = tomledit_set_table(&table, BODY, TOMLEDIT_REPLACE, &out, &e);

	if (r < 0) {
		check_refusal(&e, is_free);
		return;
	}
	FUZZ_CHECK(is_there ? r != TOMLEDIT_ADDED : r == TOMLEDIT_ADDED);
	check_comments(t, text, &out);
	check_again(&out, true);
}

static void check_remove(const struct toml *t, const char *text, size_t len)
{
	struct tomledit_table table = table_of(text, len);
	cleanup_buf struct buf out = { 0 };
	struct err e = { 0 };
	bool is_free = true, is_there = find(t, &is_free);
	int r = tomledit_remove_table(&table, &out, &e);

	if (r < 0) {
		check_refusal(&e, is_free);
		FUZZ_CHECK(!is_free); /* removing reaches no limit */
		return;
	}
	FUZZ_CHECK(r == (is_there ? TOMLEDIT_REMOVED : TOMLEDIT_UNCHANGED));
	check_left_out(text, len, &out);
	check_comments(t, text, &out);
	check_again(&out, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = mem_dup_bytes((const char *)data, size);
	CLEANUP(toml_freep) struct toml *t = NULL;
	struct err e = { 0 };

	if (toml_parse(text, size, NAME, &t, &e) < 0)
		return 0;
	check_set(t, text, size);
	check_remove(t, text, size);
	return 0;
}
