/* test_manifest - which documents are images, which entry of an index is ours, and what is refused.
 */
#include "unit.h"

#include "base/buf.h"
#include "image/manifest.h"

#include <stdio.h>

#define HEX16 "0123456789abcdef"
#define HEX48 HEX16 HEX16 HEX16
#define DIGEST(end) "sha256:" HEX48 "00000000000000" end
#define CONFIG_OCI "application/vnd.oci.image.config.v1+json"
#define LAYER_OCI "application/vnd.oci.image.layer.v1.tar"
#define LAYER_DOCKER "application/vnd.docker.image.rootfs.diff.tar.gzip"

#define BLOB(type, digest, size)                                                                   \
	"{\"mediaType\":\"" type "\",\"digest\":\"" digest "\",\"size\":" size "}"
#define CONFIG "\"config\":" BLOB(CONFIG_OCI, DIGEST("c0"), "10")
#define LAYER BLOB(LAYER_OCI, DIGEST("11"), "11")
#define HEAD "{\"schemaVersion\":2,"
#define TYPED(type) HEAD "\"mediaType\":\"" type "\","
#define WITH_LAYERS(layers) HEAD CONFIG ",\"layers\":[" layers "]}"

#define ENTRY(end, platform)                                                                       \
	"{\"mediaType\":\"" MANIFEST_TYPE_OCI                                                      \
	"\",\"digest\":\"" DIGEST(end) "\",\"size\":5" platform "}"
#define PLATFORM(os, architecture)                                                                 \
	",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" architecture "\"}"
#define VARIANT(architecture, variant)                                                             \
	",\"platform\":{\"os\":\"linux\",\"architecture\":\"" architecture                         \
	"\",\"variant\":\"" variant "\"}"
#define INDEX(entries) HEAD "\"manifests\":[" entries "]}"

struct refusal {
	const char *text;
	enum err_code code;
	const char *words;
};

static void expect_words(const char *text, const struct err *e, enum err_code code,
			 const char *words)
{
	if (e->code != code || !strstr(e->msg, words))
		fail_msg("%.200s\n  says    (%d) %s\n  not     (%d) %s", text, e->code, e->msg,
			 code, words);
}

static void expect_refused(const struct refusal *r)
{
	struct manifest m = { .layer_count = 77 };
	struct err e = { 0 };

	if (manifest_parse(r->text, strlen(r->text), &m, &e) == 0)
		fail_msg("taken: %.300s", r->text);
	expect_words(r->text, &e, r->code, r->words);
	assert_int_equal(m.layer_count, 77);
}

