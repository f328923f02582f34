#pragma once
/*
 * jsonfields - reads untrusted JSON field by field.
 *
 * A thin layer over jansson: every getter names the field in its error message. Errors are
 * ERR_INVALID (violates the format) or ERR_LIMIT; the caller prepends which document it is. Text in
 * errors is made printable. Borrowed values are valid as long as the document.
 */
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum jsonfields_flags {
	JSONFIELDS_OPTIONAL = 1 << 0, /* absent and null are allowed and give NULL (text: "") */
};

/* The document must be a single object, without duplicate keys and without NUL in text. */
ERR_CHECKED int jsonfields_parse(const char *text, size_t len, size_t max_bytes, json_t **ret,
				 struct err *e);
void jsonfields_freep(json_t **root);

/* The results are borrowed. */
ERR_CHECKED int jsonfields_get_object(const json_t *object, const char *key, unsigned flags,
				      const json_t **ret, struct err *e);
ERR_CHECKED int jsonfields_get_list(const json_t *object, const char *key, size_t count_max,
				    unsigned flags, const json_t **ret, struct err *e);
ERR_CHECKED int jsonfields_get_text(const json_t *object, const char *key, size_t max_bytes,
				    unsigned flags, const char **ret, struct err *e);
ERR_CHECKED int jsonfields_get_number(const json_t *object, const char *key, uint64_t max,
				      uint64_t *ret, struct err *e);
