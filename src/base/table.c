/* table - formats text in aligned columns; see table.h. */
#include "base/table.h"

#include "base/mem.h"
#include "base/shown.h"

#include <assert.h>
#include <stdlib.h>

struct table {
	unsigned columns;
	size_t rows;
	char **cells; /* rows * columns, all owned */
	size_t width[TABLE_COLUMN_MAX];
};

struct table *table_new(unsigned columns)
{
	struct table *t = mem_alloc(sizeof(*t));

	assert(columns > 0 && columns <= TABLE_COLUMN_MAX);
	t->columns = columns;
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->rows * t->columns; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}

void table_freep(struct table **t)
{
	table_free(*t);
}

/* Counts characters, not bytes: continuation bytes of UTF-8 have no width. */
static size_t screen_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void table_add_row(struct table *t, const char *const *cells)
{
	t->cells = mem_grow(t->cells, (t->rows + 1) * t->columns, sizeof(*t->cells));
	for (unsigned column = 0; column < t->columns; column++) {
		char *cell = mem_dup(cells[column]);
		size_t width;

		shown_replace(cell);
		width = screen_width(cell);
		if (width > t->width[column])
			t->width[column] = width;
		t->cells[t->rows * t->columns + column] = cell;
	}
	t->rows++;
}

void table_format(const struct table *t, struct buf *out)
{
	for (size_t row = 0; row < t->rows; row++) {
		for (unsigned column = 0; column < t->columns; column++) {
			const char *cell = t->cells[row * t->columns + column];

			buf_add_text(out, cell);
			if (column + 1 == t->columns)
				break;
			for (size_t pad = screen_width(cell); pad < t->width[column] + 2; pad++)
				buf_add_text(out, " ");
		}
		buf_add_text(out, "\n");
	}
}