static bool is_index(const char *text, const char *type)
{
	struct err e = { 0 };
	bool is = false;

	if (manifest_is_index(text, strlen(text), type, &is, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return is;
}

static void expect_chosen(const char *text, const char *architecture, const char *digest)
{
	struct manifest_blob blob = { 0 };
	struct err e = { 0 };

	if (manifest_choose(text, strlen(text), architecture, &blob, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_string_equal(blob.digest, digest);
	assert_int_equal(blob.size_bytes, 5);
}

static void manifest_gives_config_and_layers_in_order(void **state)
{
	static const char text[] = TYPED(MANIFEST_TYPE_DOCKER) "\"config\":" BLOB(
		"application/vnd.docker.container.image.v1+json", DIGEST("c0"),
		"7") ",\"layers\":[" BLOB(LAYER_DOCKER, DIGEST("01"),
					  "1") "," BLOB(LAYER_OCI "+gzip", DIGEST("02"),
							"2") "," BLOB(LAYER_OCI "+zstd",
								      DIGEST("03"),
								      "68719476736") "],"
										     "\"unknown\":{"
										     "\"a\":[]}}";
	struct err e = { 0 };
	struct manifest m;

	(void)state;
	assert_int_equal(manifest_parse(text, strlen(text), &m, &e), 0);
	assert_string_equal(m.config.digest, DIGEST("c0"));
	assert_int_equal(m.config.size_bytes, 7);
	assert_int_equal(m.layer_count, 3);
	assert_string_equal(m.layers[0].digest, DIGEST("01"));
	assert_string_equal(m.layers[0].type, LAYER_DOCKER);
	assert_string_equal(m.layers[2].digest, DIGEST("03"));
	assert_true(m.layers[2].size_bytes == MANIFEST_BLOB_MAX_BYTES);
}

static void what_is_no_image_is_refused_with_its_reason(void **state)
{
	static const struct refusal cases[] = {
		{ "", ERR_INVALID, "not JSON" },
		{ "[]", ERR_INVALID, "not a JSON object" },
		{ "{\"a\":1,\"a\":2}", ERR_INVALID, "duplicate" },
		{ "{\"a\":\"\\u0000\"}", ERR_INVALID, "not JSON" },
		{ "{}", ERR_INVALID, "'schemaVersion' is missing" },
		{ "{\"schemaVersion\":1}", ERR_UNSUPPORTED, "too old" },
		{ "{\"schemaVersion\":\"2\"}", ERR_INVALID, "'schemaVersion' is not a whole" },
		{ "{\"schemaVersion\":3," CONFIG "}", ERR_UNSUPPORTED, "'schemaVersion' is not 2" },
		{ TYPED("application/vnd.docker.distribution.manifest.v1+prettyjws") CONFIG "}",
		  ERR_UNSUPPORTED, "too old" },
		{ TYPED("application/vnd.example") CONFIG "}", ERR_UNSUPPORTED,
		  "'application/vnd.example' is not an image" },
		{ HEAD CONFIG ",\"layers\":[],\"manifests\":[]}", ERR_INVALID, "at once" },
		{ TYPED(MANIFEST_TYPE_OCI) "\"manifests\":[]}", ERR_INVALID,
		  "the fields of another" },
		{ TYPED(MANIFEST_TYPE_OCI_INDEX) CONFIG "}", ERR_INVALID, "the fields of another" },
		{ INDEX(""), ERR_INVALID, "an index, not a manifest" },
		{ HEAD "\"layers\":[" LAYER "]}", ERR_INVALID, "'config' is missing" },
		{ HEAD "\"config\":[],\"layers\":[" LAYER "]}", ERR_INVALID,
		  "'config' is not an object" },
		{ HEAD "\"config\":" BLOB("application/vnd.oci.empty.v1+json", DIGEST("00"),
					  "2") ",\"layers\":[" LAYER "]}",
		  ERR_UNSUPPORTED,
		  "not an image: its config is 'application/vnd.oci.empty.v1+json'" },
		{ HEAD "\"config\":" BLOB(CONFIG_OCI, DIGEST("00"), "4194305") ",\"layers\":[" LAYER
									       "]}",
		  ERR_LIMIT, "'config': 'size'" },
		{ HEAD CONFIG "}", ERR_INVALID, "'layers' is missing" },
		{ HEAD CONFIG ",\"layers\":{}}", ERR_INVALID, "'layers' is not a list" },
		{ WITH_LAYERS(""), ERR_INVALID, "no layers" },
		{ WITH_LAYERS("7"), ERR_INVALID, "'layers' 0: not an object" },
		{ WITH_LAYERS(LAYER ",{\"mediaType\":\"" LAYER_OCI "\"}"), ERR_INVALID,
		  "'layers' 1: 'digest' is missing" },
		{ WITH_LAYERS(BLOB(LAYER_OCI, "sha512:" HEX48, "1")), ERR_INVALID,
		  "not of sha256" },
		{ WITH_LAYERS(BLOB(LAYER_OCI, "../../x", "1")), ERR_INVALID, "not of sha256" },
		{ WITH_LAYERS(BLOB(LAYER_OCI, DIGEST("00"), "-1")), ERR_INVALID,
		  "'size' is not a whole" },
		{ WITH_LAYERS(BLOB(LAYER_OCI, DIGEST("00"), "1.0")), ERR_INVALID,
		  "'size' is not a whole" },
		{ WITH_LAYERS(BLOB(LAYER_OCI, DIGEST("00"), "68719476737")), ERR_LIMIT, "'size'" },
		{ WITH_LAYERS(BLOB("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
				   DIGEST("00"), "1")),
		  ERR_UNSUPPORTED, "may not distribute" },
		{ WITH_LAYERS(BLOB("application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
				   DIGEST("00"), "1")),
		  ERR_UNSUPPORTED, "may not distribute" },
		{ WITH_LAYERS(BLOB(LAYER_OCI "+encrypted", DIGEST("00"), "1")), ERR_UNSUPPORTED,
		  "cannot be read" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_refused(&cases[i]);
}

static void words_of_the_document_cannot_steer_a_terminal(void **state)
{
	static const char text[] = TYPED("a\\u001b[2J") CONFIG "}";
	struct err e = { 0 };
	struct manifest m;

	(void)state;
	assert_int_equal(manifest_parse(text, strlen(text), &m, &e), -1);
	assert_non_null(strstr(e.msg, "a?[2J"));
}

static void fill_layers(struct buf *b, unsigned count)
{
	buf_init(b, 1u << 20);
	buf_add_text(b, HEAD CONFIG ",\"layers\":[" LAYER);
	for (unsigned i = 1; i < count; i++)
		buf_add_text(b, "," LAYER);
	buf_add_text(b, "]}");
}

static void as_many_layers_as_overlay_takes_and_no_more(void **state)
{
	cleanup_buf struct buf most, more;
	struct err e = { 0 };
	struct manifest m;

	(void)state;
	fill_layers(&most, MANIFEST_LAYERS_MAX);
	fill_layers(&more, MANIFEST_LAYERS_MAX + 1);
	assert_int_equal(manifest_parse(most.bytes, most.len, &m, &e), 0);
	assert_int_equal(m.layer_count, MANIFEST_LAYERS_MAX);
	assert_int_equal(manifest_parse(more.bytes, more.len, &m, &e), -1);
	expect_words("128 layers", &e, ERR_LIMIT, "'layers' has 128 entries");
}

static void too_long_and_too_deep_is_refused(void **state)
{
	cleanup_buf struct buf deep, large;
	struct err e = { 0 };
	struct manifest m;

	(void)state;
	buf_init(&deep, MANIFEST_MAX_BYTES);
	buf_add_text(&deep, "{\"a\":");
	for (unsigned i = 0; i < 100000; i++)
		buf_add_text(&deep, "[");
	assert_int_equal(manifest_parse(deep.bytes, deep.len, &m, &e), -1);
	expect_words("deep", &e, ERR_INVALID, "depth");
	buf_init(&large, MANIFEST_MAX_BYTES + 1);
	for (unsigned i = 0; i <= MANIFEST_MAX_BYTES; i++)
		buf_add(&large, " ", 1);
	assert_int_equal(manifest_parse(large.bytes, large.len, &m, &e), -1);
	expect_words("large", &e, ERR_LIMIT, "longer than");
}

static void kind_comes_from_type_then_fields_then_content_type(void **state)
{
	bool is = false;
	struct err e = { 0 };

	(void)state;
	assert_true(is_index(TYPED(MANIFEST_TYPE_DOCKER_LIST) "\"manifests\":[]}", ""));
	assert_true(is_index(INDEX(""), MANIFEST_TYPE_OCI));
	assert_false(is_index(WITH_LAYERS(""), MANIFEST_TYPE_OCI_INDEX));
	assert_true(is_index("{}", MANIFEST_TYPE_OCI_INDEX));
	assert_true(is_index("{}", MANIFEST_TYPE_OCI_INDEX "; charset=utf-8"));
	assert_false(is_index("{}", "text/html"));
	assert_false(is_index("{}", ""));
	assert_int_equal(manifest_is_index("{\"schemaVersion\":1}", 19, "", &is, &e), -1);
	expect_words("schema 1", &e, ERR_UNSUPPORTED, "too old");
}

static void index_entry_is_that_of_the_architecture(void **state)
{
	static const char text[] = INDEX(ENTRY("01", PLATFORM("windows", "amd64")) "," ENTRY(
		"02",
		PLATFORM(
			"unknown",
			"unkn"
			"ow"
			"n")) "," ENTRY("03",
					PLATFORM(
						"linux",
						"arm64")) "," ENTRY("04",
								    PLATFORM(
									    "linux",
									    "amd64")) "," ENTRY("0"
												"5",
												PLATFORM(
													"linux",
													"amd64")));

	(void)state;
	expect_chosen(text, "amd64", DIGEST("04"));
	expect_chosen(text, "arm64", DIGEST("03"));
}

static void variant_of_the_machine_comes_first(void **state)
{
	(void)state;
	expect_chosen(INDEX(ENTRY("01", PLATFORM("linux", "arm64")) "," ENTRY(
			      "02", VARIANT("arm64", "v8"))),
		      "arm64", DIGEST("02"));
	expect_chosen(INDEX(ENTRY("01", VARIANT("arm64", "v9")) "," ENTRY(
			      "02", PLATFORM("linux", "arm64"))),
		      "arm64", DIGEST("02"));
	expect_chosen(
		INDEX(ENTRY("01", VARIANT("amd64", "v3")) "," ENTRY(
			"02", VARIANT("amd64", "v2")) "," ENTRY("03", PLATFORM("linux", "amd64"))),
		"amd64", DIGEST("03"));
	expect_chosen(
		INDEX(ENTRY("01", VARIANT("amd64", "v3")) "," ENTRY("02", VARIANT("amd64", "v2"))),
		"amd64", DIGEST("02"));
}

static void entry_without_a_platform_is_better_than_none(void **state)
{
	(void)state;
	expect_chosen(INDEX(ENTRY("01", "")), "amd64", DIGEST("01"));
	expect_chosen(INDEX(ENTRY("01", "") "," ENTRY("02", VARIANT("amd64", "v3"))), "amd64",
		      DIGEST("02"));
}

static void nothing_for_us_names_what_there_is(void **state)
{
	static const char text[] = INDEX(
		ENTRY("01", PLATFORM("windows", "amd64")) "," ENTRY("02", VARIANT("arm", "v7")) "," ENTRY(
			"03",
			PLATFORM(
				"unknown",
				"unknown")) "," ENTRY("04",
						      ",\"artifactType\":\"application/"
						      "vnd.example\"") "," BLOB(MANIFEST_TYPE_OCI_INDEX,
										DIGEST("05"), "5"));
	struct manifest_blob blob;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(manifest_choose(text, strlen(text), "amd64", &blob, &e), -1);
	expect_words(text, &e, ERR_NOT_FOUND,
		     "not made for linux/amd64, only for: windows/amd64, linux/arm/v7");
	assert_null(strstr(e.msg, "unknown"));
}

static void broken_index_is_refused(void **state)
{
	static const struct refusal cases[] = {
		{ WITH_LAYERS(LAYER), ERR_INVALID, "a manifest, not an index" },
		{ INDEX("1"), ERR_INVALID, "'manifests' 0: not an object" },
		{ INDEX(ENTRY("01", ",\"platform\":[]")), ERR_INVALID,
		  "'platform' is not an object" },
		{ INDEX(ENTRY("01", ",\"platform\":{\"os\":\"linux\"}")), ERR_INVALID,
		  "'architecture' is missing" },
		{ INDEX(BLOB(MANIFEST_TYPE_OCI, DIGEST("01"), "4194305")), ERR_LIMIT, "'size'" },
		{ INDEX(""), ERR_NOT_FOUND, "only for: nothing" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct manifest_blob blob;
		struct err e = { 0 };

		assert_int_equal(
			manifest_choose(cases[i].text, strlen(cases[i].text), "amd64", &blob, &e),
			-1);
		expect_words(cases[i].text, &e, cases[i].code, cases[i].words);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(manifest_gives_config_and_layers_in_order),
		cmocka_unit_test(what_is_no_image_is_refused_with_its_reason),
		cmocka_unit_test(words_of_the_document_cannot_steer_a_terminal),
		cmocka_unit_test(as_many_layers_as_overlay_takes_and_no_more),
		cmocka_unit_test(too_long_and_too_deep_is_refused),
		cmocka_unit_test(kind_comes_from_type_then_fields_then_content_type),
		cmocka_unit_test(index_entry_is_that_of_the_architecture),
		cmocka_unit_test(variant_of_the_machine_comes_first),
		cmocka_unit_test(entry_without_a_platform_is_better_than_none),
		cmocka_unit_test(nothing_for_us_names_what_there_is),
		cmocka_unit_test(broken_index_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
