#pragma once
/*
 * expand - replaces variables in a Dockerfile's words, and splits text into words, as BuildKit
 * does.
 *
 * Quotes and escapes are removed; '...' keeps everything, "..." keeps all but '$' and escapes of
 * '"', '$' and the escape character. Of ${NAME...}: :- :+ :? with and without the colon, # ## % %%
 * with patterns of '*' and '?', and / // to replace.
 *
 * Hostile input: the text and the values. Results and nesting are limited.
 */
#include "base/err.h"

#include <stddef.h>

#define EXPAND_RESULT_MAX_BYTES (1u << 20)
#define EXPAND_DEPTH_MAX 32u /* nested ${...} */

enum expand_flags {
	EXPAND_RAW = 1 << 0,        /* quotes and escapes stay */
	EXPAND_KEEP_UNSET = 1 << 1, /* so do variables without a value */
	EXPAND_AS_IS = 1 << 2,      /* quotes are ordinary characters, as in a here-document */
};

struct expand {
	char escape;    /* '\\' or '`' */
	unsigned flags; /* enum expand_flags */
	/* The value of a variable, NULL if it has none. */
	const char *(*get)(void *context, const char *name);
	void *context;
};

/* The caller frees the text. ERR_INVALID or ERR_LIMIT without the place. */
ERR_CHECKED int expand_word(const struct expand *x, const char *text, char **ret, struct err *e);

/* The words of the text, split at blanks that are not quoted, also within values. NULL-ended. */
ERR_CHECKED int expand_words(const struct expand *x, const char *text, char ***ret, struct err *e);
