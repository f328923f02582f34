#pragma once
/*
 * keyrows - converts a struct to "key=value" texts, each ended by a NUL, and back: for files and
 * for messages between our own processes.
 *
 * A table maps keys to members; a function handles what does not fit in a table. The first text
 * names the kind and the version: "agentkernel sandbox 1". Parsing is strict: an unknown key, an
 * invalid number or a missing end is an error. A value may contain any byte but NUL, so no escaping
 * is needed.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYROWS_LIST_MAX 8192u /* values of one list */

enum keyrows_kind {
	KEYROWS_TEXT,   /* char *, owned; NULL is not written */
	KEYROWS_ARRAY,  /* char [size]; "" is not written */
	KEYROWS_NUMBER, /* uint64_t; 0 is not written */
	KEYROWS_ID,     /* uint32_t; 0 is not written */
	KEYROWS_FLAG,   /* bool; false is not written */
	KEYROWS_LIST,   /* char **, ended by NULL, owned */
};

struct keyrows_row {
	const char *key;
	enum keyrows_kind kind;
	size_t offset;
	size_t size; /* KEYROWS_ARRAY */
};

#define KEYROWS_ROW(type, key_, kind_, member)                                                     \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(type, member),                  \
		.size = sizeof(((type *)0)->member)                                                \
	}

/* Returns 0: parsed; 1: unknown key; -1: failed. */
typedef int keyrows_read_fn(void *object, const char *key, const char *value, struct err *e);
typedef void keyrows_write_fn(const void *object, struct buf *out);

struct keyrows {
	const char *what; /* "sandbox", for the first text and for errors */
	unsigned version;
	const struct keyrows_row *rows;
	size_t count;
	keyrows_read_fn *read_other; /* may be NULL, as the next */
	keyrows_write_fn *write_other;
};

/* Parses into a zeroed object. ERR_CORRUPT, or ERR_UNSUPPORTED for a later version. */
ERR_CHECKED int keyrows_parse(const struct keyrows *k, const char *bytes, size_t len, void *object,
			      struct err *e);
void keyrows_format(const struct keyrows *k, const void *object, struct buf *out);
void keyrows_done(const struct keyrows *k, void *object); /* frees texts and lists; may run twice */

/* Appends one "key=value". */
void keyrows_put(struct buf *out, const char *key, const char *value);
void keyrows_put_number(struct buf *out, const char *key, uint64_t value);

/* Accepts only a decimal number. */
bool keyrows_read_number(const char *text, uint64_t max, uint64_t *ret);

/* Appends a copy to a NULL-terminated list; false if it is full. */
bool keyrows_list_add(char ***list, const char *text);
void keyrows_list_free(char ***list);
size_t keyrows_list_count(char *const *list);
bool keyrows_list_has(char *const *list, const char *text);
