#pragma once
/*
 * tomlcut - removes parts of the text of a TOML document; for tomledit.c only.
 *
 * Spans are added in the order of the text and do not overlap; tomlcut_copy() then copies the rest.
 */
#include "base/buf.h"
#include "base/toml.h"

struct tomlcut {
	const char *text; /* borrowed */
	size_t len;
	struct toml_span *spans;
	size_t count;
	size_t capacity;
};

void tomlcut_init(struct tomlcut *c, const char *text, size_t len);
void tomlcut_done(struct tomlcut *c); /* may run twice, and on a zeroed struct */

void tomlcut_add(struct tomlcut *c, struct toml_span span);

/* Removes the lines of a statement; a comment beside it stays, on its own line. */
void tomlcut_add_lines(struct tomlcut *c, struct toml_span statement);

/*
 * Also removes blank lines between two removed spans, and one of two blank lines around a span. New
 * text at `insert_at` keeps those around it.
 */
void tomlcut_tidy(struct tomlcut *c, size_t insert_at);

/* Copies the remaining text between two positions, neither of which is inside a removed span. */
void tomlcut_copy(const struct tomlcut *c, size_t from, size_t to, struct buf *out);

size_t tomlcut_line_start(const struct tomlcut *c, size_t at);
size_t tomlcut_indent_start(const struct tomlcut *c, size_t at); /* start of the blanks before it */
size_t tomlcut_line_end(const struct tomlcut *c, size_t at);     /* after the end of its line */
bool tomlcut_is_blank(const struct tomlcut *c, size_t from, size_t to); /* including line ends */
