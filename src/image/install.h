#pragma once
/*
 * install - from blobs in the store to an image that can be run.
 *
 * Layers are unpacked by workers, several at once and in whatever order their blobs come; each gets
 * its final name when it and all below it are complete. Another process may be unpacking the same
 * layer: then its result is awaited. At the end a record is written. Used by pull, load and import.
 */
#include "base/err.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/progress.h"
#include "image/store.h"
#include "image/layerworker.h"

#include <stdbool.h>

#define INSTALL_WORKERS_MAX 4u
#define INSTALL_LOOK_AGAIN_MS 50 /* at a layer that another process is making */

enum install_state {
	INSTALL_NO_BLOB,  /* its blob is not there yet */
	INSTALL_READY,    /* to be unpacked */
	INSTALL_RUNNING,  /* a worker is at it */
	INSTALL_UNPACKED, /* waits for those below */
	INSTALL_FINISHED,
};

struct install_layer {
	enum install_state state;
	char id[RECORD_ID_BYTES + 1];
	unsigned line; /* of the progress */
	struct layerworker worker;
	int dir_fd, lock_fd;
};

struct install {
	const struct store *store;
	struct progress *progress;
	struct manifest manifest;
	char manifest_digest[REFERENCE_DIGEST_MAX_BYTES];
	struct config config;
	struct install_layer layers[MANIFEST_LAYERS_MAX]; /* lowest first */
	unsigned running, finished;
};

/*
 * From the manifest and the config, which are in the store as blobs. Checks that they fit each
 * other. Layers that are there already are finished. `is_doubted`: those are made anew,
 * unless an image that is not doubted has them too; the caller holds the store's repair lock then.
 */
ERR_CHECKED int install_open(const struct store *s, struct progress *p, const char *manifest_digest,
			     bool is_doubted, struct install **ret, struct err *e);
void install_free(struct install *i); /* ends what still runs */
void install_freep(struct install **i);

/* The layer's blob is in the store. */
void install_blob_is_there(struct install *i, unsigned layer);

/* Takes up what workers have done and starts others. Never waits. */
ERR_CHECKED int install_step(struct install *i, struct err *e);

/* Descriptors that become readable when there is something to take up. */
unsigned install_get_watched(const struct install *i, int *ret_fds, unsigned max);

/* Waits for the rest, writes the record; its id in ret_id. */
ERR_CHECKED int install_finish(struct install *i, char ret_id[RECORD_ID_BYTES + 1], struct err *e);
