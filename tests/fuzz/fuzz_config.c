/*
 * fuzz_config - the config of an image.
 *
 * An accepted config is within the maxima, its environment is NAME=VALUE, its digests are digests.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "image/config.h"

#include <string.h>

static size_t check_list(char *const *list)
{
	size_t total = 0;
	unsigned count = 0;

	for (; list[count]; count++) {
		FUZZ_CHECK(strlen(list[count]) < CONFIG_TEXT_MAX_BYTES);
		total += strlen(list[count]);
	}
	FUZZ_CHECK(count <= CONFIG_LIST_MAX);
	return total;
}

static void check(const struct config *c)
{
	size_t total = check_list(c->env) + check_list(c->entrypoint) + check_list(c->cmd);

	FUZZ_CHECK(total <= CONFIG_TOTAL_MAX_BYTES);
	for (char *const *entry = c->env; *entry; entry++)
		FUZZ_CHECK(strchr(*entry, '=') > *entry);
	FUZZ_CHECK(c->user && c->workdir && c->created);
	FUZZ_CHECK(c->diff_count <= MANIFEST_LAYERS_MAX);
	for (unsigned i = 0; i < c->diff_count; i++)
		FUZZ_CHECK(reference_is_digest(c->diff_ids[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(config_done) struct config c = { 0 };
	struct err e = { 0 };

	if (config_parse((const char *)data, size, &c, &e) == 0)
		check(&c);
	else
		FUZZ_CHECK(e.code != ERR_NONE && e.msg[0]);
	return 0;
}
