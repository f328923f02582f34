/* describe - writes JSON about images; see describe.h. */
#include "image/describe.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/config.h"
#include "image/manifest.h"

#include <jansson.h>

static json_t *describe_layers(const struct manifest *m)
{
	json_t *layers = json_array();

	for (unsigned i = 0; i < m->layer_count; i++)
		(void)json_array_append_new(layers, json_pack("{s:s, s:I, s:s}", "digest",
							      m->layers[i].digest, "size",
							      (json_int_t)m->layers[i].size_bytes,
							      "media_type", m->layers[i].type));
	return layers;
}

/* Adds the image's config unchanged, so that nothing is lost. */
static int add_config(const struct store *s, const char *digest, json_t *object, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	json_t *config;

	if (store_read_blob(s, digest, CONFIG_MAX_BYTES, &text, &len, e) < 0)
		return -1;
	config = json_loadb(text, len, 0, NULL);
	(void)json_object_set_new(object, "config", config ? config : json_null());
	return 0;
}

static int describe(const struct store *s, const struct reference *ref, json_t *list, struct err *e)
{
	CLEANUP(record_done) struct record r = { 0 };
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	char full[REFERENCE_MAX_BYTES + 1];
	cleanup_free char *text = NULL;
	cleanup_fd int lock_fd = -1;
	size_t len = 0;
	json_t *object;

	if (store_get_record(s, ref, &r, &lock_fd, e) < 0 ||
	    store_read_blob(s, r.digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0 ||
	    manifest_parse(text, len, m, e) < 0)
		return -1;
	reference_format(ref, full);
	object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:o}", "reference", full, "digest",
			   r.digest, "config_digest", r.config, "created", r.created, "size",
			   (json_int_t)r.size_bytes, "added", (json_int_t)r.added_s, "owners",
			   r.owners, "layers", describe_layers(m));
	if (!object)
		return err_set(e, ERR_CORRUPT, "the record of '%s' is not text", full);
	(void)json_array_append_new(list, object);
	return add_config(s, r.config, object, e);
}

int describe_images(const struct store *s, const struct reference *refs, unsigned count,
		    struct buf *out, struct err *e)
{
	json_t *list = json_array();
	char *text = NULL;
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++)
		r = describe(s, &refs[i], list, e);
	if (r == 0) {
		text = json_dumps(list, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		buf_addf(out, "%s\n", text ? text : "[]");
	}
	free(text);
	json_decref(list);
	return r;
}
