/*
 * manifest - parses index and manifest; see manifest.h.
 *
 * Theory of operation
 *
 * A document's type is given in three places: its mediaType, its fields, and the Content-Type it
 * came with. If readers relied on different ones, they would run different images under one digest
 * (CVE-2021-41190), so a document with the fields of both types, or with a mediaType that
 * contradicts its fields, is refused. The Content-Type is the last resort: archives have none.
 *
 * Media types are rows of one table. A type that is not in it is either an artifact (signature,
 * chart, attestation: not an image), or newer than this program.
 *
 * Hostile input: all of it. Sizes and counts are checked before anything is copied.
 */
#include "image/manifest.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "image/jsonfields.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA_VERSION 2u
#define DIGEST_TEXT_MAX_BYTES 256u /* longer digests of other algorithms, for messages */
#define PLATFORM_WORD_MAX_BYTES 64u
#define PLATFORMS_SHOWN_MAX_BYTES 300u

enum kind {
	KIND_UNKNOWN,
	KIND_INDEX,
	KIND_MANIFEST,
	KIND_OLD, /* schema 1 */
	KIND_CONFIG,
	KIND_LAYER,
	KIND_FOREIGN_LAYER,
};

static const struct {
	const char *type;
	enum kind kind;
} types[] = {
	{ MANIFEST_TYPE_OCI_INDEX, KIND_INDEX },
	{ MANIFEST_TYPE_DOCKER_LIST, KIND_INDEX },
	{ MANIFEST_TYPE_OCI, KIND_MANIFEST },
	{ MANIFEST_TYPE_DOCKER, KIND_MANIFEST },
	{ "application/vnd.docker.distribution.manifest.v1+json", KIND_OLD },
	{ "application/vnd.docker.distribution.manifest.v1+prettyjws", KIND_OLD },
	{ "application/vnd.oci.image.config.v1+json", KIND_CONFIG },
	{ "application/vnd.docker.container.image.v1+json", KIND_CONFIG },
	{ "application/vnd.oci.image.layer.v1.tar", KIND_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+gzip", KIND_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+zstd", KIND_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar", KIND_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar.gzip", KIND_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar.zstd", KIND_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar", KIND_FOREIGN_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", KIND_FOREIGN_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", KIND_FOREIGN_LAYER },
	{ "application/vnd.docker.image.rootfs.foreign.diff.tar", KIND_FOREIGN_LAYER },
	{ "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", KIND_FOREIGN_LAYER },
};

/* Parameters after ';', as in a Content-Type, are ignored. */
static enum kind kind_of(const char *type)
{
	size_t len = strcspn(type, "; ");

	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (strlen(types[i].type) == len && strncmp(types[i].type, type, len) == 0)
			return types[i].kind;
	return KIND_UNKNOWN;
}

const char *manifest_architecture(void)
{
	return reference_architecture();
}

/* ---- the type of a document ---- */

static int refuse_old(struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED,
		       "a manifest of schema 1, which is too old: push the image again with a "
		       "newer tool");
}

/* The type by the document alone; KIND_UNKNOWN if it gives none. */
static int find_kind(const json_t *root, enum kind *ret, struct err *e)
{
	bool has_list = json_object_get(root, "manifests");
	bool has_layers = json_object_get(root, "layers") || json_object_get(root, "config");
	const char *type = "";
	enum kind said;

	if (jsonfields_get_text(root, "mediaType", MANIFEST_TYPE_MAX_BYTES - 1, JSONFIELDS_OPTIONAL,
				&type, e) < 0)
		return -1;
	said = kind_of(type);
	if (said == KIND_OLD || json_integer_value(json_object_get(root, "schemaVersion")) == 1)
		return refuse_old(e);
	if (type[0] && said != KIND_INDEX && said != KIND_MANIFEST)
		return err_set(e, ERR_UNSUPPORTED, "a document of type '%s' is not an image", type);
	if (has_list && has_layers)
		return err_set(e, ERR_INVALID, "it is an index and a manifest at once");
	if ((said == KIND_INDEX && has_layers) || (said == KIND_MANIFEST && has_list))
		return err_set(e, ERR_INVALID, "it has the type '%s' but the fields of another",
			       type);
	if (said == KIND_UNKNOWN && has_list)
		said = KIND_INDEX;
	if (said == KIND_UNKNOWN && has_layers)
		said = KIND_MANIFEST;
	*ret = said;
	return 0;
}

