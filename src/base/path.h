#pragma once
/* path - operations on path names as text, without access to a file system. */
#include <stdbool.h>

/*
 * The absolute form of `path`, relative to `base` (absolute) if it is relative: "." and empty
 * components removed, ".." applied to the text. NULL if ".." leaves "/". The caller frees it.
 */
char *path_absolute(const char *base, const char *path);

/* Is `path` equal to `root` or below it? Both are absolute and normal. */
bool path_is_within(const char *path, const char *root);

const char *path_base_name(const char *path); /* after the last '/' */
