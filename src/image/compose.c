/*
 * compose - an image of layers in the store; see compose.h.
 *
 * Theory of operation. The base's config is read as JSON and changed, so that what we do not know
 * in it stays. Manifest, config and record are written in the order in which they name each other;
 * the name comes last.
 */
#include "image/compose.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/config.h"
#include "image/install.h"
#include "image/jsonfields.h"
#include "image/manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define COMMENT "agentkernel"

struct composing {
	const struct store *store;
	json_t *root, *config;      /* the image's config; its member "config" */
	json_t *layers;             /* of the manifest */
	json_t *diff_ids, *history; /* borrowed from root */
	struct record record;       /* without its layers, until the end */
	char names[MANIFEST_LAYERS_MAX][RECORD_ID_BYTES + 1]; /* added, lowest first */
	unsigned name_count;
	uint64_t size_bytes;
	char created[32];
};

static void composing_done(struct composing *c)
{
	json_decref(c->root);
	json_decref(c->layers);
	record_done(&c->record);
}

/* ---- the image below ---- */

static json_t *member(json_t *object, const char *key, json_t *made)
{
	json_t *there = json_object_get(object, key);

	if (there && json_typeof(there) == json_typeof(made)) {
		json_decref(made);
		return there;
	}
	json_object_set_new(object, key, made);
	return made;
}

static void describe_blob(json_t *list, const char *type, const char *digest, uint64_t size)
{
	json_t *blob = json_object();

	json_object_set_new(blob, "mediaType", json_string(type));
	json_object_set_new(blob, "digest", json_string(digest));
	json_object_set_new(blob, "size", json_integer((json_int_t)size));
	if (list)
		json_array_append_new(list, blob);
}

/* Docker's names of the same formats have no place in an OCI manifest. */
static const char *oci_type(const char *type)
{
	if (strstr(type, "zstd"))
		return LAYER_TYPE "+zstd";
	return strstr(type, "gzip") ? LAYER_TYPE "+gzip" : LAYER_TYPE;
}

