#pragma once
/*
 * bundlesave - images out of the store into files.
 */
#include "base/err.h"
#include "image/bundle.h"
#include "image/reference.h"
#include "image/store.h"

/*
 * One archive that is an OCI layout and what "docker load" reads at once; into a directory, only
 * the layout. `path` "-" is stdout, one that ends in '/' or is a directory is a directory.
 */
ERR_CHECKED int bundlesave_write(const struct store *s, const struct reference *refs,
				 unsigned count, const char *path, struct err *e);
