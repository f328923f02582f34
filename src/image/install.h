#pragma once
/*
 * install - turns blobs of the store into a runnable image.
 *
 * Workers unpack the layers, several at once and in the order in which their blobs arrive; a layer
 * gets its final name when it and all below it are complete. If another process is unpacking the
 * same layer, we wait for its result. At the end a record is written. Used by pull, load and
 * import.
 */
#include "base/err.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/progress.h"
#include "image/store.h"
#include "image/layerworker.h"

#include <stdbool.h>

#define INSTALL_WORKERS_MAX 4u
#define INSTALL_LOOK_AGAIN_MS 50 /* poll interval for a layer that another process is unpacking */

enum install_state {
	INSTALL_NO_BLOB,  /* its blob is not in the store yet */
	INSTALL_READY,    /* to be unpacked */
	INSTALL_RUNNING,  /* a worker is unpacking it */
	INSTALL_UNPACKED, /* waits for the layers below */
	INSTALL_FINISHED,
};

struct install_layer {
	enum install_state state;
	char id[RECORD_ID_BYTES + 1];
	unsigned line; /* index in the progress display */
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
 * Reads the manifest and the config, blobs of the store, and checks that they match. Existing
 * layers count as finished. `is_doubted`: these are unpacked again, unless an image that is not
 * doubted has them too; then the caller holds the store's repair lock.
 */
ERR_CHECKED int install_open(const struct store *s, struct progress *p, const char *manifest_digest,
			     bool is_doubted, struct install **ret, struct err *e);
void install_free(struct install *i); /* kills running workers */
void install_freep(struct install **i);

/* The layer's blob is in the store. */
void install_blob_is_there(struct install *i, unsigned layer);

/* Collects results of workers and starts others. Never blocks. */
ERR_CHECKED int install_step(struct install *i, struct err *e);

/* Descriptors that become readable when a worker has a result. */
unsigned install_get_watched(const struct install *i, int *ret_fds, unsigned max);

/* Waits for all workers and writes the record; returns its id. */
ERR_CHECKED int install_finish(struct install *i, char ret_id[RECORD_ID_BYTES + 1], struct err *e);

/* Fills in the image's own files of accounts, of the layers that the record names. */
void install_read_accounts(const struct store *s, struct record *r);