static int read_base_layers(struct composing *c, const struct record *base, struct err *e)
{
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (store_read_blob(c->store, base->digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0 ||
	    manifest_parse(text, len, m, e) < 0)
		return -1;
	for (unsigned i = 0; i < m->layer_count; i++) {
		describe_blob(c->layers, oci_type(m->layers[i].type), m->layers[i].digest,
			      m->layers[i].size_bytes);
		c->size_bytes += m->layers[i].size_bytes;
	}
	return 0;
}

static int read_base(struct composing *c, const char *id, struct record *ret, struct err *e)
{
	cleanup_fd int lock_fd = -1;
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (record_open(c->store->records_fd, id, ret, &lock_fd, e) < 0 ||
	    read_base_layers(c, ret, e) < 0 ||
	    store_read_blob(c->store, ret->config, CONFIG_MAX_BYTES, &text, &len, e) < 0)
		return err_wrap(e, "the image that it is made from");
	json_decref(c->root);
	c->root = NULL;
	return jsonfields_parse(text, len, CONFIG_MAX_BYTES, &c->root, e);
}

static void prepare(struct composing *c)
{
	json_object_set_new(c->root, "architecture", json_string(manifest_architecture()));
	json_object_set_new(c->root, "os", json_string("linux"));
	c->config = member(c->root, "config", json_object());
	c->history = member(c->root, "history", json_array());
	c->diff_ids = member(member(c->root, "rootfs", json_object()), "diff_ids", json_array());
	json_object_set_new(json_object_get(c->root, "rootfs"), "type", json_string("layers"));
	/* of the container that a base was committed from */
	json_object_del(c->root, "container");
	json_object_del(c->root, "container_config");
	json_object_del(c->root, "id");
	json_object_del(c->root, "parent");
}

/* A base may tell nothing about some of its layers; whoever counts would take ours for them. */
static void complete_history(struct composing *c)
{
	size_t told = 0, index;
	json_t *entry;

	json_array_foreach(c->history, index, entry) told +=
		!json_is_true(json_object_get(entry, "empty_layer"));
	for (; told < json_array_size(c->layers); told++) {
		json_t *unknown = json_object();

		json_object_set_new(unknown, "comment", json_string("of the image below"));
		json_array_insert_new(c->history, 0, unknown);
	}
}

/* ---- one "key=value" ---- */

static int add_layer(struct composing *c, const char *value, struct err *e)
{
	char name[RECORD_ID_BYTES + 1], diff[REFERENCE_DIGEST_MAX_BYTES],
		digest[REFERENCE_DIGEST_MAX_BYTES];
	unsigned long long size;

	if (sscanf(value, "%26s %71s %71s %llu", name, diff, digest, &size) != 4 ||
	    !reference_is_digest(diff) || !reference_is_digest(digest))
		return err_set(e, ERR_INVALID, "a layer is described wrongly");
	if (json_array_size(c->layers) == MANIFEST_LAYERS_MAX ||
	    c->name_count == MANIFEST_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "the image has more than %u layers",
			       MANIFEST_LAYERS_MAX);
	if (!store_has_layer(c->store, name) || !store_has_blob(c->store, digest))
		return err_set(e, ERR_CORRUPT, "layer %s is not in the store any more", name);
	(void)snprintf(c->names[c->name_count++], sizeof(c->names[0]), "%s", name);
	describe_blob(c->layers, LAYER_TYPE, digest, size);
	json_array_append_new(c->diff_ids, json_string(diff));
	c->size_bytes += size;
	return 0;
}

static void add_history(struct composing *c, const char *text, bool is_empty)
{
	json_t *entry = json_object();

	json_object_set_new(entry, "created", json_string(c->created));
	json_object_set_new(entry, "created_by", json_string(text));
	json_object_set_new(entry, "comment", json_string(COMMENT));
	if (is_empty)
		json_object_set_new(entry, "empty_layer", json_true());
	json_array_append_new(c->history, entry);
}

static void add_label(struct composing *c, const char *text)
{
	const char *sign = strchr(text, '=');
	cleanup_free char *name = mem_dup_bytes(text, sign ? (size_t)(sign - text) : strlen(text));

	json_object_set_new(member(c->config, "Labels", json_object()), name,
			    json_string(sign ? sign + 1 : ""));
}

static void add_to_list(struct composing *c, const char *key, const char *text)
{
	json_array_append_new(member(c->config, key, json_array()), json_string(text));
}

static void add_health(struct composing *c, const char *key, const char *value)
{
	json_t *health = member(c->config, "Healthcheck", json_object());

	if (!key[0])
		json_array_append_new(member(health, "Test", json_array()), json_string(value));
	else
		json_object_set_new(health, key, json_integer(strtoll(value, NULL, 10)));
}

static void set_created(struct composing *c, const char *value)
{
	time_t seconds = (time_t)strtoll(value, NULL, 10);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		memset(&tm, 0, sizeof(tm));
	(void)strftime(c->created, sizeof(c->created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(c->root, "created", json_string(c->created));
}

static int apply(struct composing *c, const char *key, const char *value, struct err *e)
{
	static const struct {
		const char *key, *name;
	} texts[] = { { "user", "User" },
		      { "workdir", "WorkingDir" },
		      { "stopsignal", "StopSignal" } },
	  lists[] = { { "env", "Env" },
		      { "entrypoint", "Entrypoint" },
		      { "cmd", "Cmd" },
		      { "shell", "Shell" },
		      { "onbuild", "OnBuild" } },
	  healths[] = { { "health", "" },
			{ "health-interval", "Interval" },
			{ "health-timeout", "Timeout" },
			{ "health-start", "StartPeriod" },
			{ "health-start-interval", "StartInterval" },
			{ "health-retries", "Retries" } };

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (strcmp(texts[i].key, key) == 0)
			return json_object_set_new(c->config, texts[i].name, json_string(value)), 0;
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		if (strcmp(lists[i].key, key) == 0)
			return add_to_list(c, lists[i].name, value), 0;
		if (strcmp(key, "set") == 0 && strcmp(value, lists[i].key) == 0)
			return json_object_del(c->config, lists[i].name), 0;
	}
	if (strcmp(key, "set") == 0 && strcmp(value, "health") == 0)
		return json_object_del(c->config, "Healthcheck"), 0;
	for (size_t i = 0; i < COUNT_OF(healths); i++)
		if (strcmp(healths[i].key, key) == 0)
			return add_health(c, healths[i].name, value), 0;
	if (strcmp(key, "layer") == 0)
		return add_layer(c, value, e);
	if (strcmp(key, "label") == 0)
		return add_label(c, value), 0;
	if (strcmp(key, "history") == 0 || strcmp(key, "empty") == 0)
		return add_history(c, value, key[0] == 'e'), 0;
	if (strcmp(key, "created") == 0)
		return set_created(c, value), 0;
	if (strcmp(key, "author") == 0)
		return json_object_set_new(c->root, "author", json_string(value)), 0;
	if (strcmp(key, "port") == 0 || strcmp(key, "volume") == 0)
		return json_object_set_new(member(c->config,
						  key[0] == 'p' ? "ExposedPorts" : "Volumes",
						  json_object()),
					   value, json_object()),
		       0;
	return strcmp(key, "base") == 0
		       ? 0
		       : err_set(e, ERR_INVALID, "unknown key '%.40s' of an image", key);
}

typedef int row_fn(struct composing *c, const char *key, const char *value, struct err *e);

static int each_row(struct composing *c, const char *bytes, size_t len, row_fn *fn, struct err *e)
{
	for (const char *row = bytes; row < bytes + len; row += strlen(row) + 1) {
		const char *sign = strchr(row, '=');
		cleanup_free char *key = sign ? mem_dup_bytes(row, (size_t)(sign - row)) : NULL;

		if (!key)
			return err_set(e, ERR_INVALID, "an image is described wrongly");
		if (fn(c, key, sign + 1, e) < 0)
			return -1;
	}
	return 0;
}

static const char *find_base(const char *bytes, size_t len)
{
	for (const char *row = bytes; row < bytes + len; row += strlen(row) + 1)
		if (strncmp(row, "base=", 5) == 0)
			return row + 5;
	return NULL;
}

/* ---- documents ---- */

static int put_document(const struct store *s, json_t *document, size_t max,
			char ret_digest[REFERENCE_DIGEST_MAX_BYTES], size_t *ret_len, struct err *e)
{
	cleanup_free char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		return err_set(e, ERR_INVALID, "a text of the image is not valid UTF-8");
	*ret_len = strlen(text);
	if (*ret_len > max)
		return err_set(e, ERR_LIMIT, "the image's description is more than %zu bytes", max);
	return store_add_blob(s, text, *ret_len, ret_digest, e);
}

static int put_manifest(struct composing *c, const char *config, size_t config_len,
			char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	json_t *manifest = json_object(), *blob = json_object();
	size_t len = 0;
	int r;

	json_object_set_new(blob, "mediaType", json_string(CONFIG_TYPE));
	json_object_set_new(blob, "digest", json_string(config));
	json_object_set_new(blob, "size", json_integer((json_int_t)config_len));
	json_object_set_new(manifest, "schemaVersion", json_integer(2));
	json_object_set_new(manifest, "mediaType", json_string(MANIFEST_TYPE_OCI));
	json_object_set_new(manifest, "config", blob);
	json_object_set(manifest, "layers", c->layers);
	r = put_document(c->store, manifest, MANIFEST_MAX_BYTES, ret_digest, &len, e);
	json_decref(manifest);
	return r;
}

/* Reads back what was written as the config of any image is read, so that it has the same maxima.
 */
static int take_config(struct composing *c, const char *digest, struct err *e)
{
	CLEANUP(config_done) struct config config = { 0 };
	cleanup_free char *text = NULL;
	struct record *r = &c->record;
	size_t len = 0;

	if (store_read_blob(c->store, digest, CONFIG_MAX_BYTES, &text, &len, e) < 0 ||
	    config_parse(text, len, &config, e) < 0)
		return -1;
	r->config = mem_dup(digest);
	r->created = mem_dup(c->created);
	r->added_s = (uint64_t)time(NULL);
	r->size_bytes = c->size_bytes;
	r->user = mem_dup(config.user);
	r->workdir = mem_dup(config.workdir);
	r->env = take_ptr(config.env);
	r->entrypoint = take_ptr(config.entrypoint);
	r->cmd = take_ptr(config.cmd);
	r->onbuild = take_ptr(config.onbuild);
	r->shell = take_ptr(config.shell);
	return 0;
}

static int list_layers(struct composing *c, const struct record *base, struct err *e)
{
	struct record *r = &c->record;

	if (c->name_count + base->layer_count > RECORD_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "the image has more than %u layers",
			       RECORD_LAYERS_MAX);
	if (c->name_count + base->layer_count == 0)
		return err_set(e, ERR_INVALID,
			       "the image would be empty: nothing was copied or run");
	for (unsigned i = c->name_count; i > 0; i--)
		memcpy(r->layers[r->layer_count++], c->names[i - 1], RECORD_ID_BYTES + 1);
	for (unsigned i = 0; i < base->layer_count; i++)
		memcpy(r->layers[r->layer_count++], base->layers[i], RECORD_ID_BYTES + 1);
	return 0;
}

static int put_image(struct composing *c, const struct record *base, struct err *e)
{
	char config[REFERENCE_DIGEST_MAX_BYTES], manifest[REFERENCE_DIGEST_MAX_BYTES];
	size_t len = 0;

	if (json_array_size(c->layers) > MANIFEST_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "the image has more than %u layers",
			       MANIFEST_LAYERS_MAX);
	if (list_layers(c, base, e) < 0 ||
	    put_document(c->store, c->root, CONFIG_MAX_BYTES, config, &len, e) < 0 ||
	    take_config(c, config, e) < 0 || put_manifest(c, config, len, manifest, e) < 0)
		return -1;
	c->record.digest = mem_dup(manifest);
	install_read_accounts(c->store, &c->record);
	return store_put_record(c->store, &c->record, e);
}

int compose_image(const struct store *s, const char *bytes, size_t len, const struct reference *ref,
		  char ret_digest[REFERENCE_DIGEST_MAX_BYTES], char ret_id[RECORD_ID_BYTES + 1],
		  struct err *e)
{
	CLEANUP(cleanup_freep) struct record *base = mem_alloc(sizeof(*base));
	struct composing *c = mem_alloc(sizeof(*c));
	const char *base_id = find_base(bytes, len);
	int r = 0;

	c->store = s;
	c->root = json_object();
	c->layers = json_array();
	if (len == 0 || bytes[len - 1] != '\0')
		r = err_set(e, ERR_INVALID, "an image is described wrongly");
	if (r == 0 && base_id)
		r = read_base(c, base_id, base, e);
	if (r == 0) {
		prepare(c);
		complete_history(c);
		r = each_row(c, bytes, len, apply, e);
	}
	if (r == 0)
		r = put_image(c, base, e);
	if (r == 0 && ref)
		r = store_set_name(s, ref, c->record.id, e);
	if (r == 0) {
		(void)snprintf(ret_digest, REFERENCE_DIGEST_MAX_BYTES, "%s", c->record.digest);
		memcpy(ret_id, c->record.id, RECORD_ID_BYTES + 1);
	}
	record_done(base);
	composing_done(c);
	free(c);
	return r;
}
