/*
 * fuzz_head - the head of an HTTP request.
 *
 * An accepted head is unambiguous: at most one Host, at most one length, no length beside a coding,
 * no control characters; and independent of the bytes that follow it. Then the query of its target.
 */
#include "fuzz.h"

#include "http/head.h"
#include "http/query.h"

#include <stdlib.h>
#include <string.h>

static unsigned count(const struct head *h, const char *name)
{
	unsigned found = 0;

	for (unsigned i = 0; i < h->field_count; i++)
		found += strcmp(h->fields[i].name, name) == 0;
	return found;
}

static void check(const struct head *h)
{
	FUZZ_CHECK(h->method[0] && h->target[0] == '/');
	FUZZ_CHECK(count(h, "host") <= 1 && count(h, "content-length") <= 1);
	FUZZ_CHECK(!(h->has_content_length && h->is_chunked));
	for (const char *c = h->target; *c; c++)
		FUZZ_CHECK((unsigned char)*c > ' ');
	for (unsigned i = 0; i < h->field_count; i++) {
		FUZZ_CHECK(h->fields[i].name[0]);
		FUZZ_CHECK(!strpbrk(h->fields[i].name, " \t:\r\n"));
		FUZZ_CHECK(!strpbrk(h->fields[i].value, "\r\n"));
	}
}

/* Every pair is returned once, complete and not longer than it was written. */
static void check_query(const struct head *h)
{
	const char *at = strchr(h->target, '?');
	struct query_pair pair = { 0 };
	size_t left, pairs = 0;
	int r;

	if (!at)
		return;
	left = strlen(++at);
	while ((r = query_next(&at, &pair)) == 1) {
		FUZZ_CHECK(strlen(at) < left);
		FUZZ_CHECK(strlen(pair.name) + strlen(pair.value) <= left - strlen(at));
		left = strlen(at);
		pairs++;
		query_pair_done(&pair);
	}
	FUZZ_CHECK(r < 0 || *at == '\0');
	FUZZ_CHECK(pairs <= strlen(h->target));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head h = { 0 }, again = { 0 };
	size_t used = 0, used_again = 0;
	int r = head_parse((const char *)data, size, &h, &used);
	char *longer;

	if (r <= 0) {
		FUZZ_CHECK(r == 0 || (r <= -400 && r > -600));
		return 0;
	}
	check(&h);
	check_query(&h);
	longer = malloc(size + 4);
	memcpy(longer, data, used);
	memcpy(longer + used, "GET ", 4);
	FUZZ_CHECK(head_parse(longer, used + 4, &again, &used_again) == 1 && used_again == used);
	FUZZ_CHECK(strcmp(again.method, h.method) == 0 && strcmp(again.target, h.target) == 0);
	free(longer);
	head_done(&again);
	head_done(&h);
	return 0;
}
