#pragma once
/*
 * record - all data to start a command from an image, in one small file.
 *
 * The image helper writes it when an image is complete in the store; the launcher reads it and
 * needs no JSON, no digest and no library. It is a list of keys (base/keyrows.h);
 * docs/design/image-store.md describes it and the store.
 *
 * records/ID is the file, names/REFERENCE a symbolic link to it. A user of an image holds a shared
 * lock on its record; removing an image needs the exclusive one. A process that has an image pulled
 * and will then open its record holds a shared lock on the store's directory meanwhile.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_WHAT "image" /* base/keyrows.h */
#define RECORD_VERSION 2u
#define RECORD_MAX_BYTES (4u << 20)
#define RECORD_LAYERS_MAX 127u
#define RECORD_ID_BYTES 26u /* of a layer or record: 130 bits, so that all names fit in a page */
#define RECORD_OWNERS_MAX_BYTES 48u
#define RECORD_BOOT_MAX_BYTES 40u

struct record {
	char id[RECORD_ID_BYTES + 1]; /* its own name */
	char *digest;                 /* of the manifest */
	char *config;                 /* digest of the config */
	char *created;                /* as in the config; may be "" */
	uint64_t size_bytes;          /* of all blobs */
	uint64_t added_s;             /* time when it was added to the store */

	char owners[RECORD_OWNERS_MAX_BYTES]; /* which ids own the layers' files: "raw", "one",
					       * "sub-..." */
	char layers[RECORD_LAYERS_MAX][RECORD_ID_BYTES + 1]; /* highest first */
	unsigned layer_count;

	/* from the config; lists end in NULL */
	char **env, **entrypoint, **cmd;
	char **onbuild, **shell; /* for builds from it */
	char *user, *workdir;
	char *passwd, *group; /* the image's own files, "" if it has none */
};

ERR_CHECKED int record_parse(const char *bytes, size_t len, struct record *ret, struct err *e);
void record_format(const struct record *r, struct buf *out);
void record_done(struct record *r); /* may run twice, and on a zeroed struct */

/*
 * Reads dir_fd/path and protects it from removal as long as *ret_fd is open. ERR_NOT_FOUND if it
 * does not exist.
 */
ERR_CHECKED int record_open(int dir_fd, const char *path, struct record *ret, int *ret_fd,
			    struct err *e);

/*
 * While records/ID.unsynced exists, the image's files may not be on disk yet; it contains the id of
 * the boot in which they were written. After another boot they are not trustworthy.
 */
#define RECORD_UNSYNCED ".unsynced"
bool record_is_settled(int records_fd, const char *id);

/* The id of this boot. Returns -errno. */
int record_current_boot(char out[RECORD_BOOT_MAX_BYTES]);
