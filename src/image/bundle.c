/*
 * bundle - loads images from files; see bundle.h.
 *
 * Loading ends like a pull: with blobs in the store and a manifest, from which image/install makes
 * the image. Older "docker save" archives have no manifest in the registry's format, so one is
 * generated from their files. OCI layouts and the directories of skopeo's dir: have manifests and
 * blobs, and differ only in file names.
 */
#include "image/bundle.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/install.h"
#include "image/manifest.h"
#include "image/imagesource.h"
#include "image/layerworker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define INDEX_MAX_BYTES (4u << 20)
#define TYPE_CONFIG "application/vnd.oci.image.config.v1+json"
#define TYPE_LAYER "application/vnd.oci.image.layer.v1.tar"

static void json_freep(json_t **j)
{
	json_decref(*j);
}

static int parse_json(const char *text, size_t len, const char *name, json_t **ret, struct err *e)
{
	json_error_t where;

	*ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	if (!*ret)
		return err_set(e, ERR_INVALID, "'%s', line %d: %s", name, where.line, where.text);
	return 0;
}

/* An archive can claim any name: reports a name that referred to another image before. */
static void tell_if_moved(const struct store *s, const char *manifest_digest,
			  const struct reference *ref, struct progress *p)
{
	CLEANUP(record_done) struct record r = { 0 };
	char name[REFERENCE_MAX_BYTES + 1];
	cleanup_fd int lock_fd = -1;
	struct err ignored;

	if (store_get_record(s, ref, &r, &lock_fd, &ignored) < 0 ||
	    strcmp(r.digest, manifest_digest) == 0)
		return;
	reference_format_short(ref, name);
	progress_say(p, "%s was another image before (%.19s)", name, r.digest);
}

/* All blobs are in the store: unpacks them, writes the record and the name. */
static int finish(const struct store *s, const char *manifest_digest, const struct reference *ref,
		  struct progress *p, struct err *e)
{
	CLEANUP(install_freep) struct install *install = NULL;
	char id[RECORD_ID_BYTES + 1];
	int r;

	r = install_open(s, p, manifest_digest, false, &install, e);
	if (r == 0)
		r = install_finish(install, id, e);
	progress_end(p);
	if (r < 0)
		return -1;
	tell_if_moved(s, manifest_digest, ref, p);
	return store_set_name(s, ref, id, e);
}

static int add_name(struct bundle_names *names, const struct reference *ref, struct err *e)
{
	if (names->count == BUNDLE_IMAGES_MAX)
		return err_set(e, ERR_LIMIT, "more than %u images", BUNDLE_IMAGES_MAX);
	names->list[names->count++] = *ref;
	return 0;
}

/* A name with a digest is a claim about the bytes, so the digest is checked. */
static int check_pin(const struct reference *ref, const char *digest, struct err *e)
{
	char name[REFERENCE_MAX_BYTES + 1];

	if (!ref->digest[0] || strcmp(ref->digest, digest) == 0)
		return 0;
	reference_format_short(ref, name);
	return err_set(
		e, ERR_INVALID,
		"'%s' names another digest than the image has there, %s (give it a name with "
		"a tag: --name)",
		name, digest);
}

/* ---- blobs with manifests ---- */

/* The name of a blob's file: the digest between these texts. */
struct file_name {
	const char *before, *after;
};
static const struct file_name layout_blob = { "blobs/sha256/", "" };
static const struct file_name dir_blob = { "", "" };
static const struct file_name dir_manifest = { "", ".manifest.json" };

static int adopt_blob(const struct imagesource *src, const struct file_name *called,
		      const struct manifest_blob *blob, struct err *e)
{
	char digest[REFERENCE_DIGEST_MAX_BYTES], name[REFERENCE_DIGEST_MAX_BYTES + 32];
	uint64_t size = 0;

	memcpy(digest, blob->digest, sizeof(digest));
	(void)snprintf(name, sizeof(name), "%s%s%s", called->before, digest + sizeof("sha256:") - 1,
		       called->after);
	if (imagesource_adopt(src, name, digest, &size, e) < 0)
		return -1;
	if (size != blob->size_bytes)
		return err_set(e, ERR_INVALID,
			       "'%s' has %" PRIu64 " bytes, and should have %" PRIu64, name, size,
			       blob->size_bytes);
	return 0;
}

