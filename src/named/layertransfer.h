#pragma once
/* layertransfer - layers of checkpoints as archives, and their digests, through the image helper.
 */
#include "base/err.h"

#include <stdint.h>

#define LAYERTRANSFER_DIGEST_MAX_BYTES 80u

struct layertransfer_result {
	char digest[LAYERTRANSFER_DIGEST_MAX_BYTES];  /* of the archive's bytes as they are */
	char content[LAYERTRANSFER_DIGEST_MAX_BYTES]; /* of the archive uncompressed */
	uint64_t entries, file_bytes;
};

/* The tree at dir_fd as a compressed archive to out_fd. */
ERR_CHECKED int layertransfer_pack(int dir_fd, int out_fd, struct layertransfer_result *ret,
				   struct err *e);
/* Back: in_fd's archive, which is hostile, into an empty directory. */
ERR_CHECKED int layertransfer_unpack(int in_fd, int dir_fd, struct layertransfer_result *ret,
				     struct err *e);
/* Only `content`: of the tree as it is, for comparing it with itself. */
ERR_CHECKED int layertransfer_digest(int dir_fd, struct layertransfer_result *ret, struct err *e);
