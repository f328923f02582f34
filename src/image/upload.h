#pragma once
/*
 * upload - sends blobs and a manifest to a registry with the OCI distribution protocol.
 *
 * A blob that the registry has is not sent; one that it has in another of its repositories is
 * mounted from there. Others go in pieces of UPLOAD_PIECE_BYTES: when one breaks off, the registry
 * is asked how far it got, and the rest follows. A blob is in the registry when its digest was
 * confirmed; an image, when its manifest is, which is sent last.
 */
#include "base/err.h"
#include "image/registry.h"

#include <stdbool.h>
#include <stdint.h>

#define UPLOAD_PIECE_BYTES (32u << 20)
#define UPLOAD_ADDRESS_MAX_BYTES 8192u /* that a registry names for an upload */

enum upload_outcome { UPLOAD_SENT, UPLOAD_MOUNTED, UPLOAD_THERE };

struct upload_blob {
	const char *digest;
	int fd;
	uint64_t size_bytes;
	const char *from; /* path of a repository there that may have it; NULL: none is known */
	void (*on_progress)(void *context, uint64_t done_bytes);
	void *context;
};

ERR_CHECKED int upload_blob(struct registry *r, const struct upload_blob *b,
			    enum upload_outcome *ret, struct err *e);

/* `name` is a tag, or the digest of the manifest. The file holds it. */
ERR_CHECKED int upload_manifest(struct registry *r, const char *name, const char *type, int fd,
				uint64_t size_bytes, struct err *e);
