#pragma once
/*
 * layerdigest - detects changes of a stored layer by its sha256 as a tar, in a file beside it.
 *
 * The image helper computes it. Layers of forks have no digest, to save time, and neither have
 * layers of older versions; these pass the check.
 */
#include "base/err.h"

#define LAYERDIGEST_SUFFIX ".digest"
#define LAYERDIGEST_MAX_BYTES 80u

/* Does nothing if there is one: layers do not change. */
ERR_CHECKED int layerdigest_write(int store_fd, const char *id, struct err *e);
/* ERR_CORRUPT if the digest differs. */
ERR_CHECKED int layerdigest_check(int store_fd, const char *id, struct err *e);
