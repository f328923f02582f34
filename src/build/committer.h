#pragma once
/*
 * committer - an image of what a named sandbox has written, on the image that it was made from.
 *
 * The sandbox's files are copied as for a checkpoint: a running one is frozen while the last
 * changes are copied.
 */
#include "base/err.h"
#include "image/record.h"
#include "image/reference.h"

struct ak;

struct committer_result {
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	char id[RECORD_ID_BYTES + 1];
	uint64_t size_bytes; /* of the layer */
};

/* `name` is the image's. Not for a sandbox of this machine's own programs. */
ERR_CHECKED int committer_run(const struct ak *ak, const char *sandbox, const char *name,
			      struct committer_result *ret, struct err *e);
