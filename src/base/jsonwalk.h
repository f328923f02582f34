#pragma once
/*
 * jsonwalk - through a JSON document that was checked (jsonscan.h).
 *
 * No tree is built and nothing can fail: a place in the document is a pointer to its bytes, and
 * `end` is always the end of the whole document. Of several members with one key the last one
 * counts, as for the readers that we know.
 */
#include <stdbool.h>

/* Behind a byte order mark. */
const char *jsonwalk_start(const char *bytes, const char *end);

/* Behind blanks and comments. */
const char *jsonwalk_skip_gap(const char *at, const char *end);
const char *jsonwalk_skip_value(const char *at, const char *end);

struct jsonwalk_member {
	const char *key; /* its opening quote; NULL for an item of an array */
	const char *key_end;
	const char *value;
	const char *value_end;
	const char *comma; /* the one that follows; NULL: none does */
	const char *next;  /* where the next member may be */
};

/* The member of an object, the item of an array, that comes at `at`. False: there is none. */
bool jsonwalk_member(const char *at, const char *end, struct jsonwalk_member *ret);
bool jsonwalk_item(const char *at, const char *end, struct jsonwalk_member *ret);

/* The member of an object, at its '{', that counts. */
bool jsonwalk_find(const char *object, const char *end, const char *key,
		   struct jsonwalk_member *ret);
bool jsonwalk_key_is(const struct jsonwalk_member *m, const char *key);

/*
 * Do two values mean the same, whatever their blanks, the order of their keys and how their strings
 * and numbers are written? Takes the product of their lengths: one of them should be short.
 */
bool jsonwalk_is_same(const char *a, const char *a_end, const char *b, const char *b_end);

const char *jsonwalk_type_name(const char *value); /* "an array" */

/* ---- for the check, where nothing is known yet ---- */

bool jsonwalk_is_comment(const char *at, const char *end);

/* Behind the comment at `at`, before the end of its line; NULL when it does not end. */
const char *jsonwalk_comment_end(const char *at, const char *end);

/* The number of four digits, as in \uXXXX; -1: they are none. */
int jsonwalk_read_hex(const char *at, const char *end);
