#pragma once
/*
 * store - where images are kept: blobs by digest, layers unpacked once, records and names.
 *
 * docs/design/image-store.md has the layout. What is there under its final name is complete: it was
 * made under another name and renamed. Several processes may work at once: whoever adds holds the
 * store's lock shared, whoever removes holds it alone, and a blob or layer that is being made has a
 * lock of its own that others wait for. What a killed process leaves is taken up or swept by the
 * next.
 */
#include "base/err.h"
#include "image/manifest.h"
#include "image/record.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store {
	int dir_fd; /* locked, too: STORE_ALONE */
	int blobs_fd;
	int partial_fd; /* blobs that are not complete */
	int layers_fd;  /* of `owners` */
	int making_fd;  /* layers that are not complete */
	int records_fd;
	int names_fd;
	int lock_fd;
	int userns_fd; /* borrowed; -1: none is needed */
	char owners[RECORD_OWNERS_MAX_BYTES];
};

enum store_lock {
	STORE_SHARED,
	STORE_ALONE,  /* also waits for those who wait for an image: image/record.h */
	STORE_TIDYING /* alone, but removes no image that has a name */
};
enum store_wait { STORE_WAIT, STORE_NO_WAIT };

/* Makes what is missing of it. STORE_NO_WAIT: ERR_BUSY while others hold the lock. */
ERR_CHECKED int store_open(const char *path, const char *owners, int userns_fd,
			   enum store_lock lock, enum store_wait wait, struct store *ret,
			   struct err *e);
void store_close(struct store *s); /* may run twice */
void store_init(struct store *s);  /* "not open" */

/* A name that no other process chooses, wherever it runs. */
#define STORE_UNIQUE_BYTES 17u
void store_choose_unique(char out[STORE_UNIQUE_BYTES]);

/* ---- blobs ---- */

bool store_has_blob(const struct store *s, const char *digest);
ERR_CHECKED int store_open_blob(const struct store *s, const char *digest, int *ret_fd,
				struct err *e);
/* NUL-terminated text, the caller's to free. */
ERR_CHECKED int store_read_blob(const struct store *s, const char *digest, size_t max_bytes,
				char **ret_text, size_t *ret_len, struct err *e);

/*
 * A blob to be written: locked, with what an earlier attempt left, readable and writable. When
 * somebody else finishes it while we wait, *ret_fd is -1.
 */
ERR_CHECKED int store_begin_blob(const struct store *s, const char *digest, enum store_wait wait,
				 int *ret_fd, struct err *e);
/* It is not complete: what there is of it stays for the next attempt, a file without bytes goes. */
void store_leave_blob(const struct store *s, const char *digest, int fd);
/* Its bytes are complete and their digest has been checked. Takes fd, also on failure. */
ERR_CHECKED int store_finish_blob(const struct store *s, const char *digest, int fd, struct err *e);
/* The whole of it at once; the digest is computed here. */
ERR_CHECKED int store_add_blob(const struct store *s, const void *bytes, size_t len,
			       char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e);
/* Reads it through; one that is not what its name says is removed and ERR_CORRUPT. */
ERR_CHECKED int store_check_blob(const struct store *s, const char *digest, struct err *e);

/* ---- layers ---- */

/* The names of a manifest's layers, lowest first; `diff_ids` are the digests of their contents. */
void store_name_layers(const struct manifest *m, const char (*diff_ids)[REFERENCE_DIGEST_MAX_BYTES],
		       char (*ret_ids)[RECORD_ID_BYTES + 1]);
bool store_has_layer(const struct store *s, const char *id);
/*
 * An empty directory to unpack into, locked by *ret_lock_fd. Both are -1 when somebody else has
 * finished the layer meanwhile. ERR_BUSY: somebody else is at it.
 */
ERR_CHECKED int store_begin_layer(const struct store *s, const char *id, int *ret_dir_fd,
				  int *ret_lock_fd, struct err *e);
ERR_CHECKED int store_finish_layer(const struct store *s, const char *id, struct err *e);
/* It will not be finished, and what there is of it goes. Its lock is still held. */
void store_abandon_layer(const struct store *s, const char *id);
ERR_CHECKED int store_open_layer(const struct store *s, const char *id, int *ret_fd, struct err *e);
/* Removes something unfinished, of a process that was killed. */
ERR_CHECKED int store_sweep(const struct store *s, const char *name, struct err *e);
/* Removes the layers of another map of ids, which no record uses any more, as far as it can. */
void store_sweep_owners(const struct store *s, const char *owners);
/* Removes a layer that cannot be relied upon. */
ERR_CHECKED int store_remove_layer(const struct store *s, const char *id, struct err *e);

/* ---- records and names ---- */

/* Its id follows from manifest and owners and is set here. An equal record that is there stays. */
ERR_CHECKED int store_put_record(const struct store *s, struct record *r, struct err *e);
ERR_CHECKED int store_set_name(const struct store *s, const struct reference *ref, const char *id,
			       struct err *e);
/* ERR_NOT_FOUND when there is no such name. */
ERR_CHECKED int store_get_record(const struct store *s, const struct reference *ref,
				 struct record *ret, int *ret_lock_fd, struct err *e);
ERR_CHECKED int store_remove_name(const struct store *s, const struct reference *ref,
				  struct err *e);

/*
 * After a crash of the machine one process at a time decides what can be relied upon: held from
 * before the decision until the image is whole again. The descriptor is the caller's to close.
 */
ERR_CHECKED int store_lock_repair(const struct store *s, int *ret_fd, struct err *e);

/* An image that can be relied upon, and perhaps is in use, has this layer too. */
bool store_is_vouched(const struct store *s, const char *layer_id);

/*
 * From a process of its own that outlives this one: brings all to disk and removes the marks of
 * what was not there yet.
 */
void store_sync_later(const struct store *s);
