#pragma once
/*
 * jsonfields - JSON from outside, read field by field.
 *
 * A thin layer over jansson: every getter names the field in its refusal, so a document that is
 * wrong says where. Errors are ERR_INVALID (not what the format says) or ERR_LIMIT; the caller
 * knows whose document it is and puts that in front. Text in errors is made printable. What is
 * borrowed lives as long as the document.
 */
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum jsonfields_flags {
	JSONFIELDS_OPTIONAL = 1 << 0, /* absent and null are fine, and give NULL (text: "") */
};

/* The document must be one object, without a key twice, without NUL in text. */
ERR_CHECKED int jsonfields_parse(const char *text, size_t len, size_t max_bytes, json_t **ret,
				 struct err *e);
void jsonfields_freep(json_t **root);

/* Borrowed. */
ERR_CHECKED int jsonfields_get_object(const json_t *object, const char *key, unsigned flags,
				      const json_t **ret, struct err *e);
ERR_CHECKED int jsonfields_get_list(const json_t *object, const char *key, size_t count_max,
				    unsigned flags, const json_t **ret, struct err *e);
ERR_CHECKED int jsonfields_get_text(const json_t *object, const char *key, size_t max_bytes,
				    unsigned flags, const char **ret, struct err *e);
ERR_CHECKED int jsonfields_get_number(const json_t *object, const char *key, uint64_t max,
				      uint64_t *ret, struct err *e);
