#pragma once
/*
 * checkpointfile - exports and imports a checkpoint as one file, for another machine.
 *
 * The file has the layers with their digests and the name and digest of the image below them, but
 * no policy: the user who creates a sandbox from an imported checkpoint provides one.
 */
#include "base/err.h"
#include "named/checkpoint.h"

struct ak;

ERR_CHECKED int checkpointfile_export(const struct ak *ak, const char *id, const char *file,
				      struct err *e);
ERR_CHECKED int checkpointfile_import(const struct ak *ak, const char *file, struct checkpoint *ret,
				      struct err *e);
