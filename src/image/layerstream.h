#pragma once
/*
 * layerstream - the bytes of a layer's archive: decompressed, counted and hashed on their way.
 *
 * What it is (gzip, zstd, plain) is seen in the first bytes. Several gzip members or zstd frames
 * one after the other are one stream; what follows them and is neither ends it with an error, as
 * do a wrong checksum, an early end, and more output than the limits allow.
 */
#include "base/err.h"
#include "image/layer.h"

struct layerstream;

/* Both are borrowed. */
struct layerstream *layerstream_new(int fd, const struct layer_limits *limits);
void layerstream_free(struct layerstream *s);
void layerstream_freep(struct layerstream **s);

/* The next bytes, valid until the next call; *ret_len is 0 at the end. Once it fails it fails for
 * ever, and layerstream_get_error() has the words. */
ERR_CHECKED int layerstream_next(struct layerstream *s, const void **ret, size_t *ret_len);

/*
 * After the end, once: zeros up to a whole block of a tar, for a reader that insists on them. They
 * are not part of the archive, its digest or its size. Returns how many; 0: none are missing.
 */
size_t layerstream_pad(struct layerstream *s, const void **ret);
bool layerstream_is_padded(const struct layerstream *s);

const struct err *layerstream_get_error(const struct layerstream *s); /* NULL: none so far */
uint64_t layerstream_get_size(const struct layerstream *s);           /* of what came out */

/* Where the last byte that is not zero ends. */
uint64_t layerstream_get_content_end(const struct layerstream *s);

/* Only after the end. */
void layerstream_finish(struct layerstream *s, char ret_diff_id[REFERENCE_DIGEST_MAX_BYTES]);

/* The digest of the bytes as they are read, too. The first before anything is read, the second only
 * after the end. */
void layerstream_hash_input(struct layerstream *s);
void layerstream_finish_input(struct layerstream *s, char ret_digest[REFERENCE_DIGEST_MAX_BYTES]);
