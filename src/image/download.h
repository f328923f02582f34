#pragma once
/*
 * download - the bytes of one blob on their way into a file, hashed as they pass.
 *
 * The file may hold the beginning from an earlier attempt: download_catch_up() hashes it, in
 * stretches, and what arrives is added after it. Nothing is known about the beginning until the
 * digest of the whole is: is_pieced says that a wrong digest may be the beginning's fault, so that
 * starting over can help. Written with pwrite() in large pieces; the file's own offset is not used.
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
	uint64_t old_bytes;  /* that the file held at the start */
	uint64_t done_bytes; /* hashed; the last piece_len of them are not written yet */
	bool is_pieced;
	struct digest *sum;
	char *piece;
	size_t piece_len;
};

ERR_CHECKED int download_init(struct download *d, int fd, const char *digest, uint64_t size_bytes,
			      struct err *e);
void download_done(struct download *d); /* may run twice, and on a zeroed struct; flush first */

/* Hashes up to max_bytes more of what the file holds. *ret_is_through: all of it is. */
ERR_CHECKED int download_catch_up(struct download *d, size_t max_bytes, bool *ret_is_through,
				  struct err *e);

/* ERR_REMOTE: more than size_bytes. */
ERR_CHECKED int download_add(struct download *d, const void *bytes, size_t len, struct err *e);
ERR_CHECKED int download_flush(struct download *d, struct err *e);

/* Forgets everything: the file is empty again. */
ERR_CHECKED int download_restart(struct download *d, struct err *e);

/* At done_bytes == size_bytes, once: is it the blob that was asked for? */
ERR_CHECKED int download_check(struct download *d, bool *ret_is_right, struct err *e);
