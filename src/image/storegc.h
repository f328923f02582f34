#pragma once
/*
 * storegc - takes back what no image needs.
 *
 * Kept: every record that has a name, every record that a sandbox is using (it holds the record's
 * lock), and the blobs and layers of those. The store is held alone, so nothing is half-made by
 * others.
 */
#include "image/store.h"

#define STOREGC_PINS_DIR "pins" /* links to records that stay; engine/images.c makes them */

enum storegc_flags {
	STOREGC_UNUSED = 1 << 0,    /* names do not keep a record, only use does */
	STOREGC_DRY = 1 << 1,       /* only count */
	STOREGC_RESUMABLE = 1 << 2, /* the beginnings of blobs stay, for the next pull */
};

struct storegc_result {
	unsigned record_count; /* removed, here and below */
	unsigned layer_count;
	unsigned blob_count;
	uint64_t blob_bytes;
	unsigned used_count; /* records kept only because a sandbox uses them */
};

ERR_CHECKED int storegc_run(const struct store *s, unsigned flags, struct storegc_result *ret,
			    struct err *e);
