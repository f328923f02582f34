/*
 * fuzz_ignore - a .dockerignore, and a path that it is asked about: what precedes the first NUL is
 * the path.
 *
 * An error names the file and a line within it. An accepted file answers, and in the same way when
 * it is asked again; a path below an ignored directory is ignored, where nothing is taken back.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "build/glob.h"
#include "build/ignore.h"

#include <stdbool.h>
#include <string.h>

#define NAME "fuzz"
#define PATH_MAX_BYTES 512u

static void check_refusal(const struct err *e, const char *text, size_t len)
{
	unsigned line = 0, lines = 1;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	FUZZ_CHECK(e->code == ERR_INVALID || e->code == ERR_LIMIT);
	FUZZ_CHECK(sscanf(e->msg, NAME ":%u:", &line) == 1);
	FUZZ_CHECK(line >= 1 && line <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
	size_t path_len = nul ? (size_t)(nul - data) : 0;
	const char *text = (const char *)data + (nul ? path_len + 1 : 0);
	size_t len = nul ? size - path_len - 1 : size;
	cleanup_free char *path = NULL, *below = NULL;
	struct ignore *ignore = NULL;
	struct err e = { 0 };
	bool is_ignored;

	if (path_len > PATH_MAX_BYTES)
		return 0;
	path = mem_dup_bytes((const char *)data, path_len);
	below = mem_format("%s/below", path);
	if (ignore_parse(NAME, text, len, &ignore, &e) < 0) {
		check_refusal(&e, text, len);
		return 0;
	}
	is_ignored = ignore_has(ignore, path);
	FUZZ_CHECK(is_ignored == ignore_has(ignore, path));
	if (is_ignored && path[0] && !ignore_has_exceptions(ignore))
		FUZZ_CHECK(ignore_has(ignore, below));
	ignore_free(ignore);
	return 0;
}
