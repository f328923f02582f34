#pragma once
/*
 * push - sends an image of the store to the registry that its name is of: its layers, its config,
 * and at last its manifest, so that nothing there names what is not complete.
 */
#include "base/err.h"
#include "image/progress.h"
#include "image/store.h"

struct push_options {
	const struct reference *reference;
	struct progress *progress;
	char *const *environ_list;
};

struct push_result {
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	unsigned layer_count, sent_count, mounted_count;
	uint64_t sent_bytes;
};

ERR_CHECKED int push_image(const struct store *s, const struct push_options *o,
			   struct push_result *ret, struct err *e);
