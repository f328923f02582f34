#pragma once
/* changes - what a named sandbox has changed against its image, running or not. */
#include "base/err.h"
#include "tree/treediff.h"

struct ak;

/* Free with treediff_done(). A running sandbox may change on while it is looked at. */
ERR_CHECKED int changes_find(const struct ak *ak, const char *sandbox, struct treediff *ret,
			     struct err *e);
