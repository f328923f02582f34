#pragma once
/*
 * treecopy - a whole tree copied: an overlay's upper directory becomes a layer.
 *
 * The tree is a sandbox's work and may be anything that one can make: of any depth, with any names
 * and modes. No link is followed and nothing outside of the two directories is touched. Both must
 * be left alone meanwhile; if the source is not, the copy may fail or be of no particular moment.
 *
 * Runs as root of the machine, or as root of a user namespace in which all owners are mapped, or
 * as the owner of everything in it.
 */
#include "base/err.h"

#include <stdint.h>

#define TREECOPY_ENTRIES_MAX (16u << 20)
#define TREECOPY_BYTES_MAX (1ull << 40) /* of content, without holes */
#define TREECOPY_LINKED_MAX (1u << 20)  /* files with several names; those are remembered */
#define TREECOPY_DEPTH_MAX (1u << 20)   /* 64 bytes each are remembered */

enum treecopy_flags {
	/*
	 * to_fd holds a layer already and from_fd is laid over it, as overlay shows the two, except
	 * that what may hide yet lower layers stays: a whiteout removes what is there and remains,
	 * unless it lies in an opaque directory, where nothing is left to hide; an opaque directory
	 * empties the one that is there and remains opaque; a directory joins one that is there,
	 * with its own attributes; anything else replaces what is there.
	 */
	TREECOPY_MERGE = 1 << 0,
};

/* The maxima above as numbers. */
struct treecopy_limits {
	uint64_t entries;
	uint64_t bytes;
	uint64_t linked;
	uint64_t depth;
};
struct treecopy_limits treecopy_default_limits(void);

struct treecopy_result {
	uint64_t entry_count; /* without the top */
	uint64_t bytes;       /* of content, without holes; shared blocks count */
};

/*
 * All beneath from_fd into to_fd, a directory that is empty unless merged: content (blocks shared
 * where the file system can, holes kept), owners, modes, times, attributes (tree/treefile.h),
 * hard links within the tree, symbolic links, fifos, whiteouts, and the top's own attributes. A
 * socket becomes one that nobody listens on: if it were left out, a lower layer's file of that name
 * would come to light. Other devices are refused.
 *
 * `limits` may be NULL. After a failure what was written stays; the caller throws to_fd away.
 * ERR_LIMIT: one of the maxima. ERR_EXISTS: to_fd was not empty.
 */
ERR_CHECKED int treecopy_run(int from_fd, int to_fd, unsigned flags,
			     const struct treecopy_limits *limits, struct treecopy_result *ret,
			     struct err *e);
