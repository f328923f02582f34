#pragma once
/*
 * storegc - removes what no image needs.
 *
 * Kept are: every record that has a name, every record that a sandbox is using (it holds the
 * record's lock), and the blobs and layers of those. The store is locked exclusively, so no other
 * process has anything in progress.
 */
#include "image/store.h"

#define STOREGC_PINS_DIR "pins" /* links to records to keep; engine/images.c creates them */

enum storegc_flags {
	STOREGC_UNUSED = 1 << 0,    /* names do not keep a record, only its users do */
	STOREGC_DRY = 1 << 1,       /* only count */
	STOREGC_RESUMABLE = 1 << 2, /* keep partial blobs for the next pull */
};

struct storegc_result {
	unsigned record_count; /* removed; likewise below */
	unsigned layer_count;
	unsigned blob_count;
	uint64_t blob_bytes;
	unsigned used_count; /* records kept only because a sandbox uses them */
};

ERR_CHECKED int storegc_run(const struct store *s, unsigned flags, struct storegc_result *ret,
			    struct err *e);