static int is_index(const char *text, size_t len, const char *type, bool *ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	enum kind kind = KIND_UNKNOWN;

	if (jsonfields_parse(text, len, MANIFEST_MAX_BYTES, &root, e) < 0 ||
	    find_kind(root, &kind, e) < 0)
		return -1;
	if (kind == KIND_UNKNOWN)
		kind = kind_of(type);
	if (kind == KIND_OLD)
		return refuse_old(e);
	*ret = kind == KIND_INDEX;
	return 0;
}

/* Every error may quote text of the document. */
static int finish(int r, struct err *e)
{
	if (r < 0)
		err_sanitize(e);
	return r;
}

int manifest_is_index(const char *text, size_t len, const char *type, bool *ret, struct err *e)
{
	return finish(is_index(text, len, type, ret, e), e);
}

/* Parses a document of the expected type and checks its version. */
static int parse_as(const char *text, size_t len, enum kind expected, json_t **ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	enum kind kind = KIND_UNKNOWN;
	uint64_t version = 0;

	if (jsonfields_parse(text, len, MANIFEST_MAX_BYTES, &root, e) < 0 ||
	    find_kind(root, &kind, e) < 0 ||
	    jsonfields_get_number(root, "schemaVersion", INT64_MAX, &version, e) < 0)
		return -1;
	if (version != SCHEMA_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "'schemaVersion' is not %u", SCHEMA_VERSION);
	if (kind != KIND_UNKNOWN && kind != expected)
		return err_set(e, ERR_INVALID, "it is %s",
			       kind == KIND_INDEX ? "an index, not a manifest"
						  : "a manifest, not an index");
	*ret = take_ptr(root);
	return 0;
}

/* ---- a manifest ---- */

static int read_blob(const json_t *object, uint64_t size_max, struct manifest_blob *ret,
		     struct err *e)
{
	const char *type = NULL, *digest = NULL;
	uint64_t size = 0;

	if (!json_is_object(object))
		return err_set(e, ERR_INVALID, "not an object");
	if (jsonfields_get_text(object, "mediaType", MANIFEST_TYPE_MAX_BYTES - 1, 0, &type, e) <
		    0 ||
	    jsonfields_get_text(object, "digest", DIGEST_TEXT_MAX_BYTES, 0, &digest, e) < 0 ||
	    jsonfields_get_number(object, "size", size_max, &size, e) < 0)
		return -1;
	if (!reference_is_digest(digest))
		return err_set(e, ERR_INVALID, "'digest' is not of sha256: '%s'", digest);
	(void)snprintf(ret->type, sizeof(ret->type), "%s", type);
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
	ret->size_bytes = size;
	return 0;
}

static int read_config(const json_t *root, struct manifest_blob *ret, struct err *e)
{
	const json_t *object = NULL;

	if (jsonfields_get_object(root, "config", 0, &object, e) < 0)
		return -1;
	if (read_blob(object, MANIFEST_CONFIG_MAX_BYTES, ret, e) < 0)
		return err_wrap(e, "'config'");
	if (kind_of(ret->type) != KIND_CONFIG)
		return err_set(e, ERR_UNSUPPORTED,
			       "it is an artifact, not an image: its config is '%s'", ret->type);
	return 0;
}

static int read_layer(const json_t *object, struct manifest_blob *ret, struct err *e)
{
	if (read_blob(object, MANIFEST_BLOB_MAX_BYTES, ret, e) < 0)
		return -1;
	switch (kind_of(ret->type)) {
	case KIND_LAYER:
		return 0;
	case KIND_FOREIGN_LAYER:
		return err_set(e, ERR_UNSUPPORTED,
			       "'%s' is a layer that registries may not distribute", ret->type);
	default:
		return err_set(e, ERR_UNSUPPORTED, "a layer of type '%s' cannot be read",
			       ret->type);
	}
}

static int read_layers(const json_t *root, struct manifest *m, struct err *e)
{
	const json_t *list = NULL;

	if (jsonfields_get_list(root, "layers", MANIFEST_LAYERS_MAX, 0, &list, e) < 0)
		return -1;
	if (json_array_size(list) == 0)
		return err_set(e, ERR_INVALID, "the image has no layers");
	for (unsigned i = 0; i < json_array_size(list); i++) {
		if (read_layer(json_array_get(list, i), &m->layers[i], e) < 0)
			return err_wrap(e, "'layers' %u", i);
		m->layer_count++;
	}
	return 0;
}

int manifest_parse(const char *text, size_t len, struct manifest *ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	struct manifest m = { 0 };

	if (parse_as(text, len, KIND_MANIFEST, &root, e) < 0 ||
	    read_config(root, &m.config, e) < 0 || read_layers(root, &m, e) < 0)
		return finish(-1, e);
	*ret = m;
	return 0;
}

/* ---- an index ---- */

struct platform {
	const char *os, *architecture, *variant; /* "" when absent */
	bool is_known;                           /* the entry names a platform */
};

