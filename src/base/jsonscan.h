#pragma once
/*
 * jsonscan - checking a JSON document.
 *
 * The whole document, by the grammar of RFC 8259 with no other leniency than the flags give:
 * comments as in JSONC, a comma after the last member or item, a byte order mark. A document that
 * passed can be walked through (jsonwalk.h).
 *
 * It may be hostile: it has a maximum, so has its depth, and what of it appears in a message is
 * short and without control characters.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define JSONSCAN_DOCUMENT_MAX_BYTES (16u << 20) /* some agents keep their history in one */
#define JSONSCAN_DEPTH_MAX 128u                 /* of objects and arrays in each other */
#define JSONSCAN_NAME_MAX_BYTES                                                                    \
	200u /* of a document's name in messages: longer ones lose their front */
#define JSONSCAN_QUOTE_MAX_BYTES 40u /* of a document's text in messages */

enum jsonscan_flags {
	JSONSCAN_COMMENTS = 1 << 0,
	JSONSCAN_TRAILING_COMMAS = 1 << 1,
	JSONSCAN_MAY_BE_EMPTY = 1 << 2, /* blanks and comments alone will do */
};

struct jsonscan_text {
	const char *name; /* for messages */
	const char *bytes;
	size_t len;
};

/* ERR_INVALID with "NAME:LINE:COLUMN: words", or ERR_LIMIT at one of the maxima. */
ERR_CHECKED int jsonscan_check(const struct jsonscan_text *t, unsigned flags, struct err *e);

/*
 * A complaint about a place in the text. Lines and columns begin at 1, and columns count
 * characters. Returns -1.
 */
int jsonscan_err(const struct jsonscan_text *t, const char *at, enum err_code code, struct err *e,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
