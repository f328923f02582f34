#pragma once
/*
 * layertake - copies what a sandbox has written at one moment to a new layer.
 *
 * A running sandbox goes on while most of it is copied, and is frozen for the rest. The layer is a
 * complete copy, or stands on the layer of an earlier checkpoint and has only the differences.
 */
#include "base/err.h"
#include "named/layerstore.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct named;

struct layertake_options {
	/*
	 * The highest layer of the sandbox's latest checkpoint: if nothing has changed since,
	 * nothing is copied, and a running sandbox is not frozen. NULL: copies in any case.
	 */
	const char *latest;
};

struct layertake {
	struct layerstore_layer layer;
	char base[LAYERSTORE_ID_BYTES + 1]; /* the layer below it; "": none */
	struct policy policy;
	uint64_t bytes, entries; /* of everything that it has written */
	uint64_t frozen_us;
	bool is_running;
	bool is_unchanged; /* there is no layer: see layertake_options.latest */
	int index_fd;      /* for layertake_keep_index(); -1: none */
};
void layertake_init(struct layertake *t);
void layertake_done(struct layertake *t); /* may run twice */

/*
 * Copies and commits the layer; the caller holds the store's lock, shared. The record of `n` is
 * read again at the moment of the copy. On failure nothing is left.
 */
ERR_CHECKED int layertake_run(struct named *n, int store_fd, const struct layertake_options *o,
			      struct layertake *ret, struct err *e);

/* From now on, copies of this sandbox take files from this one; call when a record names it. */
void layertake_keep_index(const struct named *n, struct layertake *t);
