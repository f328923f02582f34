/*
 * fuzz_reference - text for the parser of image names.
 *
 * An accepted name must give the same image from its full form and from its short form, and the
 * file form is a file name.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/reference.h"

#include <string.h>

static void check_parses_to(const char *text, const char *full)
{
	char again[REFERENCE_MAX_BYTES + 1];
	struct err e = { 0 };
	struct reference r;

	FUZZ_CHECK(reference_parse(text, &r, &e) == 0);
	reference_format(&r, again);
	FUZZ_CHECK(strcmp(again, full) == 0);
}

static void check(const struct reference *r)
{
	char full[REFERENCE_MAX_BYTES + 1];
	char other[REFERENCE_MAX_BYTES + 1];

	FUZZ_CHECK(r->host[0] && r->path[0] && (r->tag[0] || r->digest[0]));
	reference_format(r, full);
	FUZZ_CHECK(strlen(full) <= REFERENCE_MAX_BYTES);
	for (const char *p = full; *p; p++)
		FUZZ_CHECK(*p > ' ' && *p < 0x7f && !strchr("+%?#\\&'\"<>$`;|*", *p));
	check_parses_to(full, full);
	reference_format_short(r, other);
	FUZZ_CHECK(other[0] != '-');
	check_parses_to(other, full);
	reference_format_file(r, other);
	FUZZ_CHECK(!strchr(other, '/') && other[0] != '-' && other[0] != '.');
	FUZZ_CHECK(strlen(other) == strlen(full));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = mem_dup_bytes((const char *)data, size);
	struct err e = { 0 };
	struct reference r;

	if (reference_parse(text, &r, &e) == 0)
		check(&r);
	else
		FUZZ_CHECK(e.code != ERR_NONE && e.msg[0]);
	return 0;
}
