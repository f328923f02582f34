#pragma once
/*
 * store - the image store: blobs by digest, layers unpacked once, records and names.
 *
 * docs/design/image-store.md has the layout. Everything under its final name is complete: it was
 * created under another name and renamed. Several processes may work at once: those that add hold
 * the store's lock shared, those that remove hold it exclusively, and a blob or layer in progress
 * has its own lock that others wait for. The next process resumes or removes what a killed one
 * left.
 */
#include "base/err.h"
#include "image/manifest.h"
#include "image/record.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store {
	int dir_fd; /* also locked: STORE_ALONE */
	int blobs_fd;
	int partial_fd; /* incomplete blobs */
	int layers_fd;  /* of `owners` */
	int making_fd;  /* incomplete layers */
	int records_fd;
	int names_fd;
	int lock_fd;
	int userns_fd; /* borrowed; -1: none is needed */
	char owners[RECORD_OWNERS_MAX_BYTES];
};

enum store_lock {
	STORE_SHARED,
	STORE_ALONE,  /* also waits for those who wait for an image: image/record.h */
	STORE_TIDYING /* exclusive, but removes no image that has a name */
};
enum store_wait { STORE_WAIT, STORE_NO_WAIT };

/* Creates missing directories. STORE_NO_WAIT: ERR_BUSY while others hold the lock. */
ERR_CHECKED int store_open(const char *path, const char *owners, int userns_fd,
			   enum store_lock lock, enum store_wait wait, struct store *ret,
			   struct err *e);
void store_close(struct store *s); /* may run twice */
void store_init(struct store *s);  /* not open */

/* A name that no other process chooses, also in other containers. */
#define STORE_UNIQUE_BYTES 17u
void store_choose_unique(char out[STORE_UNIQUE_BYTES]);

/* ---- blobs ---- */

bool store_has_blob(const struct store *s, const char *digest);
ERR_CHECKED int store_open_blob(const struct store *s, const char *digest, int *ret_fd,
				struct err *e);
/* NUL-terminated text; the caller frees it. */
ERR_CHECKED int store_read_blob(const struct store *s, const char *digest, size_t max_bytes,
				char **ret_text, size_t *ret_len, struct err *e);

/*
 * Opens a blob for writing: locked, readable and writable, with the bytes of an earlier attempt. If
 * another process completes it while we wait, *ret_fd is -1.
 */
ERR_CHECKED int store_begin_blob(const struct store *s, const char *digest, enum store_wait wait,
				 int *ret_fd, struct err *e);
/* The blob is incomplete: its bytes are kept for the next attempt, an empty file is removed. */
void store_leave_blob(const struct store *s, const char *digest, int fd);
/* The bytes are complete and their digest was checked. Takes ownership of fd, also on failure. */
ERR_CHECKED int store_finish_blob(const struct store *s, const char *digest, int fd, struct err *e);
/* Adds a complete blob; the digest is computed here. */
ERR_CHECKED int store_add_blob(const struct store *s, const void *bytes, size_t len,
			       char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e);
/* Verifies a blob; a damaged one is removed, with ERR_CORRUPT. */
ERR_CHECKED int store_check_blob(const struct store *s, const char *digest, struct err *e);

/* ---- layers ---- */

/* The names of a manifest's layers, lowest first; `diff_ids` are the digests of their contents. */
void store_name_layers(const struct manifest *m, const char (*diff_ids)[REFERENCE_DIGEST_MAX_BYTES],
		       char (*ret_ids)[RECORD_ID_BYTES + 1]);
bool store_has_layer(const struct store *s, const char *id);
/*
 * Opens an empty directory to unpack into, locked by *ret_lock_fd. Both are -1 if another process
 * has finished the layer meanwhile. ERR_BUSY: another process is unpacking it.
 */
ERR_CHECKED int store_begin_layer(const struct store *s, const char *id, int *ret_dir_fd,
				  int *ret_lock_fd, struct err *e);
ERR_CHECKED int store_finish_layer(const struct store *s, const char *id, struct err *e);
/* Removes an unfinished layer. Its lock is still held. */
void store_abandon_layer(const struct store *s, const char *id);
ERR_CHECKED int store_open_layer(const struct store *s, const char *id, int *ret_fd, struct err *e);
/* Removes an unfinished file or directory of a killed process. */
ERR_CHECKED int store_sweep(const struct store *s, const char *name, struct err *e);
/* Removes the layers of another id map, which no record uses any more, as far as possible. */
void store_sweep_owners(const struct store *s, const char *owners);
/* Removes a layer that is not trustworthy. */
ERR_CHECKED int store_remove_layer(const struct store *s, const char *id, struct err *e);

/* ---- records and names ---- */

/* Sets the record's id, derived from manifest and owners. An existing equal record is kept. */
ERR_CHECKED int store_put_record(const struct store *s, struct record *r, struct err *e);
ERR_CHECKED int store_set_name(const struct store *s, const struct reference *ref, const char *id,
			       struct err *e);
/* ERR_NOT_FOUND if there is no such name. */
ERR_CHECKED int store_get_record(const struct store *s, const struct reference *ref,
				 struct record *ret, int *ret_lock_fd, struct err *e);
ERR_CHECKED int store_remove_name(const struct store *s, const struct reference *ref,
				  struct err *e);

/*
 * After a machine crash one process at a time decides what is trustworthy: it holds this lock from
 * before the decision until the image is complete again. The caller closes the descriptor.
 */
ERR_CHECKED int store_lock_repair(const struct store *s, int *ret_fd, struct err *e);

/* Does a trustworthy image, which may be in use, have this layer too? */
bool store_is_vouched(const struct store *s, const char *layer_id);

/* Starts a process that outlives this one: it syncs everything to disk and removes the markers. */
void store_sync_later(const struct store *s);
