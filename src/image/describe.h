#pragma once
/* describe - writes JSON about images, for `image inspect`. */
#include "base/buf.h"
#include "base/err.h"
#include "image/reference.h"
#include "image/store.h"

#define DESCRIBE_MAX_BYTES (64u << 20)

/* A JSON array with one object per image. */
ERR_CHECKED int describe_images(const struct store *s, const struct reference *refs, unsigned count,
				struct buf *out, struct err *e);
