#pragma once
/*
 * layerdigest - is a layer of the store still what it was? Its sha256 as a tar, in a file beside
 * it.
 *
 * Computed by the image helper. A layer that was made by a version without one, or by a fork that
 * is in a hurry, has none and is taken as it is.
 */
#include "base/err.h"

#define LAYERDIGEST_SUFFIX ".digest"
#define LAYERDIGEST_MAX_BYTES 80u

ERR_CHECKED int layerdigest_write(int store_fd, const char *id, struct err *e);
/* ERR_CORRUPT when it differs. */
ERR_CHECKED int layerdigest_check(int store_fd, const char *id, struct err *e);
