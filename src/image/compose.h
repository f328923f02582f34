#pragma once
/*
 * compose - makes an image of layers that are in the store already, and a description of its
 * config: what a build or a commit ends with.
 *
 * The description is a list of "key=value", each ended by a NUL, from the launcher:
 *
 *   base=ID            the record of the image below; none: nothing is below
 *   layer=NAME DIFF DIGEST SIZE    a layer above it; lowest first
 *   created=SECONDS
 *   env=, entrypoint=, cmd=, shell=, onbuild=    lists, whole; with set=KEY, since they may be
 * empty user=, workdir=, stopsignal=, author= label=NAME=VALUE, port=, volume=    in addition to
 * the base's health=WORD..., health-interval= -timeout= -start= -start-interval= (nanoseconds),
 * -retries= history=TEXT, empty=TEXT       a step with a layer, and one without
 */
#include "base/err.h"
#include "image/store.h"

#include <stddef.h>

#define COMPOSE_MAX_BYTES (8u << 20)

/* `ref` NULL: it gets no name. */
ERR_CHECKED int compose_image(const struct store *s, const char *bytes, size_t len,
			      const struct reference *ref,
			      char ret_digest[REFERENCE_DIGEST_MAX_BYTES],
			      char ret_id[RECORD_ID_BYTES + 1], struct err *e);
