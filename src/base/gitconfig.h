#pragma once
/*
 * gitconfig - the text of a git configuration file, taken apart as git does.
 *
 * Sections and keys are in lower case, as git compares them; subsections keep theirs. The text may
 * be a stranger's: its length is the caller's to bound, and nothing in it is believed. Pure code.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define GITCONFIG_NAME_MAX_BYTES 1024u /* of a section, a subsection, a key */

/* section.subsection.key = value */
struct gitconfig_entry {
	const char *section;
	const char *subsection; /* NULL: none */
	const char *key;
	const char *value; /* NULL: the key stands alone, which means true */
};

/* Returns 0 to go on; another number ends the reading. */
typedef int gitconfig_fn(void *context, const struct gitconfig_entry *entry);

/*
 * Calls `fn` for each entry, in order. 0: the whole text was read; -1: git would complain about
 * some of it, and what follows that line was read all the same, as git does in some cases; else
 * what `fn` returned, which is positive.
 */
int gitconfig_parse(const char *text, size_t len, gitconfig_fn *fn, void *context);

/*
 * True if the text has only lines that no two programs can read differently: headers, and keys with
 * values without quotes, escapes, comments and continuations. git writes most files like that.
 */
bool gitconfig_is_plain(const char *text, size_t len);

/* "section.subsection.key=value", for comparing; the caller's to free. */
char *gitconfig_format(const struct gitconfig_entry *entry);

/* Writes entries one after the other, quoted where needed. */
struct gitconfig_writer {
	struct buf *out;
	char *header; /* of the section that was written last; NULL: none */
};
void gitconfig_put(struct gitconfig_writer *w, const struct gitconfig_entry *entry);
void gitconfig_writer_done(struct gitconfig_writer *w); /* may run twice */
