#pragma once
/*
 * ignore - which files of a context a build does not see: .dockerignore.
 *
 * One pattern a line; '#' begins a comment, '!' takes files back in, the last pattern that matches
 * counts. A pattern that matches a directory matches all below it.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define IGNORE_FILE_MAX_BYTES (1u << 20)
#define IGNORE_PATTERNS_MAX 4096u

struct ignore;

/* `name` is the file's, for messages. */
ERR_CHECKED int ignore_parse(const char *name, const char *text, size_t len, struct ignore **ret,
			     struct err *e);
void ignore_free(struct ignore *i); /* NULL is fine */

/* `path` is relative to the context, without a slash in front; NULL ignores nothing. */
bool ignore_has(const struct ignore *i, const char *path);

/* Could something below this ignored directory be taken back in? */
bool ignore_has_exceptions(const struct ignore *i);
