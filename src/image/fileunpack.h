#pragma once
/*
 * fileunpack - unpacks a tar archive into a directory that is in use: the receiving end of a
 * transfer into or out of a sandbox.
 *
 * Hostile input: the archive, and possibly the directory's content. No entry passes through a
 * symbolic link, existing or from the archive; none leaves the directory. An existing file or link
 * is removed and replaced, never written into; an existing directory keeps its mode and owner; a
 * directory never replaces something else. Hard links lead to files of the same archive only. There
 * are no devices and no whiteouts: ".wh.x" is an ordinary file name. Extended attributes are
 * ignored.
 *
 * The first entry that violates a rule ends unpacking with the entry's name and the rule; entries
 * unpacked before stay.
 */
#include "base/err.h"
#include "image/layer.h"

enum fileunpack_flags {
	/* Use the archive's owners and set-id bits; otherwise this process owns everything. */
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
