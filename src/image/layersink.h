#pragma once
/*
 * layersink - the way back of layerstream: the bytes of a layer's archive, hashed, compressed,
 * hashed once more and written.
 */
#include "image/reference.h"

#include <stddef.h>
#include <stdint.h>

enum layersink_form {
	LAYERSINK_PLAIN,
	LAYERSINK_GZIP,
	LAYERSINK_ZSTD,
};

struct layersink;

struct layersink_result {
	char diff_id[REFERENCE_DIGEST_MAX_BYTES]; /* of the archive */
	char digest[REFERENCE_DIGEST_MAX_BYTES];  /* of what was written */
	uint64_t archive_bytes;
	uint64_t bytes; /* written */
};

/* fd is borrowed; -1: the digests are all that is wanted. */
struct layersink *layersink_new(int fd, enum layersink_form form);
void layersink_free(struct layersink *s);
void layersink_freep(struct layersink **s);

/* Both return -errno. The first is a layerpack_sink's. */
int layersink_write(void *sink, const void *bytes, size_t len);
int layersink_finish(struct layersink *s, struct layersink_result *ret);