static int read_platform(const json_t *entry, struct platform *ret, struct err *e)
{
	const json_t *object = NULL;

	if (jsonfields_get_object(entry, "platform", JSONFIELDS_OPTIONAL, &object, e) < 0)
		return -1;
	ret->os = ret->architecture = ret->variant = "";
	ret->is_known = object;
	if (!object)
		return 0;
	if (jsonfields_get_text(object, "os", PLATFORM_WORD_MAX_BYTES, 0, &ret->os, e) < 0 ||
	    jsonfields_get_text(object, "architecture", PLATFORM_WORD_MAX_BYTES, 0,
				&ret->architecture, e) < 0 ||
	    jsonfields_get_text(object, "variant", PLATFORM_WORD_MAX_BYTES, JSONFIELDS_OPTIONAL,
				&ret->variant, e) < 0)
		return -1;
	return 0;
}

/*
 * Ranks of entries for one architecture: the highest wins, 0 is never used. arm64 machines are v8.
 * For amd64 no variant means any machine; v2 and v3 require more, and are better than nothing.
 */
static const struct {
	const char *architecture, *variant;
	unsigned rank;
} variants[] = {
	{ "arm64", "v8", 5 },
	{ "amd64", "v1", 4 },
	{ "amd64", "v2", 3 },
	{ "amd64", "v3", 2 },
};
#define RANK_NO_VARIANT 4u
#define RANK_NO_PLATFORM 1u /* the image's config decides */

static unsigned rank(const struct platform *p, const char *architecture)
{
	if (!p->is_known)
		return RANK_NO_PLATFORM;
	if (strcmp(p->os, "linux") != 0 || strcmp(p->architecture, architecture) != 0)
		return 0;
	if (!p->variant[0])
		return RANK_NO_VARIANT;
	for (size_t i = 0; i < COUNT_OF(variants); i++)
		if (strcmp(variants[i].architecture, architecture) == 0 &&
		    strcmp(variants[i].variant, p->variant) == 0)
			return variants[i].rank;
	return 0;
}

/* Notes a platform of the index for the error message: "linux/arm64/v8". */
static void note_platform(struct buf *seen, const struct platform *p)
{
	if (!p->is_known || strcmp(p->os, "unknown") == 0)
		return;
	buf_addf(seen, "%s%s/%s%s%s", seen->len ? ", " : "", p->os, p->architecture,
		 p->variant[0] ? "/" : "", p->variant);
}

/* Returns the rank of an entry that may be an image for us; 0 for others. */
static int weigh_entry(const json_t *entry, const char *architecture, struct buf *seen,
		       struct manifest_blob *ret, struct err *e)
{
	const char *artifact = NULL;
	struct platform p = { 0 };

	if (read_blob(entry, MANIFEST_MAX_BYTES, ret, e) < 0 || read_platform(entry, &p, e) < 0 ||
	    jsonfields_get_text(entry, "artifactType", MANIFEST_TYPE_MAX_BYTES, JSONFIELDS_OPTIONAL,
				&artifact, e) < 0)
		return -1;
	if (artifact[0] || kind_of(ret->type) != KIND_MANIFEST)
		return 0;
	note_platform(seen, &p);
	return (int)rank(&p, architecture);
}

static int choose(const json_t *root, const char *architecture, struct manifest_blob *ret,
		  struct err *e)
{
	const json_t *list = NULL;
	struct manifest_blob blob;
	cleanup_buf struct buf seen;
	int best = 0;

	buf_init(&seen, PLATFORMS_SHOWN_MAX_BYTES);
	if (jsonfields_get_list(root, "manifests", MANIFEST_INDEX_MAX, 0, &list, e) < 0)
		return -1;
	for (unsigned i = 0; i < json_array_size(list); i++) {
		int r = weigh_entry(json_array_get(list, i), architecture, &seen, &blob, e);

		if (r < 0)
			return err_wrap(e, "'manifests' %u", i);
		if (r > best) {
			best = r;
			*ret = blob;
		}
	}
	if (best == 0)
		return err_set(e, ERR_NOT_FOUND,
			       "the image is not made for linux/%s, only for: %s%s", architecture,
			       seen.len ? buf_text(&seen) : "nothing", seen.is_cut ? "..." : "");
	return 0;
}

int manifest_choose(const char *text, size_t len, const char *architecture,
		    struct manifest_blob *ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	struct manifest_blob blob = { 0 };

	if (parse_as(text, len, KIND_INDEX, &root, e) < 0 ||
	    choose(root, architecture, &blob, e) < 0)
		return finish(-1, e);
	*ret = blob;
	return 0;
}
