/* toml - access to a parsed TOML 1.0 document; see toml.h. */
#include "base/toml.h"

#include "base/cleanup.h"
#include "base/tomlparse.h"
#include "base/tomlscan.h"
#include "base/tomltree.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[TOML_TYPE_COUNT] = {
	[TOML_TABLE] = "a table",
	[TOML_ARRAY] = "an array",
	[TOML_STRING] = "a string",
	[TOML_INTEGER] = "an integer",
	[TOML_FLOAT] = "a float",
	[TOML_BOOL] = "true or false",
	[TOML_OFFSET_DATE_TIME] = "a date and time with an offset",
	[TOML_LOCAL_DATE_TIME] = "a date and time",
	[TOML_LOCAL_DATE] = "a date",
	[TOML_LOCAL_TIME] = "a time",
};

int toml_parse(const char *bytes, size_t len, const char *name, struct toml **ret, struct err *e)
{
	CLEANUP(toml_freep) struct toml *t = tomltree_new(name);
	struct tomlscan s;

	if (len > TOML_DOCUMENT_MAX_BYTES)
		return tomlscan_say(t->name, (struct toml_where){ 1, 1 }, ERR_LIMIT,
				    "the document is larger than 1 MiB", e);
	t->root->span = (struct toml_span){ 0, len };
	tomlscan_init(&s, bytes, len, t->name);
	if (tomlscan_check(&s, e) < 0 || tomlparse_document(&s, t, e) < 0)
		return -1;
	*ret = take_ptr(t);
	return 0;
}

void toml_free(struct toml *t)
{
	tomltree_free(t);
}

void toml_freep(struct toml **t)
{
	toml_free(*t);
	*t = NULL;
}

/* ---- access ---- */

const struct toml_value *toml_root(const struct toml *t)
{
	return t->root;
}

enum toml_type toml_type(const struct toml_value *v)
{
	return v->type;
}

const char *toml_type_name(enum toml_type type)
{
	return type_names[type];
}

struct toml_where toml_where(const struct toml_value *v)
{
	return v->where;
}

struct toml_span toml_span(const struct toml_value *v)
{
	return v->span;
}

const struct toml_value *toml_get(const struct toml_value *table, const char *key)
{
	assert(table->type == TOML_TABLE);
	return tomltree_find(table, key, strlen(key));
}

const struct toml_entry *toml_entries(const struct toml_value *table, size_t *ret_count)
{
	assert(table->type == TOML_TABLE);
	*ret_count = table->count;
	return table->entries;
}

size_t toml_count(const struct toml_value *array)
{
	assert(array->type == TOML_ARRAY);
	return array->count;
}

const struct toml_value *toml_item(const struct toml_value *array, size_t index)
{
	assert(array->type == TOML_ARRAY && index < array->count);
	return array->items[index];
}

const char *toml_string(const struct toml_value *v, size_t *ret_len)
{
	assert(v->type == TOML_STRING);
	*ret_len = v->count;
	return v->text;
}

int64_t toml_integer(const struct toml_value *v)
{
	assert(v->type == TOML_INTEGER);
	return v->integer;
}

double toml_float(const struct toml_value *v)
{
	if (v->type == TOML_INTEGER)
		return (double)v->integer;
	assert(v->type == TOML_FLOAT);
	return v->real;
}

bool toml_bool(const struct toml_value *v)
{
	assert(v->type == TOML_BOOL);
	return v->is_true;
}

const struct toml_time *toml_time(const struct toml_value *v)
{
	assert(v->type >= TOML_OFFSET_DATE_TIME && v->type <= TOML_LOCAL_TIME);
	return &v->time;
}

/* ---- comparing ---- */

static bool is_equal_table(const struct toml_value *a, const struct toml_value *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct toml_entry *entry = &a->entries[i];
		const struct toml_value *other = tomltree_find(b, entry->key, entry->key_len);

		if (!other || !toml_is_equal(entry->value, other))
			return false;
	}
	return true;
}

static bool is_equal_array(const struct toml_value *a, const struct toml_value *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!toml_is_equal(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool is_equal_float(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b && signbit(a) == signbit(b);
}

static bool is_equal_time(const struct toml_time *a, const struct toml_time *b)
{
	return a->year == b->year && a->month == b->month && a->day == b->day &&
	       a->hour == b->hour && a->minute == b->minute && a->second == b->second &&
	       a->nanosecond == b->nanosecond && a->offset_minutes == b->offset_minutes;
}

bool toml_is_equal(const struct toml_value *a, const struct toml_value *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case TOML_TABLE:
		return is_equal_table(a, b);
	case TOML_ARRAY:
		return is_equal_array(a, b);
	case TOML_STRING:
		return a->count == b->count && memcmp(a->text, b->text, a->count) == 0;
	case TOML_INTEGER:
		return a->integer == b->integer;
	case TOML_FLOAT:
		return is_equal_float(a->real, b->real);
	case TOML_BOOL:
		return a->is_true == b->is_true;
	default:
		return is_equal_time(&a->time, &b->time);
	}
}

/* ---- error messages ---- */

static int complain(const struct toml_value *v, struct toml_where where, struct err *e,
		    const char *fmt, va_list args)
{
	char words[ERR_MESSAGE_MAX_BYTES];

	(void)vsnprintf(words, sizeof(words), fmt, args);
	return tomlscan_say(v->document->name, where, ERR_INVALID, words, e);
}

int toml_err(const struct toml_value *v, struct err *e, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)complain(v, v->where, e, fmt, args);
	va_end(args);
	return -1;
}

int toml_err_key(const struct toml_entry *entry, struct err *e, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)complain(entry->value, entry->where, e, fmt, args);
	va_end(args);
	return -1;
}

int toml_expect(const struct toml_value *v, enum toml_type type, struct err *e)
{
	if (v->type == type)
		return 0;
	return toml_err(v, e, "%s is expected, not %s", type_names[type], type_names[v->type]);
}

int toml_expect_text(const struct toml_value *v, const char **ret, struct err *e)
{
	if (toml_expect(v, TOML_STRING, e) < 0)
		return -1;
	if (strlen(v->text) != v->count)
		return toml_err(v, e, "the string holds a NUL");
	*ret = v->text;
	return 0;
}
