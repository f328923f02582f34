#pragma once
/*
 * tomledit - one table in the text of a TOML document is set or removed; all else stays.
 *
 * For files that are not ours, as an agent's own configuration: comments, order, blanks and the
 * ends of lines (CRLF, too) stay as they are, byte for byte. Of what goes, comments that have a
 * line for themselves stay, and those at the end of a line stay as a line; only those between the
 * brackets of a value go with it.
 *
 * However the table is written, it is found: with its own [header] and sub-tables, as an inline
 * table, with dotted keys, inside an inline table. What comes out is parsed again, and given to the
 * caller only if the table means what was asked for, and everything else what it meant before.
 *
 *	static const char *const path[] = { "mcp_servers", "agentkernel", NULL };
 *	const struct tomledit_table table = { "config.toml", text, len, path };
 *
 *	r = tomledit_set_table(&table, "command = \"agentkernel\"\n", TOMLEDIT_REPLACE, &out, e);
 */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

#define TOMLEDIT_PATH_MAX 16u /* keys */

/* A table, there or not there, of a document. */
struct tomledit_table {
	const char *name; /* of the document, for messages */
	const char *text;
	size_t len;
	const char *const *path; /* keys from the root on, ended by NULL; at least one */
};

enum tomledit_flags {
	TOMLEDIT_REPLACE = 1 << 0, /* also a table that is there and means something else */
};

enum tomledit_done {
	TOMLEDIT_UNCHANGED,
	TOMLEDIT_ADDED,
	TOMLEDIT_REPLACED,
	TOMLEDIT_REMOVED,
};

/*
 * The body is pairs of key and value, one per line, without headers: a sub-table is written
 * `env = { A = "1" }` or `env.A = "1"`. A table that is not there becomes a section of its own at
 * the end, or an entry if what it belongs to is an inline table; one that is there is changed in
 * the form it has, unless that is dotted keys, which become a section.
 *
 * Returns an enum tomledit_done. `ret` is then the whole new text, also when nothing changed, and
 * the caller's to buf_done(). ERR_EXISTS: there is one with other contents, and no
 * TOMLEDIT_REPLACE. ERR_INVALID: the document or the body is not TOML, or the path meets something
 * that is no table. ERR_LIMIT: the result would be beyond a maximum of toml.h.
 */
ERR_CHECKED int tomledit_set_table(const struct tomledit_table *table, const char *body,
				   unsigned flags, struct buf *ret, struct err *e);

/* The same for no table at all: with its sub-tables it goes. */
ERR_CHECKED int tomledit_remove_table(const struct tomledit_table *table, struct buf *ret,
				      struct err *e);

/* A text as a string of TOML, with its quotes, and as a key, which may do without: for a body. */
void tomledit_add_string(struct buf *out, const char *text);
void tomledit_add_key(struct buf *out, const char *text);
