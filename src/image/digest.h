#pragma once
/*
 * digest - SHA-256 of what passes by, in the form that image formats write: "sha256:<64 digits>".
 */
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>

struct digest;

struct digest *digest_new(void);
void digest_free(struct digest *d);
void digest_freep(struct digest **d);
void digest_add(struct digest *d, const void *bytes, size_t len);

/* Ends it: the object can only be freed afterwards. */
void digest_finish(struct digest *d, char out[REFERENCE_DIGEST_MAX_BYTES]);

void digest_of(const void *bytes, size_t len, char out[REFERENCE_DIGEST_MAX_BYTES]);

/* From the descriptor's start to its end; its offset is not used. Returns -errno. */
int digest_of_file(int fd, char out[REFERENCE_DIGEST_MAX_BYTES]);
