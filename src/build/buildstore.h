#pragma once
/*
 * buildstore - the image store as a build or a commit uses it: a place to work in, layers and blobs
 * that are put in, and the image that is composed of them.
 *
 * While it is open nobody removes anything from the store (its lock is held shared), and the work
 * directory, beneath making/, is ours: its lock says so. What a killed process left is removed by
 * the next one.
 */
#include "base/buf.h"
#include "base/err.h"
#include "image/record.h"
#include "image/reference.h"

struct ak;
struct layertransfer_result;

#define BUILDSTORE_WORK_MAX_BYTES 64u

struct buildstore {
	const struct ak *ak;
	char *layers_path;
	char *work;  /* "making/build-..." in it */
	char *empty; /* an empty directory there, for what has no layer */
	char owners[RECORD_OWNERS_MAX_BYTES];
	int layers_fd, steps_fd, blobs_fd, partial_fd;
	int lock_fd, work_lock_fd;
	unsigned work_count;
};

void buildstore_init(struct buildstore *s);
ERR_CHECKED int buildstore_open(struct buildstore *s, const struct ak *ak, struct err *e);
void buildstore_close(struct buildstore *s); /* may run twice, and without an open before */

/* A directory for one step, beneath the layers: "making/build-x/3". */
ERR_CHECKED int buildstore_make_work(struct buildstore *s, char out[BUILDSTORE_WORK_MAX_BYTES],
				     struct err *e);

/* Gives a directory beneath the layers its final name. */
ERR_CHECKED int buildstore_move_layer(const struct buildstore *s, const char *from, const char *to,
				      struct err *e);

/* A file for a blob that is being written; its name is the caller's to free. */
ERR_CHECKED int buildstore_begin_blob(const struct buildstore *s, char **ret_name, int *ret_fd,
				      struct err *e);
/* It is complete: gets its digest as a name, unless the store has it. */
ERR_CHECKED int buildstore_keep_blob(const struct buildstore *s, const char *name,
				     const struct layertransfer_result *r, struct err *e);
void buildstore_drop_blob(const struct buildstore *s, const char *name);

/* Composes an image (image/compose.h has the text's form). `name` NULL: it gets none. */
ERR_CHECKED int buildstore_compose(const struct buildstore *s, const struct buf *text,
				   const char *name, char ret_digest[REFERENCE_DIGEST_MAX_BYTES],
				   char ret_id[RECORD_ID_BYTES + 1], struct err *e);
