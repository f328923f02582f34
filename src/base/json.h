#pragma once
/*
 * json - writes JSON, without a library and without a tree.
 *
 * The launcher only prints results; it never parses JSON (the helpers that do use jansson). Values
 * are appended to a buf in order; this module adds commas and tracks nesting. Text may contain any
 * bytes: invalid UTF-8 becomes U+FFFD, and control characters, also U+0080 to U+009F, are escaped.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 16

struct json {
	struct buf *out;
	unsigned depth;
	bool has_item[JSON_DEPTH_MAX]; /* the open object or array at this depth is not empty */
};

void json_init(struct json *j, struct buf *out);

/* `key` is NULL inside an array and at the top level. */
void json_open_object(struct json *j, const char *key);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *key);
void json_close_array(struct json *j);

void json_add_text(struct json *j, const char *key, const char *text); /* NULL gives null */
void json_add_bytes(struct json *j, const char *key, const char *bytes, size_t len);
/* The bytes in base64, with padding. */
void json_add_base64(struct json *j, const char *key, const char *bytes, size_t len);
void json_add_number(struct json *j, const char *key, int64_t value);
void json_add_bool(struct json *j, const char *key, bool value);
void json_add_null(struct json *j, const char *key);
