/*
 * fuzz_manifest - documents of a registry: index and manifest.
 *
 * An accepted document has only checked digests, and sizes and counts within their maxima; no
 * document is accepted both as an index and as a manifest.
 */
#include "fuzz.h"

#include "image/manifest.h"

#include <string.h>

static void check_blob(const struct manifest_blob *b, uint64_t size_max)
{
	FUZZ_CHECK(reference_is_digest(b->digest));
	FUZZ_CHECK(b->size_bytes <= size_max);
	FUZZ_CHECK(memchr(b->type, '\0', sizeof(b->type)) && b->type[0]);
}

static void check_refusal(const struct err *e)
{
	FUZZ_CHECK(e->code != ERR_NONE && e->msg[0]);
	for (const char *p = e->msg; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct manifest_blob chosen = { 0 };
	struct err e = { 0 };
	bool is_index = false;
	struct manifest m;
	int as_manifest, as_index;

	as_manifest = manifest_parse(text, size, &m, &e);
	if (as_manifest == 0) {
		FUZZ_CHECK(m.layer_count > 0 && m.layer_count <= MANIFEST_LAYERS_MAX);
		check_blob(&m.config, MANIFEST_CONFIG_MAX_BYTES);
		for (unsigned i = 0; i < m.layer_count; i++)
			check_blob(&m.layers[i], MANIFEST_BLOB_MAX_BYTES);
	} else {
		check_refusal(&e);
	}
	as_index = manifest_choose(text, size, "amd64", &chosen, &e);
	if (as_index == 0)
		check_blob(&chosen, MANIFEST_MAX_BYTES);
	else
		check_refusal(&e);
	FUZZ_CHECK(as_manifest < 0 || as_index < 0);
	if (manifest_is_index(text, size, "", &is_index, &e) < 0) {
		FUZZ_CHECK(as_manifest < 0 && as_index < 0);
		check_refusal(&e);
	} else {
		FUZZ_CHECK(is_index ? as_manifest < 0 : as_index < 0);
	}
	return 0;
}
