#pragma once
/*
 * bundle - loads images from files: "docker save", skopeo's dir:, OCI layouts as archive or
 * directory, plain root trees.
 */
#include "base/err.h"
#include "image/progress.h"
#include "image/reference.h"
#include "image/store.h"

#define BUNDLE_IMAGES_MAX 256u

struct bundle_names {
	struct reference list[BUNDLE_IMAGES_MAX];
	unsigned count;
};

/*
 * Loads all images of the file at `path` ("-": stdin) under the names they have there. `as`, if not
 * NULL, is the name for the only one.
 */
ERR_CHECKED int bundle_load(const struct store *s, const char *path, const struct reference *as,
			    struct progress *p, struct bundle_names *ret, struct err *e);

/* Imports a root directory, or a tar of one ("-": stdin), as an image with one layer. */
ERR_CHECKED int bundle_import(const struct store *s, const char *path, const struct reference *as,
			      struct progress *p, struct err *e);
