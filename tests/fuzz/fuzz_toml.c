/*
 * fuzz_toml - a TOML document.
 *
 * An error names a position within the document and has no control characters. An accepted document
 * is within the maxima, and each value can be read as its type. The bytes of a value have the same
 * meaning when they stand alone.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/toml.h"

#include <stdbool.h>
#include <string.h>

#define NAME "fuzz.toml"
#define ALONE_DEPTH_MAX 2 /* deeper ones are part of these */

/* The current document. */
struct document {
	const char *bytes;
	size_t len;
	unsigned values;
};

static unsigned count_lines(const uint8_t *data, size_t size)
{
	unsigned count = 1;

	for (size_t i = 0; i < size; i++)
		count += data[i] == '\n';
	return count;
}

static void check_refusal(const struct err *e, unsigned lines, size_t size)
{
	unsigned line = 0, column = 0;
	char space = 0;

	FUZZ_CHECK(e->code == ERR_INVALID || e->code == ERR_LIMIT);
	FUZZ_CHECK(sscanf(e->msg, NAME ":%u:%u:%c", &line, &column, &space) == 3);
	FUZZ_CHECK(line >= 1 && line <= lines);
	FUZZ_CHECK(column >= 1 && column <= size + 1);
	FUZZ_CHECK(space == ' ');
	for (const char *p = e->msg; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void check_time(const struct toml_value *v)
{
	const struct toml_time *t = toml_time(v);
	bool has_date = toml_type(v) != TOML_LOCAL_TIME;

	FUZZ_CHECK(t->year >= 0 && t->year <= 9999);
	FUZZ_CHECK(t->month >= has_date && t->month <= 12);
	FUZZ_CHECK(t->day >= has_date && t->day <= 31);
	FUZZ_CHECK(t->hour >= 0 && t->hour <= 23);
	FUZZ_CHECK(t->minute >= 0 && t->minute <= 59);
	FUZZ_CHECK(t->second >= 0 && t->second <= 60);
	FUZZ_CHECK(t->nanosecond >= 0 && t->nanosecond <= 999999999);
	FUZZ_CHECK(abs(t->offset_minutes) < 24 * 60);
	FUZZ_CHECK(t->text && strlen(t->text) <= TOML_WORD_MAX_BYTES);
}

static void check_span(const struct document *d, struct toml_span span)
{
	FUZZ_CHECK(span.start < span.end && span.end <= d->len);
}

/* For a table or an array with headers or dotted keys, its bytes are only a name. */
static bool is_name(const struct document *d, const struct toml_value *v)
{
	char first = d->bytes[toml_span(v).start];

	return (toml_type(v) == TOML_TABLE && first != '{') ||
	       (toml_type(v) == TOML_ARRAY && first != '[');
}

static void check_alone(const struct document *d, const struct toml_value *v)
{
	CLEANUP(toml_freep) struct toml *t = NULL;
	struct toml_span span = toml_span(v);
	cleanup_buf struct buf text = { 0 };
	struct err e = { 0 };

	check_span(d, span);
	if (is_name(d, v))
		return;
	buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
	buf_add_text(&text, "v=");
	buf_add(&text, d->bytes + span.start, span.end - span.start);
	FUZZ_CHECK(toml_parse(text.bytes, text.len, NAME, &t, &e) == 0);
	FUZZ_CHECK(toml_is_equal(toml_get(toml_root(t), "v"), v));
}

static void check_value(struct document *d, const struct toml_value *v, unsigned depth);

static void check_table(struct document *d, const struct toml_value *v, unsigned depth)
{
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(v, &count);

	for (size_t i = 0; i < count; i++) {
		const struct toml_entry *entry = &entries[i];

		FUZZ_CHECK(entry->key_len <= TOML_KEY_MAX_BYTES);
		FUZZ_CHECK(entry->key[entry->key_len] == '\0');
		FUZZ_CHECK(entry->where.line >= 1 && entry->where.column >= 1);
		check_span(d, entry->span);
		if (strlen(entry->key) == entry->key_len)
			FUZZ_CHECK(toml_get(v, entry->key) == entry->value);
		check_value(d, entry->value, depth + 1);
	}
}

static void check_string(const struct toml_value *v)
{
	size_t len = 0;
	const char *bytes = toml_string(v, &len);
	const char *text = NULL;
	struct err e = { 0 };

	FUZZ_CHECK(bytes[len] == '\0' && len <= TOML_DOCUMENT_MAX_BYTES);
	FUZZ_CHECK((toml_expect_text(v, &text, &e) == 0) == (strlen(bytes) == len));
}

static void check_value(struct document *d, const struct toml_value *v, unsigned depth)
{
	struct err e = { 0 };

	FUZZ_CHECK(depth <= TOML_DEPTH_MAX && ++d->values <= TOML_VALUES_MAX + 1);
	FUZZ_CHECK(toml_where(v).line >= 1 && toml_where(v).column >= 1);
	FUZZ_CHECK(toml_expect(v, toml_type(v), &e) == 0);
	if (depth > 0 && depth <= ALONE_DEPTH_MAX)
		check_alone(d, v);
	switch (toml_type(v)) {
	case TOML_TABLE:
		check_table(d, v, depth);
		break;
	case TOML_ARRAY:
		for (size_t i = 0; i < toml_count(v); i++)
			check_value(d, toml_item(v, i), depth + 1);
		break;
	case TOML_STRING:
		check_string(v);
		break;
	case TOML_INTEGER:
		(void)toml_integer(v);
		break;
	case TOML_FLOAT:
		(void)toml_float(v);
		break;
	case TOML_BOOL:
		(void)toml_bool(v);
		break;
	default:
		check_time(v);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document d = { .bytes = (const char *)data, .len = size };
	CLEANUP(toml_freep) struct toml *t = NULL;
	struct err e = { 0 };

	if (toml_parse(d.bytes, size, NAME, &t, &e) == 0)
		check_value(&d, toml_root(t), 0);
	else
		check_refusal(&e, count_lines(data, size), size);
	return 0;
}
