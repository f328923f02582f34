#pragma once
/*
 * tomledit - sets or removes one table in the text of a TOML document and keeps the rest.
 *
 * For files of other programs, such as an agent's configuration: comments, order, blanks and line
 * ends (also CRLF) are kept byte for byte. Of removed text, comments on their own line stay, and
 * those at the end of a line stay as a line; only comments between the brackets of a value are
 * removed with it.
 *
 * The table is found in every notation: with its own [header] and sub-tables, as an inline table,
 * with dotted keys, inside an inline table. The result is parsed again and returned only if the
 * table has the requested value and everything else its old one.
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

/* A table of a document, existing or not. */
struct tomledit_table {
	const char *name; /* of the document, for messages */
	const char *text;
	size_t len;
	const char *const *path; /* keys from the root on, ended by NULL; at least one */
};

enum tomledit_flags {
	TOMLEDIT_REPLACE = 1 << 0, /* also replace an existing table with another value */
};

enum tomledit_done {
	TOMLEDIT_UNCHANGED,
	TOMLEDIT_ADDED,
	TOMLEDIT_REPLACED,
	TOMLEDIT_REMOVED,
};

/*
 * The body is pairs of key and value, one per line, without headers: a sub-table is written `env =
 * { A = "1" }` or `env.A = "1"`. A new table becomes a section at the end, or an entry if its
 * parent is an inline table; an existing one keeps its notation, except that dotted keys become a
 * section.
 *
 * Returns an enum tomledit_done. `ret` is then the whole new text, even if nothing changed; release
 * it with buf_done(). ERR_EXISTS: one with other contents exists, and no TOMLEDIT_REPLACE.
 * ERR_INVALID: the document or the body is not TOML, or something on the path is not a table.
 * ERR_LIMIT: the result would exceed a maximum of toml.h.
 */
ERR_CHECKED int tomledit_set_table(const struct tomledit_table *table, const char *body,
				   unsigned flags, struct buf *ret, struct err *e);

/* Likewise, removes the table with its sub-tables. */
ERR_CHECKED int tomledit_remove_table(const struct tomledit_table *table, struct buf *ret,
				      struct err *e);

/* Appends a text as a quoted TOML string, or as a key, quoted if needed: for a body. */
void tomledit_add_string(struct buf *out, const char *text);
void tomledit_add_key(struct buf *out, const char *text);
