#pragma once
/*
 * tomlcut - what is taken out of the text of a TOML document; for tomledit.c only.
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

/* The lines that a statement is on, alone with its comment; the comment stays, as a line. */
void tomlcut_add_lines(struct tomlcut *c, struct toml_span statement);

/*
 * Blank lines between two things that go, go too; and where a blank line is before and after what
 * goes, one of them. New text at `insert_at` keeps those around it.
 */
void tomlcut_tidy(struct tomlcut *c, size_t insert_at);

/* What stays of the text between two places, none of which is inside of what goes. */
void tomlcut_copy(const struct tomlcut *c, size_t from, size_t to, struct buf *out);

size_t tomlcut_line_start(const struct tomlcut *c, size_t at);
size_t tomlcut_indent_start(const struct tomlcut *c, size_t at); /* the blanks before it */
size_t tomlcut_line_end(const struct tomlcut *c, size_t at);     /* behind the end of its line */
bool tomlcut_is_blank(const struct tomlcut *c, size_t from, size_t to); /* also ends of lines */
