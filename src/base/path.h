#pragma once
/*
 * path - path names as text. Nothing here looks at a file system.
 */
#include <stdbool.h>

/*
 * The absolute form of `path`, seen from `base` (absolute) when it is relative: "." and empty
 * parts removed, ".." applied to the text. NULL when ".." climbs above "/". The caller frees.
 */
char *path_absolute(const char *base, const char *path);

/* `path` is `root` itself or lies below it. Both are absolute and normal. */
bool path_is_within(const char *path, const char *root);

const char *path_base_name(const char *path); /* after the last '/' */
