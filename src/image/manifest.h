#pragma once
/*
 * manifest - parses what registries and archives provide about an image: index and manifest.
 *
 * Hostile input: both are JSON, parsed with jansson (which bounds depth and refuses duplicate
 * keys), then read field by field; a wrong type, a missing field, or a value above its maximum
 * refuses the document with the name of the field. Both families are supported, OCI's and Docker's
 * (schema 2). ERR_INVALID: violates the format; ERR_LIMIT: above a maximum; ERR_UNSUPPORTED: valid,
 * but too old, not an image, or with layers that cannot be downloaded. No system calls.
 */
#include "base/err.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_MAX_BYTES (4u << 20)
#define MANIFEST_LAYERS_MAX 127u /* as in Docker: overlay needs all their names in one page */
#define MANIFEST_INDEX_MAX 256u
#define MANIFEST_BLOB_MAX_BYTES (64ull << 30)
#define MANIFEST_CONFIG_MAX_BYTES (4u << 20) /* of the config that a manifest names */
#define MANIFEST_TYPE_MAX_BYTES 128u

/* Types that a client accepts when it requests a manifest. */
#define MANIFEST_TYPE_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define MANIFEST_TYPE_OCI "application/vnd.oci.image.manifest.v1+json"
#define MANIFEST_TYPE_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define MANIFEST_TYPE_DOCKER "application/vnd.docker.distribution.manifest.v2+json"

struct manifest_blob {
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
	char type[MANIFEST_TYPE_MAX_BYTES];
};

struct manifest {
	struct manifest_blob config;
	struct manifest_blob layers[MANIFEST_LAYERS_MAX]; /* lowest first */
	unsigned layer_count;
};

/* Is this document an index (a list by platform) rather than a manifest? Decided by its own
 * mediaType and fields, then by `type`, the Content-Type it came with ("" if unknown). */
ERR_CHECKED int manifest_is_index(const char *text, size_t len, const char *type, bool *ret,
				  struct err *e);

ERR_CHECKED int manifest_parse(const char *text, size_t len, struct manifest *ret, struct err *e);

/*
 * The entry of an index for `architecture` (OCI's name: "amd64", "arm64") on linux; of several the
 * first with the best variant (arm64: v8, none; amd64: none or v1, v2, v3). An entry without a
 * platform is used if there is no better one: its config decides. Attestations, artifacts and
 * nested indexes are skipped. ERR_NOT_FOUND lists the available platforms.
 */
ERR_CHECKED int manifest_choose(const char *text, size_t len, const char *architecture,
				struct manifest_blob *ret, struct err *e);

/* OCI's name of this machine's architecture. */
const char *manifest_architecture(void);
