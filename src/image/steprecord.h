#pragma once
/*
 * steprecord - a step of a build that need not be done again: steps/NAME in the store.
 *
 * The launcher writes and finds them (build/stepcache); whoever removes what no image needs keeps
 * their layers and blobs. docs/design/build.md describes them.
 */
#include "base/buf.h"
#include "base/err.h"
#include "image/record.h"
#include "image/reference.h"

#include <stdint.h>

#define STEPRECORD_DIR "steps"
#define STEPRECORD_MAX_BYTES (4u << 20) /* most of it is the text that it is found by */

struct steprecord {
	char *key;                       /* all that the step depends on */
	char node[RECORD_ID_BYTES + 1];  /* what the steps after it name it by */
	char layer[RECORD_ID_BYTES + 1]; /* "": it changed nothing */
	char owners[RECORD_OWNERS_MAX_BYTES];
	char diff_id[REFERENCE_DIGEST_MAX_BYTES];
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
	uint64_t made_s;
	char boot[RECORD_BOOT_MAX_BYTES]; /* in which it was written, or last found whole */
};

ERR_CHECKED int steprecord_parse(const char *bytes, size_t len, struct steprecord *ret,
				 struct err *e);
void steprecord_format(const struct steprecord *r, struct buf *out);
void steprecord_done(struct steprecord *r); /* may run twice, and on a zeroed struct */
