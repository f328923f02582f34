/*
 * fuzz_policyfile - bytes for the parser of stored policies.
 *
 * An accepted policy must be within the maxima that other code relies on, and must give the same
 * bytes after writing, parsing and writing again.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/policyfile.h"

#include <string.h>

static void check(const struct policy *p)
{
	CLEANUP(policy_done) struct policy again = { 0 };
	cleanup_buf struct buf first;
	cleanup_buf struct buf second;
	struct err e = { 0 };

	buf_init(&first, POLICYFILE_MAX_BYTES);
	buf_init(&second, POLICYFILE_MAX_BYTES);
	FUZZ_CHECK(p->uid <= POLICY_ID_MAX && p->gid <= POLICY_ID_MAX && p->disk_bytes > 0);
	FUZZ_CHECK(p->workdir[0] == '/' && p->home_dir[0] == '/');
	for (unsigned i = 0; i < p->mount_count; i++)
		FUZZ_CHECK(p->mounts[i].source && p->mounts[i].target);
	policyfile_format(p, &first);
	FUZZ_CHECK(policyfile_parse(first.bytes, first.len, &again, &e) == 0);
	policyfile_format(&again, &second);
	FUZZ_CHECK(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e = { 0 };

	if (policyfile_parse((const char *)data, size, &p, &e) == 0)
		check(&p);
	else
		FUZZ_CHECK(e.code != ERR_NONE && e.msg[0]);
	return 0;
}
