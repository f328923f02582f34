/*
 * fuzz_gitconfig - the text of a git configuration file.
 *
 * Parsed settings must be the same after writing and parsing them again, and a text that is
 * reported as plain must be parsed completely.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/gitconfig.h"
#include "policy/gitsettings.h"

#include <stdlib.h>
#include <string.h>

struct copies {
	struct gitconfig_writer writer;
	struct buf *told;
};

static int on_entry(void *context, const struct gitconfig_entry *entry)
{
	struct copies *c = context;

	(void)gitsettings_judge(entry);
	if (c->writer.out)
		gitconfig_put(&c->writer, entry);
	buf_addf(c->told, "%s\1%s\1%s\1%s\n", entry->section,
		 entry->subsection ? entry->subsection : "", entry->key,
		 entry->value ? entry->value : "\2");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf written, first, second;
	struct copies a = { .writer.out = &written, .told = &first };
	struct copies b = { .told = &second };
	int r;

	buf_init(&written, 16u << 20);
	buf_init(&first, 16u << 20);
	buf_init(&second, 16u << 20);
	r = gitconfig_parse((const char *)data, size, on_entry, &a);
	gitconfig_writer_done(&a.writer);
	FUZZ_CHECK(!gitconfig_is_plain((const char *)data, size) || r == 0 || first.len == 0);
	if (written.is_cut)
		return 0;
	FUZZ_CHECK(gitconfig_parse(written.bytes, written.len, on_entry, &b) == 0);
	FUZZ_CHECK(strcmp(buf_text(&first), buf_text(&second)) == 0);
	return 0;
}
