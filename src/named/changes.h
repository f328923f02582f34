#pragma once
/* changes - lists the differences between a named sandbox, running or not, and its image. */
#include "base/err.h"
#include "tree/treediff.h"

struct ak;

/* Free with treediff_done(). A running sandbox is not frozen and may change its files meanwhile. */
ERR_CHECKED int changes_find(const struct ak *ak, const char *sandbox, struct treediff *ret,
			     struct err *e);
