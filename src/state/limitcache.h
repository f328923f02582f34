#pragma once
/*
 * limitcache - caches directories of host/limitfiles, which many sandboxes bind-mount.
 *
 * state/runtimecache keeps one directory for each set of limits, named after them. Without a cache
 * each sandbox creates its own, which takes longer.
 */
#include "host/limitfiles.h"

struct ak;

#define LIMITCACHE_MAX 64u /* then it begins anew */

/* The directory for these figures, made if need be; the caller's to free. NULL: there is none. */
char *limitcache_get(const struct ak *ak, const struct limitfiles_figures *f);
