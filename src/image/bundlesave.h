#pragma once
/* bundlesave - saves images of the store to files. */
#include "base/err.h"
#include "image/bundle.h"
#include "image/reference.h"
#include "image/store.h"

/*
 * Writes one archive that is both an OCI layout and readable by "docker load"; into a directory,
 * only the layout. `path` "-" is stdout; one that ends in '/' or exists as such is a directory.
 */
ERR_CHECKED int bundlesave_write(const struct store *s, const struct reference *refs,
				 unsigned count, const char *path, struct err *e);
