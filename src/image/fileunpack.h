#pragma once
/*
 * fileunpack - a tar archive's files, put into a directory that is in use: the receiving end of a
 * transfer into or out of a sandbox.
 *
 * The archive is hostile, and so may be what lies in the directory. No entry goes through a
 * symbolic link, whether it was there or came with the archive; none goes above the directory. A
 * file or link that is there is removed and replaced, never written into; a directory that is there
 * stays as it is, with its mode and owner; a directory never replaces something else. Hard
 * links lead to files of the same archive only. There are no devices, and no whiteouts: a file
 * called ".wh.x" is a file of that name. Attributes are not taken over.
 *
 * The first entry that breaks a rule ends it with the entry's name and the rule; what was unpacked
 * until then stays.
 */
#include "base/err.h"
#include "image/layer.h"

enum fileunpack_flags {
	/* Owners and set-id bits are the archive's; else everything is this process's own. */
	FILEUNPACK_OWNERS = 1 << 0,
};

struct fileunpack_result {
	uint64_t entry_count;
	uint64_t file_bytes;
};

/* The maxima are those of layers (image/layer.h); `limits` may be NULL. */
ERR_CHECKED int fileunpack_run(int archive_fd, int dir_fd, unsigned flags,
			       const struct layer_limits *limits, struct fileunpack_result *ret,
			       struct err *e);
