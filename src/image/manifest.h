#pragma once
/*
 * manifest - what registries and archives say about an image: index and manifest.
 *
 * Both are JSON from outside: parsed with jansson (depth and duplicate keys bounded by it),
 * then read field by field; a wrong type, a missing field, a value beyond its maximum refuses the
 * document with the name of the field. Both families are read, OCI's and Docker's (schema 2).
 * ERR_INVALID: not what the format says; ERR_LIMIT: beyond a maximum; ERR_UNSUPPORTED: right, but
 * too old, not an image, or with layers that cannot be had. Pure code.
 */
#include "base/err.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_MAX_BYTES (4u << 20)
#define MANIFEST_LAYERS_MAX 127u /* as Docker: overlay needs all their names in one page */
#define MANIFEST_INDEX_MAX 256u
#define MANIFEST_BLOB_MAX_BYTES (64ull << 30)
#define MANIFEST_CONFIG_MAX_BYTES (4u << 20) /* of the config that a manifest names */
#define MANIFEST_TYPE_MAX_BYTES 128u

/* What a client accepts when it asks for a manifest. */
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

/* Is this document an index (a list by platform) rather than a manifest? By its own mediaType and
 * fields, then by `type`, the Content-Type it came with ("" when unknown). */
ERR_CHECKED int manifest_is_index(const char *text, size_t len, const char *type, bool *ret,
				  struct err *e);

ERR_CHECKED int manifest_parse(const char *text, size_t len, struct manifest *ret, struct err *e);

/*
 * The entry of an index for `architecture` (OCI's name: "amd64", "arm64") on linux; of several the
 * first, the best variant before others (arm64: v8, none; amd64: none or v1, v2, v3). An entry
 * without a platform is taken when there is no better one: its config says what it is for.
 * Attestations, artifacts and nested indexes are passed over. ERR_NOT_FOUND names what there is.
 */
ERR_CHECKED int manifest_choose(const char *text, size_t len, const char *architecture,
				struct manifest_blob *ret, struct err *e);

/* OCI's name of the machine we run on. */
const char *manifest_architecture(void);
