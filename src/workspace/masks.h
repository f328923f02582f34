#pragma once
/*
 * masks - the names in a workspace that --mask's patterns match.
 *
 * A pattern is a path whose parts are shell patterns; "**" is any number of directories, also none.
 * What cannot be looked at cannot be masked, and is an error.
 */
#include "base/err.h"

struct policy;

#define MASKS_FOUND_MAX 512u        /* files that patterns match */
#define MASKS_LOOKED_AT_MAX 200000u /* names, for patterns with ** in them */
#define MASKS_DEPTH_MAX 32u

/* Called with each name that matches, relative to the directory. */
typedef int masks_fn(void *context, const char *name, struct err *e);

/* Of the policy's patterns, in dir_fd, whose path is for words. */
ERR_CHECKED int masks_find(int dir_fd, const char *path, const struct policy *p, masks_fn *fn,
			   void *context, struct err *e);
