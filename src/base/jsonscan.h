#pragma once
/*
 * jsonscan - checks a JSON document.
 *
 * Checks the whole document against the grammar of RFC 8259, with the exceptions that the flags
 * allow: comments as in JSONC, a comma after the last member or item. A byte order mark is
 * accepted. A document that passed can be walked (jsonwalk.h).
 *
 * Hostile input: the document. Its size and depth are limited, and quotes of it in messages are
 * short and without control characters.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define JSONSCAN_DOCUMENT_MAX_BYTES (16u << 20) /* some agents keep their history in one */
#define JSONSCAN_DEPTH_MAX 128u                 /* nesting of objects and arrays */
#define JSONSCAN_NAME_MAX_BYTES                                                                    \
	200u /* of a document's name in messages; longer ones lose their beginning */
#define JSONSCAN_QUOTE_MAX_BYTES 40u /* of a document's text in messages */

enum jsonscan_flags {
	JSONSCAN_COMMENTS = 1 << 0,
	JSONSCAN_TRAILING_COMMAS = 1 << 1,
	JSONSCAN_MAY_BE_EMPTY = 1 << 2, /* accept a document of only blanks and comments */
};

struct jsonscan_text {
	const char *name; /* for messages */
	const char *bytes;
	size_t len;
};

/* ERR_INVALID with "NAME:LINE:COLUMN: words", or ERR_LIMIT at one of the maxima. */
ERR_CHECKED int jsonscan_check(const struct jsonscan_text *t, unsigned flags, struct err *e);

/*
 * Sets an error about a position in the text. Lines and columns start at 1, and columns count
 * characters. Returns -1.
 */
int jsonscan_err(const struct jsonscan_text *t, const char *at, enum err_code code, struct err *e,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
