#pragma once
/*
 * treediff - lists a sandbox's changes to its image.
 *
 * Layers are directories as overlay uses them in a user namespace: a character device 0:0 hides a
 * name, the attribute user.overlay.opaque hides the lower content of a directory. Their content is
 * hostile.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREEDIFF_LAYERS_MAX 128u /* each, of the sandbox and of the image */
#define TREEDIFF_ENTRIES_MAX (1u << 20)
#define TREEDIFF_PATH_MAX_BYTES 4096u
#define TREEDIFF_HELD_MAX_BYTES (256ull << 20) /* of names that were read but not handled yet */

enum treediff_kind {
	TREEDIFF_ADDED,
	TREEDIFF_CHANGED,
	TREEDIFF_DELETED,

	TREEDIFF_KIND_COUNT
};

struct treediff_entry {
	enum treediff_kind kind;
	char *path; /* absolute; may contain any byte: escape it for printing */
};

struct treediff {
	struct treediff_entry *list; /* sorted by path */
	size_t count;
	bool is_cut; /* a maximum was reached: there may be more */
};
void treediff_done(struct treediff *d);        /* may run twice, and on a zeroed struct */
char treediff_letter(enum treediff_kind kind); /* 'A', 'C', 'D' */

struct treediff_options {
	const int *upper_fds; /* the sandbox's own layers, highest first; all fds are borrowed */
	unsigned upper_count;
	const int *base_fds; /* the image's, highest first */
	unsigned base_count; /* 0: none, as for the host image */
	/*
	 * Absolute paths that exist even if the image's layers lack them, NULL-ended, may be NULL:
	 * they are never 'A', and 'C' only for their content.
	 */
	const char *const *known_paths;
	uint64_t max_entries; /* 0: TREEDIFF_ENTRIES_MAX */
};

/*
 * Reports changes as Docker does. Added: entries that are in the sandbox's layers but not in the
 * image, with all their content. Changed: entries in both that were written, and the parents of any
 * change. Deleted: entries that only the image has, without their content. A directory that is in a
 * layer only for the sake of its content, with the same mode and owner, is not a change.
 */
ERR_CHECKED int treediff_run(const struct treediff_options *o, struct treediff *ret, struct err *e);
