#pragma once
/*
 * layerstore - the layers of checkpoints: immutable trees in the state directory.
 *
 * A layer is a copy of what one sandbox had written at one moment. Records of sandboxes and
 * checkpoints name the layers below them; a layer that no record names is garbage. A process that
 * adds a layer or a reference holds the store's lock shared until its record is written; garbage
 * collection holds it exclusively.
 */
#include "base/err.h"

#include <stdint.h>

struct ak;

#define LAYERSTORE_DIR "layers"
#define LAYERSTORE_ID_BYTES 24u

enum layerstore_lock { LAYERSTORE_SHARED, LAYERSTORE_ALONE };

/* Opens and locks the store, creating it if missing; closing the descriptor unlocks it. */
ERR_CHECKED int layerstore_open(const struct ak *ak, enum layerstore_lock lock, int *ret_fd,
				struct err *e);

/* A new, empty layer; it becomes part of the store with layerstore_commit(). */
struct layerstore_layer {
	char id[LAYERSTORE_ID_BYTES + 1];
	int dir_fd;
};
ERR_CHECKED int layerstore_begin(int store_fd, struct layerstore_layer *ret, struct err *e);
ERR_CHECKED int layerstore_commit(int store_fd, struct layerstore_layer *layer, struct err *e);
void layerstore_abort(int store_fd, struct layerstore_layer *layer); /* may run twice */

/* Opens the directory of a layer. */
ERR_CHECKED int layerstore_open_layer(int store_fd, const char *id, int *ret_fd, struct err *e);

/* Removes layers that no record names. Does nothing while another process holds the lock. */
ERR_CHECKED int layerstore_collect(const struct ak *ak, unsigned *ret_count, struct err *e);
