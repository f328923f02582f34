#pragma once
/*
 * glob - patterns of file names, as in .dockerignore and in COPY.
 *
 * '*' and '?' stand for what is not a slash, [a-z] and [^a-z] for one character, a backslash takes
 * the next one as it is. With GLOB_DEEP "**" stands for any number of directories.
 *
 * Takes time proportional to the product of the lengths, whatever the pattern.
 */
#include "base/err.h"

#include <stdbool.h>

#define GLOB_MAX_BYTES 4096u

enum glob_flags { GLOB_DEEP = 1 << 0 };

struct glob;

ERR_CHECKED int glob_compile(const char *pattern, unsigned flags, struct glob **ret, struct err *e);
void glob_free(struct glob *g); /* NULL is fine */
bool glob_match(const struct glob *g, const char *path);

/* Does it have anything but ordinary characters? */
bool glob_is_pattern(const char *text);
