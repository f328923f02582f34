#pragma once
/*
 * layerstore - the layers that checkpoints are made of: immutable trees in the state directory.
 *
 * A layer is what one sandbox had written at one moment. Records of sandboxes and checkpoints name
 * the layers they stand on; a layer that no record names is garbage. Whoever adds a layer or a
 * reference holds the store's lock shared until its record is written, whoever collects holds it
 * alone.
 */
#include "base/err.h"

#include <stdint.h>

struct ak;

#define LAYERSTORE_DIR "layers"
#define LAYERSTORE_ID_BYTES 24u

enum layerstore_lock { LAYERSTORE_SHARED, LAYERSTORE_ALONE };

/* The store, made where it is missing; closing the descriptor lets go. */
ERR_CHECKED int layerstore_open(const struct ak *ak, enum layerstore_lock lock, int *ret_fd,
				struct err *e);

/* A new, empty layer; it does not count until it is committed. */
struct layerstore_layer {
	char id[LAYERSTORE_ID_BYTES + 1];
	int dir_fd;
};
ERR_CHECKED int layerstore_begin(int store_fd, struct layerstore_layer *ret, struct err *e);
ERR_CHECKED int layerstore_commit(int store_fd, struct layerstore_layer *layer, struct err *e);
void layerstore_abort(int store_fd, struct layerstore_layer *layer); /* may run twice */

/* Opens the directory of a layer. */
ERR_CHECKED int layerstore_open_layer(int store_fd, const char *id, int *ret_fd, struct err *e);

/* Removes what no record names. Skipped in silence while another works on the store. */
ERR_CHECKED int layerstore_collect(const struct ak *ak, unsigned *ret_count, struct err *e);
