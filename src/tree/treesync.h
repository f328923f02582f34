#pragma once
/*
 * treesync - copies a tree in several passes, all but the last while programs change it.
 *
 * Each pass brings the copy up to the tree's present state: it copies what is new or has changed
 * since the pass before, and since the copies that the index knows from earlier layers. Nobody may
 * change the tree during the last pass; then the copy is the tree at that moment. What the last
 * pass leaves undone, removing names that are gone, is done by treesync_settle() without the tree.
 *
 * The copy is a complete layer, or holds only the differences to a base, over which overlay shows
 * the same. The same content, attributes and types are kept as by tree/treecopy, and with the same
 * identity: see its header.
 */
#include "base/err.h"
#include "tree/treeindex.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct treesync;

struct treesync_options {
	int from_fd;             /* the tree */
	int to_fd;               /* an empty directory, the new layer */
	int base_fd;             /* the layer that the index calls the base; -1: none */
	int previous_fd;         /* the layer of the last copy; -1: none */
	struct treeindex *index; /* borrowed */
	bool is_full;            /* makes a complete layer; else base_fd is required */
	uint64_t bytes_per_s;    /* passes wait to stay below it; 0: no limit */
};
/* Borrows the descriptors. */
struct treesync *treesync_new(const struct treesync_options *o);
void treesync_freep(struct treesync **s);

struct treesync_pass {
	/*
	 * From before `mapped` was collected. A file that changed later, or just before, may change
	 * again without a new ctime: within the same tick of the kernel's clock, or through a
	 * mapping that `mapped` does not contain yet.
	 */
	struct timespec began;
	/*
	 * Files mapped shared, "INODE PATH" each, NUL-terminated, and the length of all. Overlay
	 * shows the inode number of a lower layer for a file that was copied up, and the path of a
	 * name that may be gone while the file has another: so either one counts.
	 */
	const char *mapped;
	size_t mapped_len;
	bool is_last;
	bool is_urgent; /* the tree's programs stand still: treesync_settle() waits instead */
};

struct treesync_result {
	uint64_t entry_count;  /* without the top directory */
	uint64_t bytes;        /* of content, without holes */
	uint64_t copied_count; /* in this pass */
	uint64_t copied_bytes;
	/*
	 * Of the first pass only: entries that may differ from what the index had when it was read.
	 * Names that are gone count as their directory. A mapped file always counts.
	 */
	uint64_t changed_count;
	bool needs_full; /* failed only because the copy cannot stand on the base: use is_full */
};
/*
 * ERR_LIMIT: too many files. Entries that cannot be copied because they are just changing are left
 * to the next pass, and are an error in the last one.
 */
ERR_CHECKED int treesync_run(struct treesync *s, const struct treesync_pass *p,
			     struct treesync_result *ret, struct err *e);
/* After the last pass: completes the layer, and waits for what was copied above the rate. */
ERR_CHECKED int treesync_settle(struct treesync *s, struct err *e);
uint32_t treesync_last_pass(const struct treesync *s); /* for treeindex_write() */
