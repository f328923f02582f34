#pragma once
/*
 * download - writes the bytes of one blob to a file and hashes them.
 *
 * The file may have the beginning from an earlier attempt: download_catch_up() hashes it, in
 * pieces, and new bytes are appended. The beginning is only verified by the digest of the whole:
 * is_pieced means that it may be the cause of a wrong digest, so starting over can help. Uses
 * pwrite() with large pieces, not the file's offset.
 */
#include "base/err.h"
#include "image/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct download {
	int fd; /* borrowed */
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
	uint64_t old_bytes;  /* size of the file at the start */
	uint64_t done_bytes; /* hashed; the last piece_len of them are not written yet */
	bool is_pieced;
	struct digest *sum;
	char *piece;
	size_t piece_len;
};

ERR_CHECKED int download_init(struct download *d, int fd, const char *digest, uint64_t size_bytes,
			      struct err *e);
void download_done(struct download *d); /* may run twice, and on a zeroed struct; flush first */

/* Hashes up to max_bytes more of the existing file. *ret_is_through: all of it is hashed. */
ERR_CHECKED int download_catch_up(struct download *d, size_t max_bytes, bool *ret_is_through,
				  struct err *e);

/* ERR_REMOTE if there are more than size_bytes. */
ERR_CHECKED int download_add(struct download *d, const void *bytes, size_t len, struct err *e);
ERR_CHECKED int download_flush(struct download *d, struct err *e);

/* Discards everything: the file is empty again. */
ERR_CHECKED int download_restart(struct download *d, struct err *e);

/* Call once, at done_bytes == size_bytes: is it the requested blob? */
ERR_CHECKED int download_check(struct download *d, bool *ret_is_right, struct err *e);
