#pragma once
/*
 * treediff - what a sandbox's layers change of the image they lie on.
 *
 * Layers are directories as overlay uses them in a user namespace: a character device 0:0 hides a
 * name, the attribute user.overlay.opaque a directory's lower content. Their content is hostile.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREEDIFF_LAYERS_MAX 128u /* of the sandbox, and of the image */
#define TREEDIFF_ENTRIES_MAX (1u << 20)
#define TREEDIFF_PATH_MAX_BYTES 4096u
#define TREEDIFF_HELD_MAX_BYTES (256ull << 20) /* of names that were read and not yet looked at */

enum treediff_kind {
	TREEDIFF_ADDED,
	TREEDIFF_CHANGED,
	TREEDIFF_DELETED,

	TREEDIFF_KIND_COUNT
};

struct treediff_entry {
	enum treediff_kind kind;
	char *path; /* absolute; any bytes: whoever prints it takes care */
};

struct treediff {
	struct treediff_entry *list; /* sorted by path */
	size_t count;
	bool is_cut; /* one of the maxima was reached: there may be more */
};
void treediff_done(struct treediff *d);        /* may run twice, and on a zeroed struct */
char treediff_letter(enum treediff_kind kind); /* 'A', 'C', 'D' */

struct treediff_options {
	const int *upper_fds; /* the sandbox's own layers, highest first; all are borrowed */
	unsigned upper_count;
	const int *base_fds; /* the image's, highest first */
	unsigned base_count; /* 0: it has none, as the host's */
	/*
	 * Absolute paths that were there whatever the image's layers say, NULL-ended, may be NULL:
	 * they are never 'A', and 'C' only for what lies beneath.
	 */
	const char *const *known_paths;
	uint64_t max_entries; /* 0: TREEDIFF_ENTRIES_MAX */
};

/*
 * As Docker tells it: what is in the sandbox's layers and not in the image is added, with all that
 * lies beneath; what is in both and was written is changed, and so are the directories above any
 * change; what only the image has is deleted, without what lay beneath. A directory that is in a
 * layer for the sake of what lies in it, with the same mode and owner, is not a change by itself.
 */
ERR_CHECKED int treediff_run(const struct treediff_options *o, struct treediff *ret, struct err *e);
