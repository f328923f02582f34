#pragma once
/*
 * pull - brings an image from a registry into the store.
 */
#include "base/err.h"
#include "image/progress.h"
#include "image/reference.h"
#include "image/store.h"

#include <stdbool.h>

#define PULL_SHORT_WAIT_MS 3000u    /* to connect */
#define PULL_SHORT_ANSWER_MS 10000u /* until the registry has told what the image is */

enum pull_from {
	PULL_FROM_ANY,      /* the store's own blobs if they are all there */
	PULL_FROM_REGISTRY, /* always ask what the name means now */
	PULL_FROM_STORE,
};

struct pull_options {
	const struct reference *reference;
	enum pull_from from;
	bool has_short_wait; /* nobody asked for this image: do not wait long for the registry */
	struct progress *progress;
	char *const *environ_list;
};

struct pull_result {
	char id[RECORD_ID_BYTES + 1];
	char digest[REFERENCE_DIGEST_MAX_BYTES]; /* of the manifest */
	unsigned layer_count;
	unsigned fetched_count; /* layers that came over the network */
	uint64_t fetched_bytes;
	bool is_new; /* the name did not mean this before */
};

ERR_CHECKED int pull_image(const struct store *s, const struct pull_options *o,
			   struct pull_result *ret, struct err *e);
