#pragma once
/*
 * layerstream - reads the bytes of a layer's archive: decompresses, counts and hashes them.
 *
 * The format (gzip, zstd, plain) is detected in the first bytes. Several gzip members or zstd
 * frames in a row are one stream; other bytes after them are an error, as are a wrong checksum, an
 * early end, and more output than the limits allow.
 */
#include "base/err.h"
#include "image/layer.h"

struct layerstream;

/* Borrows both. */
struct layerstream *layerstream_new(int fd, const struct layer_limits *limits);
void layerstream_free(struct layerstream *s);
void layerstream_freep(struct layerstream **s);

/* Returns the next bytes, valid until the next call; *ret_len is 0 at the end. After a failure
 * every call fails, and layerstream_get_error() has the reason. */
ERR_CHECKED int layerstream_next(struct layerstream *s, const void **ret, size_t *ret_len);

/*
 * After the end, once: returns zeros up to a full tar block, for a reader that requires them. They
 * do not count for the archive's digest or size. Returns their number, 0 if none are missing.
 */
size_t layerstream_pad(struct layerstream *s, const void **ret);
bool layerstream_is_padded(const struct layerstream *s);

const struct err *layerstream_get_error(const struct layerstream *s); /* NULL: no error */
uint64_t layerstream_get_size(const struct layerstream *s);           /* of the output */

/* The position after the last byte that is not zero. */
uint64_t layerstream_get_content_end(const struct layerstream *s);

/* Call only after the end. */
void layerstream_finish(struct layerstream *s, char ret_diff_id[REFERENCE_DIGEST_MAX_BYTES]);

/* Also computes the digest of the input. Call the first before anything is read, the second only
 * after the end. */
void layerstream_hash_input(struct layerstream *s);
void layerstream_finish_input(struct layerstream *s, char ret_digest[REFERENCE_DIGEST_MAX_BYTES]);
