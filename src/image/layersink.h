#pragma once
/*
 * layersink - the reverse of layerstream: hashes the bytes of a layer's archive, compresses them,
 * hashes the result and writes it.
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
	char digest[REFERENCE_DIGEST_MAX_BYTES];  /* of the compressed output */
	uint64_t archive_bytes;
	uint64_t bytes; /* written */
};

/* Borrows fd; -1: only compute the digests. */
struct layersink *layersink_new(int fd, enum layersink_form form);
void layersink_free(struct layersink *s);
void layersink_freep(struct layersink **s);

/* Both return -errno. The first is for a layerpack_sink. */
int layersink_write(void *sink, const void *bytes, size_t len);
int layersink_finish(struct layersink *s, struct layersink_result *ret);
