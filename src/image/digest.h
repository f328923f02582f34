#pragma once
/* digest - computes SHA-256 digests as text, "sha256:<64 digits>", as in image formats. */
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>

struct digest;

struct digest *digest_new(void);
void digest_free(struct digest *d);
void digest_freep(struct digest **d);
void digest_add(struct digest *d, const void *bytes, size_t len);

/* Ends the computation: afterwards the object can only be freed. */
void digest_finish(struct digest *d, char out[REFERENCE_DIGEST_MAX_BYTES]);

void digest_of(const void *bytes, size_t len, char out[REFERENCE_DIGEST_MAX_BYTES]);

/* Hashes the whole file from its start; does not use its offset. Returns -errno. */
int digest_of_file(int fd, char out[REFERENCE_DIGEST_MAX_BYTES]);
