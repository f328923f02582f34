#pragma once
/*
 * toml - parses TOML 1.0 completely.
 *
 * toml_parse() turns a document into a read-only tree of values; pointers into it are valid until
 * toml_free(). Tables keep the order of their keys. Every value and every key has its position:
 * line and column, so that users of the tree can report errors as the parser does,
 * "NAME:LINE:COLUMN: words"; and its bytes, so that an editor can replace them. Lines and columns
 * begin at 1, and columns count characters, not bytes.
 *
 * Hostile input: the document. All of it is checked, everything has a maximum, and quotes of it in
 * messages are short and without control characters.
 *
 *	if (toml_parse(text, len, "agentkernel.toml", &t, e) < 0)
 *		return -1;
 *	v = toml_get(toml_root(t), "image");
 *	if (v && toml_expect_text(v, &image, e) < 0)
 *		return -1;
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOML_DOCUMENT_MAX_BYTES (1u << 20)
#define TOML_VALUES_MAX 65536u
#define TOML_DEPTH_MAX 64u /* nesting of tables and arrays */
#define TOML_KEY_MAX_BYTES 1024u
#define TOML_WORD_MAX_BYTES 256u /* of a number, a date or a time as written */
#define TOML_NAME_MAX_BYTES                                                                        \
	200u /* of a document's name in messages; longer ones lose their beginning */
#define TOML_QUOTE_MAX_BYTES 40u /* of a document's text in messages */

enum toml_type {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOL,
	TOML_OFFSET_DATE_TIME,
	TOML_LOCAL_DATE_TIME,
	TOML_LOCAL_DATE,
	TOML_LOCAL_TIME,

	TOML_TYPE_COUNT
};

struct toml;       /* a document */
struct toml_value; /* a value in it */

struct toml_where {
	unsigned line;
	unsigned column;
};

/* Bytes of the document, counted from 0, including a byte order mark. */
struct toml_span {
	size_t start;
	size_t end; /* after the last one */
};

/* Fields that a kind does not have are 0. */
struct toml_time {
	int year, month, day; /* 0..9999, 1..12, 1..31 */
	int hour, minute;
	int second;         /* 60 is a leap second */
	int nanosecond;     /* further digits are dropped */
	int offset_minutes; /* east of UTC */
	const char *text;   /* as written */
};

struct toml_entry {
	const char *key; /* may contain NULs; NUL-terminated */
	size_t key_len;
	struct toml_where where; /* of the key's first occurrence */
	struct toml_span span;   /* with its quotes */
	const struct toml_value *value;
};

/* `name` is only for messages. ERR_INVALID, or ERR_LIMIT at one of the maxima above. */
ERR_CHECKED int toml_parse(const char *bytes, size_t len, const char *name, struct toml **ret,
			   struct err *e);
void toml_free(struct toml *t); /* NULL is fine */
void toml_freep(struct toml **t);

const struct toml_value *toml_root(const struct toml *t); /* always a table */

enum toml_type toml_type(const struct toml_value *v);
const char *toml_type_name(enum toml_type type); /* "a table", "an integer" */

/*
 * The position of a value: its first character; for a table or an array of tables made by a header
 * or a dotted key, its name there. The root is at 1:1.
 */
struct toml_where toml_where(const struct toml_value *v);

/* The bytes of the value, with quotes and brackets, or of the name; for the root all bytes. */
struct toml_span toml_span(const struct toml_value *v);

/*
 * Do two values mean the same? The order of keys and the notation do not matter; -0.0 and 0.0
 * differ, nan equals nan, and times with different offsets differ.
 */
bool toml_is_equal(const struct toml_value *a, const struct toml_value *b);

/* ---- reading a value of a known type; another type is a bug of the caller ---- */

/* NULL if the table has no such key. */
const struct toml_value *toml_get(const struct toml_value *table, const char *key);

/* All entries, in document order. */
const struct toml_entry *toml_entries(const struct toml_value *table, size_t *ret_count);

size_t toml_count(const struct toml_value *array);
const struct toml_value *toml_item(const struct toml_value *array, size_t index);

/* May contain NULs; NUL-terminated. A line end in a multi-line string is always "\n". */
const char *toml_string(const struct toml_value *v, size_t *ret_len);

int64_t toml_integer(const struct toml_value *v);
double toml_float(const struct toml_value *v); /* also for an integer */
bool toml_bool(const struct toml_value *v);
const struct toml_time *toml_time(const struct toml_value *v); /* for all four kinds */

/* ---- errors about a value ---- */

/* ERR_INVALID with "NAME:LINE:COLUMN: words"; control characters become '?'. Both return -1. */
int toml_err(const struct toml_value *v, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int toml_err_key(const struct toml_entry *entry, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "NAME:LINE:COLUMN: a table is expected, not an integer" */
ERR_CHECKED int toml_expect(const struct toml_value *v, enum toml_type type, struct err *e);

/* A string without NULs, as a C string. */
ERR_CHECKED int toml_expect_text(const struct toml_value *v, const char **ret, struct err *e);
