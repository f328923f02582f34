#pragma once
/*
 * jsonwalk - walks a checked JSON document (jsonscan.h).
 *
 * No tree is built and nothing can fail: a position is a pointer into the document, and `end` is
 * always the end of the whole document. Of several members with one key the last is effective, as
 * in all JSON readers we know.
 */
#include <stdbool.h>

/* The position after a byte order mark. */
const char *jsonwalk_start(const char *bytes, const char *end);

/* The position after blanks and comments. */
const char *jsonwalk_skip_gap(const char *at, const char *end);
const char *jsonwalk_skip_value(const char *at, const char *end);

struct jsonwalk_member {
	const char *key; /* its opening quote; NULL for an item of an array */
	const char *key_end;
	const char *value;
	const char *value_end;
	const char *comma; /* the one after the value; NULL: none */
	const char *next;  /* where the next member may start */
};

/* The member of an object, or the item of an array, at `at`. False: there is none. */
bool jsonwalk_member(const char *at, const char *end, struct jsonwalk_member *ret);
bool jsonwalk_item(const char *at, const char *end, struct jsonwalk_member *ret);

/* The effective member of an object; `object` points to its '{'. */
bool jsonwalk_find(const char *object, const char *end, const char *key,
		   struct jsonwalk_member *ret);
bool jsonwalk_key_is(const struct jsonwalk_member *m, const char *key);

/*
 * Do two values mean the same, whatever their blanks, the order of keys and the notation of strings
 * and numbers? Takes time proportional to the product of their lengths: one should be short.
 */
bool jsonwalk_is_same(const char *a, const char *a_end, const char *b, const char *b_end);

const char *jsonwalk_type_name(const char *value); /* "an array" */

/* ---- for the check, on unchecked text ---- */

bool jsonwalk_is_comment(const char *at, const char *end);

/* The position after the comment at `at`, before the end of its line; NULL if it does not end. */
const char *jsonwalk_comment_end(const char *at, const char *end);

/* The value of four hexadecimal digits, as in \uXXXX; -1: they are not. */
int jsonwalk_read_hex(const char *at, const char *end);