/* Adds the blobs that the manifest names. The manifest itself is already in the store. */
static int adopt_image(const struct store *s, const struct imagesource *src,
		       const struct file_name *called, const char *manifest_digest, struct err *e)
{
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (store_read_blob(s, manifest_digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0)
		return -1;
	if (manifest_parse(text, len, m, e) < 0)
		return err_wrap(e, "manifest %s", manifest_digest);
	if (adopt_blob(src, called, &m->config, e) < 0)
		return err_wrap(e, "config");
	for (unsigned i = 0; i < m->layer_count; i++)
		if (adopt_blob(src, called, &m->layers[i], e) < 0)
			return err_wrap(e, "layer %u", i + 1);
	return 0;
}

/* `blob` is in the store. If it is an index (one image for several platforms), it is replaced by
 * the manifest for this platform. */
static int choose_platform(const struct store *s, const struct imagesource *src,
			   const struct file_name *called, struct manifest_blob *blob,
			   struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	bool is_index = false;

	if (store_read_blob(s, blob->digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0)
		return -1;
	if (manifest_is_index(text, len, blob->type, &is_index, e) < 0)
		return err_wrap(e, "manifest %s", blob->digest);
	if (!is_index)
		return 0;
	if (manifest_choose(text, len, manifest_architecture(), blob, e) < 0)
		return -1;
	return adopt_blob(src, called, blob, e);
}

static int refuse_nameless(struct err *e)
{
	return err_set(e, ERR_INVALID, "the image has no name there (give it one with --name)");
}

/* ---- OCI layouts ---- */

static const char *get_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* "app" is a name; "latest", "3.20" and "v2" are only tags. */
static bool is_tag(const char *name)
{
	size_t at = name[0] == 'v' ? 1 : 0;

	return !strpbrk(name, "/:@") &&
	       (strcmp(name, "latest") == 0 || (name[at] >= '0' && name[at] <= '9'));
}

/* The image's name in the layout: containerd's annotation is a full name, OCI's may be a tag. */
static int name_layout(const json_t *entry, const struct reference *as, struct reference *ret,
		       struct err *e)
{
	const json_t *annotations = json_object_get(entry, "annotations");
	const char *name = get_text(annotations, "io.containerd.image.name");

	if (as) {
		*ret = *as;
		return 0;
	}
	if (!name[0])
		name = get_text(annotations, "org.opencontainers.image.ref.name");
	if (!name[0])
		return refuse_nameless(e);
	if (is_tag(name))
		return err_set(e, ERR_INVALID,
			       "there it is called only '%s' (give it a name with --name)", name);
	if (reference_parse(name, ret, e) < 0)
		return err_wrap(e, "the name of the image there cannot be used (--name gives it "
				   "another)");
	return 0;
}

static int load_layout(const struct store *s, const struct imagesource *src,
		       const struct reference *as, struct progress *p, struct bundle_names *ret,
		       struct err *e)
{
	CLEANUP(json_freep) json_t *index = NULL;
	cleanup_free char *text = NULL;
	const json_t *manifests;
	size_t len = 0, i;
	json_t *entry;

	if (imagesource_read(src, "index.json", INDEX_MAX_BYTES, &text, &len, e) < 0 ||
	    parse_json(text, len, "index.json", &index, e) < 0)
		return -1;
	manifests = json_object_get(index, "manifests");
	if (json_array_size(manifests) == 0)
		return err_set(e, ERR_INVALID, "'index.json' names no image");
	if (as && json_array_size(manifests) > 1)
		return err_set(e, ERR_INVALID, "there are %zu images, --name is for one",
			       json_array_size(manifests));
	json_array_foreach((json_t *)manifests, i, entry)
	{
		struct manifest_blob blob = { 0 };
		struct reference ref;

		(void)snprintf(blob.digest, sizeof(blob.digest), "%s", get_text(entry, "digest"));
		(void)snprintf(blob.type, sizeof(blob.type), "%s", get_text(entry, "mediaType"));
		blob.size_bytes = (uint64_t)json_integer_value(json_object_get(entry, "size"));
		if (!reference_is_digest(blob.digest))
			return err_set(e, ERR_INVALID, "'index.json' names no digest");
		if (name_layout(entry, as, &ref, e) < 0 || check_pin(&ref, blob.digest, e) < 0 ||
		    add_name(ret, &ref, e) < 0 || adopt_blob(src, &layout_blob, &blob, e) < 0 ||
		    choose_platform(s, src, &layout_blob, &blob, e) < 0 ||
		    adopt_image(s, src, &layout_blob, blob.digest, e) < 0 ||
		    finish(s, blob.digest, &ref, p, e) < 0)
			return -1;
	}
	return 0;
}

/* Does the layout have the full name of each image? */
static bool has_full_names(const struct imagesource *src)
{
	CLEANUP(json_freep) json_t *index = NULL;
	cleanup_free char *text = NULL;
	struct err ignored;
	size_t len = 0, i;
	json_t *entry;

	if (imagesource_read(src, "index.json", INDEX_MAX_BYTES, &text, &len, &ignored) < 0 ||
	    parse_json(text, len, "index.json", &index, &ignored) < 0)
		return false;
	json_array_foreach(json_object_get(index, "manifests"), i, entry)
	{
		const json_t *annotations = json_object_get(entry, "annotations");

		if (!get_text(annotations, "io.containerd.image.name")[0])
			return false;
	}
	return json_array_size(json_object_get(index, "manifests")) > 0;
}

/* ---- skopeo's dir: ---- */

/* Its manifest.json is the image's manifest, or the index, in the registry's format. */
static bool has_plain_manifest(const struct imagesource *src)
{
	CLEANUP(json_freep) json_t *manifest = NULL;
	cleanup_free char *text = NULL;
	struct err ignored;
	size_t len = 0;

	return imagesource_read(src, "manifest.json", INDEX_MAX_BYTES, &text, &len, &ignored) ==
		       0 &&
	       parse_json(text, len, "manifest.json", &manifest, &ignored) == 0 &&
	       json_is_object(manifest);
}

static int load_dir(const struct store *s, const struct imagesource *src,
		    const struct reference *as, struct progress *p, struct bundle_names *ret,
		    struct err *e)
{
	struct manifest_blob blob = { 0 };

	if (!as)
		return refuse_nameless(e);
	if (imagesource_adopt(src, "manifest.json", blob.digest, &blob.size_bytes, e) < 0 ||
	    check_pin(as, blob.digest, e) < 0 || add_name(ret, as, e) < 0 ||
	    choose_platform(s, src, &dir_manifest, &blob, e) < 0 ||
	    adopt_image(s, src, &dir_blob, blob.digest, e) < 0)
		return -1;
	return finish(s, blob.digest, as, p, e);
}

/* ---- older "docker save" ---- */

static const char *layer_type(const struct store *s, const char *digest)
{
	unsigned char magic[4] = { 0 };
	cleanup_fd int fd = -1;
	struct err ignored;

	if (store_open_blob(s, digest, &fd, &ignored) < 0 ||
	    read(fd, magic, sizeof(magic)) != (ssize_t)sizeof(magic))
		return TYPE_LAYER;
	if (magic[0] == 0x1f && magic[1] == 0x8b)
		return TYPE_LAYER "+gzip";
	if (memcmp(magic, "\x28\xb5\x2f\xfd", sizeof(magic)) == 0)
		return TYPE_LAYER "+zstd";
	return TYPE_LAYER;
}

static void describe(struct json *j, const char *key, const char *type, const char *digest,
		     uint64_t size)
{
	json_open_object(j, key);
	json_add_text(j, "mediaType", type);
	json_add_text(j, "digest", digest);
	json_add_number(j, "size", (int64_t)size);
	json_close_object(j);
}

/* Starts a manifest; the caller adds the layers. */
static void open_manifest(struct json *j, struct buf *out, const char *config, uint64_t config_size)
{
	json_init(j, out);
	json_open_object(j, NULL);
	json_add_number(j, "schemaVersion", 2);
	json_add_text(j, "mediaType", MANIFEST_TYPE_OCI);
	describe(j, "config", TYPE_CONFIG, config, config_size);
	json_open_array(j, "layers");
}

static int close_manifest(const struct store *s, struct json *j, struct buf *out,
			  char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	json_close_array(j);
	json_close_object(j);
	if (out->is_cut)
		return err_set(e, ERR_LIMIT, "the image has too many layers");
	return store_add_blob(s, out->bytes, out->len, ret_digest, e);
}

static int write_manifest(const struct store *s, const struct imagesource *src, const json_t *entry,
			  char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	const char *config_name = get_text(entry, "Config");
	char config[REFERENCE_DIGEST_MAX_BYTES] = "";
	json_t *layers = json_object_get(entry, "Layers");
	cleanup_buf struct buf out;
	uint64_t size = 0;
	struct json j;
	json_t *layer;
	size_t i;

	buf_init(&out, MANIFEST_MAX_BYTES);
	if (!config_name[0] || !json_is_array(layers))
		return err_set(e, ERR_INVALID, "'manifest.json' is not what docker save writes");
	if (json_array_size(layers) > MANIFEST_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "the image has %zu layers, more than %u",
			       json_array_size(layers), MANIFEST_LAYERS_MAX);
	if (imagesource_adopt(src, config_name, config, &size, e) < 0)
		return err_wrap(e, "config");
	open_manifest(&j, &out, config, size);
	json_array_foreach(layers, i, layer)
	{
		char digest[REFERENCE_DIGEST_MAX_BYTES] = "";
		const char *name = json_string_value(layer);

		if (!name)
			return err_set(e, ERR_INVALID, "'manifest.json' names no file as layer %zu",
				       i + 1);
		if (imagesource_adopt(src, name, digest, &size, e) < 0)
			return err_wrap(e, "layer %zu", i + 1);
		describe(&j, NULL, layer_type(s, digest), digest, size);
	}
	return close_manifest(s, &j, &out, ret_digest, e);
}

static int load_docker_image(const struct store *s, const struct imagesource *src,
			     const json_t *entry, const struct reference *as, struct progress *p,
			     struct bundle_names *ret, struct err *e)
{
	json_t *tags = json_object_get(entry, "RepoTags");
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	struct reference ref;
	json_t *tag;
	size_t i;

	if (write_manifest(s, src, entry, digest, e) < 0)
		return -1;
	if (as)
		return check_pin(as, digest, e) < 0 || add_name(ret, as, e) < 0
			       ? -1
			       : finish(s, digest, as, p, e);
	if (json_array_size(tags) == 0)
		return refuse_nameless(e);
	json_array_foreach(tags, i, tag)
	{
		const char *name = json_string_value(tag);

		if (reference_parse(name ? name : "", &ref, e) < 0 ||
		    check_pin(&ref, digest, e) < 0 || add_name(ret, &ref, e) < 0 ||
		    finish(s, digest, &ref, p, e) < 0)
			return -1;
	}
	return 0;
}

static int load_docker(const struct store *s, const struct imagesource *src,
		       const struct reference *as, struct progress *p, struct bundle_names *ret,
		       struct err *e)
{
	CLEANUP(json_freep) json_t *list = NULL;
	cleanup_free char *text = NULL;
	size_t len = 0, i;
	json_t *entry;

	if (imagesource_read(src, "manifest.json", INDEX_MAX_BYTES, &text, &len, e) < 0 ||
	    parse_json(text, len, "manifest.json", &list, e) < 0)
		return -1;
	if (json_array_size(list) == 0)
		return err_set(e, ERR_INVALID, "'manifest.json' names no image");
	if (as && json_array_size(list) > 1)
		return err_set(e, ERR_INVALID, "there are %zu images, --name is for one",
			       json_array_size(list));
	json_array_foreach(list, i, entry) if (load_docker_image(s, src, entry, as, p, ret, e) <
					       0) return -1;
	return 0;
}

int bundle_load(const struct store *s, const char *path, const struct reference *as,
		struct progress *p, struct bundle_names *ret, struct err *e)
{
	CLEANUP(imagesource_freep) struct imagesource *src = NULL;

	ret->count = 0;
	if (imagesource_open(s, path, &src, e) < 0)
		return -1;
	if (has_plain_manifest(src))
		return load_dir(s, src, as, p, ret, e);
	/* newer Dockers write both; prefer the layout's original manifest if it has the names */
	if (imagesource_has(src, "manifest.json") && !(as || has_full_names(src)))
		return load_docker(s, src, as, p, ret, e);
	if (imagesource_has(src, "index.json"))
		return load_layout(s, src, as, p, ret, e);
	if (imagesource_has(src, "manifest.json"))
		return load_docker(s, src, as, p, ret, e);
	return err_set(
		e, ERR_INVALID,
		"'%s' holds no image: neither manifest.json nor index.json is in it (a tar of "
		"a root directory is for image import)",
		path);
}

/* ---- root trees ---- */

static int run_pack(const struct store *s, int dir_fd, int blob_fd, struct err *e)
{
	const struct layerworker_options o = {
		.operation = "pack",
		.dir_fd = dir_fd,
		.archive_fd = blob_fd,
		.userns_fd = s->userns_fd,
		.lock_fds = { s->lock_fd, -1 },
	};

	return layerworker_run(&o, e);
}

/* The digest of a tar's uncompressed content. */
static int run_measure(const struct store *s, int archive_fd,
		       char ret_diff_id[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	CLEANUP(layerworker_done) struct layerworker w;
	const struct layerworker_options o = {
		.operation = "measure",
		.dir_fd = s->making_fd,
		.archive_fd = archive_fd,
		.userns_fd = s->userns_fd,
		.lock_fds = { s->lock_fd, -1 },
	};

	layerworker_init(&w);
	if (layerworker_start(&o, &w, e) < 0 || layerworker_wait(&w, e) < 0)
		return -1;
	if (w.output_len != REFERENCE_DIGEST_MAX_BYTES)
		return err_set(e, ERR_SYSTEM,
			       "the process that reads the archive broke its protocol");
	memcpy(ret_diff_id, w.output, REFERENCE_DIGEST_MAX_BYTES - 1);
	ret_diff_id[REFERENCE_DIGEST_MAX_BYTES - 1] = '\0';
	if (!reference_is_digest(ret_diff_id))
		return err_set(e, ERR_SYSTEM,
			       "the process that reads the archive broke its protocol");
	return 0;
}

/* Creates an unnamed file in the store. */
static int open_scratch(const struct store *s, int *ret_fd, struct err *e)
{
	int fd = openat(s->partial_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "create a file in the image store");
	*ret_fd = fd;
	return 0;
}

static int spool(int from_fd, int to_fd, struct err *e)
{
	int r = file_copy(from_fd, to_fd, MANIFEST_BLOB_MAX_BYTES);

	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT, "the archive is larger than %llu GiB",
			       MANIFEST_BLOB_MAX_BYTES >> 30);
	if (r < 0)
		return err_sys(e, -r, "copy the archive to the image store");
	return 0;
}

/* Creates the layer as an unnamed file of the store, and the digest of its content. */
static int make_layer(const struct store *s, const char *path, int *ret_fd,
		      char ret_diff_id[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	cleanup_fd int from_fd = -1, fd = -1;
	struct stat st;
	int r;

	if (imagesource_open_path(path, &from_fd, e) < 0)
		return -1;
	if (fstat(from_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	if (open_scratch(s, &fd, e) < 0)
		return -1;
	r = S_ISDIR(st.st_mode) ? run_pack(s, from_fd, fd, e) : spool(from_fd, fd, e);
	if (r < 0)
		return err_wrap(e, "'%s'", path);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "read '%s' again", path);
	if (run_measure(s, fd, ret_diff_id, e) < 0)
		return err_wrap(e, "'%s'", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Makes the unnamed file a blob. */
static int add_scratch(const struct store *s, int fd, char ret_digest[REFERENCE_DIGEST_MAX_BYTES],
		       uint64_t *ret_size, struct err *e)
{
	cleanup_fd int lock_fd = -1;
	char link[32], name[128];
	struct stat st;
	int r = digest_of_file(fd, ret_digest);

	if (r < 0 || fstat(fd, &st) < 0)
		return err_sys(e, r < 0 ? -r : errno, "read the new layer");
	*ret_size = (uint64_t)st.st_size;
	if (store_begin_blob(s, ret_digest, STORE_WAIT, &lock_fd, e) < 0)
		return -1;
	if (lock_fd < 0)
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	(void)snprintf(name, sizeof(name), "%s", ret_digest + sizeof("sha256:") - 1);
	if (linkat(AT_FDCWD, link, s->blobs_fd, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(e, errno, "put the new layer into the store");
	(void)unlinkat(s->partial_fd, name, 0); /* our lock */
	return 0;
}

static int add_config(const struct store *s, const char *diff_id,
		      char ret_digest[REFERENCE_DIGEST_MAX_BYTES], uint64_t *ret_size,
		      struct err *e)
{
	cleanup_buf struct buf out;
	char created[32];
	struct tm tm;
	time_t now = time(NULL);
	struct json j;

	(void)strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	buf_init(&out, CONFIG_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_text(&j, "created", created);
	json_add_text(&j, "architecture", manifest_architecture());
	json_add_text(&j, "os", "linux");
	json_open_object(&j, "config");
	json_close_object(&j);
	json_open_object(&j, "rootfs");
	json_add_text(&j, "type", "layers");
	json_open_array(&j, "diff_ids");
	json_add_text(&j, NULL, diff_id);
	json_close_array(&j);
	json_close_object(&j);
	json_open_array(&j, "history"); /* other builders count its entries */
	json_open_object(&j, NULL);
	json_add_text(&j, "created", created);
	json_add_text(&j, "comment", "imported");
	json_close_object(&j);
	json_close_array(&j);
	json_close_object(&j);
	*ret_size = out.len;
	return store_add_blob(s, out.bytes, out.len, ret_digest, e);
}

int bundle_import(const struct store *s, const char *path, const struct reference *as,
		  struct progress *p, struct err *e)
{
	char diff_id[REFERENCE_DIGEST_MAX_BYTES], layer[REFERENCE_DIGEST_MAX_BYTES],
		config[REFERENCE_DIGEST_MAX_BYTES], manifest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t layer_size = 0, config_size = 0;
	cleanup_fd int fd = -1;
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, MANIFEST_MAX_BYTES);
	if (make_layer(s, path, &fd, diff_id, e) < 0 ||
	    add_scratch(s, fd, layer, &layer_size, e) < 0 ||
	    add_config(s, diff_id, config, &config_size, e) < 0)
		return -1;
	open_manifest(&j, &out, config, config_size);
	describe(&j, NULL, layer_type(s, layer), layer, layer_size);
	if (close_manifest(s, &j, &out, manifest, e) < 0 || check_pin(as, manifest, e) < 0)
		return -1;
	return finish(s, manifest, as, p, e);
}
