#pragma once
/*
 * table - formats text in aligned columns.
 *
 * Cells are copied. Control characters in a cell are shown as '?', so that text from a sandbox
 * cannot control the reader's terminal.
 */
#include "base/buf.h"

#define TABLE_COLUMN_MAX 8

struct table;

struct table *table_new(unsigned columns);
void table_free(struct table *t);
void table_freep(struct table **t);

/* `cells` has as many entries as the table has columns. */
void table_add_row(struct table *t, const char *const *cells);

/* Two spaces between columns; the last one is not padded. */
void table_format(const struct table *t, struct buf *out);
