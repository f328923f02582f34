#pragma once
/*
 * limitcache - directories of sandbox/limitfiles that were made once and are bound by many runs.
 *
 * state/runtimecache has one for each set of limits, named after them. Where it has none, each
 * sandbox makes its own, which takes longer.
 */
#include "sandbox/limitfiles.h"

struct ak;

#define LIMITCACHE_MAX 64u /* then it begins anew */

/* The directory for these figures, made if need be; the caller's to free. NULL: there is none. */
char *limitcache_get(const struct ak *ak, const struct limitfiles_figures *f);
