#pragma once
/*
 * treecopy - copies a directory tree that nobody changes; tree/treesync copies one that changes.
 *
 * A sandbox wrote the tree, so it may have any depth, names and modes. No link is followed and
 * nothing outside the two directories is touched. Nobody may change them meanwhile; if the source
 * changes, the copy may fail or mix old and new states.
 *
 * Runs as root of the machine, as root of a user namespace that maps all owners, or as the owner of
 * everything in the tree.
 */
#include "base/err.h"

#include <stdint.h>

#define TREECOPY_ENTRIES_MAX (16u << 20)
#define TREECOPY_BYTES_MAX (1ull << 40) /* of content, without holes */
#define TREECOPY_LINKED_MAX (1u << 20)  /* files with several names, which are kept in a table */
#define TREECOPY_DEPTH_MAX (1u << 20)   /* 64 bytes of memory per level */

enum treecopy_flags {
	/*
	 * to_fd already has a layer, and from_fd is merged over it as overlay would show both,
	 * except that everything that may hide still lower layers is kept: a whiteout removes the
	 * existing entry and remains, unless it is in an opaque directory, which hides everything
	 * anyway; an opaque directory empties the existing one and remains opaque; a directory
	 * merges with an existing one, with its own attributes; anything else replaces the existing
	 * entry.
	 */
	TREECOPY_MERGE = 1 << 0,
};

/* The maxima above. */
struct treecopy_limits {
	uint64_t entries;
	uint64_t bytes;
	uint64_t linked;
	uint64_t depth;
};
struct treecopy_limits treecopy_default_limits(void);

struct treecopy_result {
	uint64_t entry_count; /* without the top directory */
	uint64_t bytes;       /* of content, without holes; shared blocks count */
};

/*
 * Copies everything below from_fd into to_fd, a directory that is empty unless merged: content
 * (with shared blocks if possible, holes kept), owners, modes, times, attributes (tree/treefile.h),
 * hard links within the tree, symbolic links, fifos, whiteouts, and the top's own attributes. A
 * socket becomes one without a listener: if it were left out, a lower layer's file of that name
 * would become visible. Other devices are refused.
 *
 * `limits` may be NULL. After a failure the written files stay; the caller discards to_fd.
 * ERR_LIMIT: one of the maxima. ERR_EXISTS: to_fd was not empty.
 */
ERR_CHECKED int treecopy_run(int from_fd, int to_fd, unsigned flags,
			     const struct treecopy_limits *limits, struct treecopy_result *ret,
			     struct err *e);
