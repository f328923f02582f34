#pragma once
/* pull - downloads an image from a registry into the store. */
#include "base/err.h"
#include "image/progress.h"
#include "image/reference.h"
#include "image/store.h"

#include <stdbool.h>

#define PULL_SHORT_WAIT_MS 3000u    /* to connect */
#define PULL_SHORT_ANSWER_MS 10000u /* until the registry has sent the manifest */

enum pull_from {
	PULL_FROM_ANY,      /* use the store's own blobs if they are complete */
	PULL_FROM_REGISTRY, /* always ask the registry for the current image */
	PULL_FROM_STORE,
};

struct pull_options {
	const struct reference *reference;
	enum pull_from from;
	bool has_short_wait; /* the user did not name this image: do not wait long */
	struct progress *progress;
	char *const *environ_list;
};

struct pull_result {
	char id[RECORD_ID_BYTES + 1];
	char digest[REFERENCE_DIGEST_MAX_BYTES]; /* of the manifest */
	unsigned layer_count;
	unsigned fetched_count; /* downloaded layers */
	uint64_t fetched_bytes;
	bool is_new; /* the name referred to another image, or none, before */
};

ERR_CHECKED int pull_image(const struct store *s, const struct pull_options *o,
			   struct pull_result *ret, struct err *e);
