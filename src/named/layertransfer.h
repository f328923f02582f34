#pragma once
/* layertransfer - packs, unpacks and digests layers of checkpoints with the image helper. */
#include "base/err.h"

#include <stdint.h>

#define LAYERTRANSFER_DIGEST_MAX_BYTES 80u

struct layertransfer_result {
	char digest[LAYERTRANSFER_DIGEST_MAX_BYTES]; /* of the archive's bytes, compressed or not */
	char content[LAYERTRANSFER_DIGEST_MAX_BYTES]; /* of the archive uncompressed */
	char same[LAYERTRANSFER_DIGEST_MAX_BYTES];    /* layertransfer_pack_step() */
	uint64_t entries, file_bytes, bytes;
};

/* Packs the tree at dir_fd as a compressed archive to out_fd. */
ERR_CHECKED int layertransfer_pack(int dir_fd, int out_fd, struct layertransfer_result *ret,
				   struct err *e);
/*
 * The same, not compressed. `same` is the digest of the files without their times; later times than
 * `latest_s` become that second, in the tree too (0: stay). Call it as the owner of the files.
 */
ERR_CHECKED int layertransfer_pack_step(int dir_fd, int out_fd, int64_t latest_s,
					struct layertransfer_result *ret, struct err *e);
/* Unpacks the archive from in_fd, which is hostile, into an empty directory. */
ERR_CHECKED int layertransfer_unpack(int in_fd, int dir_fd, struct layertransfer_result *ret,
				     struct err *e);
/* Fills in only `content`, the digest of the tree, to detect changes. */
ERR_CHECKED int layertransfer_digest(int dir_fd, struct layertransfer_result *ret, struct err *e);
