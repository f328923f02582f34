#pragma once
/*
 * stepcache - steps that were done before: found by all that they depend on.
 *
 * A record (image/steprecord) lies in the store's steps/ under a name made of its key; the key is
 * compared whole, so the name need not be a digest. A record whose layer or blob is gone, which is
 * damaged, or whose layer is not what it was after the machine went down, counts as absent.
 */
#include "image/steprecord.h"

#include <stdbool.h>

struct ak;

#define STEPCACHE_MAX_BYTES (20ull << 30) /* of layers; older ones go after a build */
#define STEPCACHE_ENTRIES_MAX 4096u

struct stepcache {
	int steps_fd, layers_fd, blobs_fd;
	char owners[RECORD_OWNERS_MAX_BYTES];
	char boot[RECORD_BOOT_MAX_BYTES];
};

/* Borrows the descriptors. */
ERR_CHECKED int stepcache_init(struct stepcache *c, int steps_fd, int layers_fd, int blobs_fd,
			       const char *owners, struct err *e);

/* Whether there is one; steprecord_done() afterwards. */
bool stepcache_find(const struct stepcache *c, const char *key, struct steprecord *ret);

/* Replaces one with the same key. */
ERR_CHECKED int stepcache_put(const struct stepcache *c, struct steprecord *r, struct err *e);

/* Takes a lock on the step, so that two builds do not do it at once; false: another has it. */
bool stepcache_lock(const struct stepcache *c, const char *key, int *ret_fd);

/* Forgets the steps that were not used for longest, beyond the maxima. Returns how many. */
unsigned stepcache_prune(const struct stepcache *c);

/* A random name for a layer or a node. */
void stepcache_choose_id(char out[RECORD_ID_BYTES + 1]);
