#pragma once
/*
 * gitconfig - parses and writes git configuration files, as git does.
 *
 * Sections and keys are in lower case, as git compares them; subsections keep their case. Hostile
 * input: the text; the caller bounds its length. No system calls.
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
	const char *value; /* NULL: no '=', which means true */
};

/* Returns 0 to continue; a positive number stops the parser. */
typedef int gitconfig_fn(void *context, const struct gitconfig_entry *entry);

/*
 * Calls `fn` for each entry, in order. Returns 0 after the whole text; -1 if git would reject part
 * of it, although the lines after it were still read, as git does in some cases; or the positive
 * number that `fn` returned.
 */
int gitconfig_parse(const char *text, size_t len, gitconfig_fn *fn, void *context);

/*
 * True if every line is unambiguous for all parsers: headers, and keys with values without quotes,
 * escapes, comments and continuations. git writes most files like that.
 */
bool gitconfig_is_plain(const char *text, size_t len);

/* "section.subsection.key=value", for comparisons; the caller frees it. */
char *gitconfig_format(const struct gitconfig_entry *entry);

/* Writes entries one after the other, quoted if needed. */
struct gitconfig_writer {
	struct buf *out;
	char *header; /* of the last section written; NULL: none */
};
void gitconfig_put(struct gitconfig_writer *w, const struct gitconfig_entry *entry);
void gitconfig_writer_done(struct gitconfig_writer *w); /* may run twice */
