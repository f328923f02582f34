#pragma once
/*
 * masks - finds the names in a workspace that match --mask's patterns.
 *
 * A pattern is a path of shell patterns; "**" matches any number of directories, also zero. A
 * directory that cannot be read is an error, because its names could not be masked.
 */
#include "base/err.h"

struct policy;

#define MASKS_FOUND_MAX 512u        /* matching files */
#define MASKS_LOOKED_AT_MAX 200000u /* names checked for patterns with ** */
#define MASKS_DEPTH_MAX 32u

/* Called with each matching name, relative to the directory. */
typedef int masks_fn(void *context, const char *name, struct err *e);

/* Searches dir_fd for the policy's patterns; `path` is its path, for messages. */
ERR_CHECKED int masks_find(int dir_fd, const char *path, const struct policy *p, masks_fn *fn,
			   void *context, struct err *e);
