/*
 * fuzz_challenge - the WWW-Authenticate field of a registry.
 *
 * Accepted fields are terminated text without control bytes, and a bearer has a realm.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/challenge.h"

#include <string.h>

static void check_text(const char *text)
{
	FUZZ_CHECK(memchr(text, '\0', CHALLENGE_TEXT_MAX_BYTES));
	for (; *text; text++)
		FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *value = mem_dup_bytes((const char *)data, size);
	struct err e = { 0 };
	struct challenge c;

	if (challenge_parse(value, &c, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_REMOTE && e.msg[0]);
		return 0;
	}
	check_text(c.realm);
	check_text(c.service);
	FUZZ_CHECK(c.scheme == CHALLENGE_BASIC || c.realm[0]);
	return 0;
}
