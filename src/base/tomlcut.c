/* tomlcut - removes parts of the text of a TOML document; see tomlcut.h. */
#include "base/tomlcut.h"

#include "base/mem.h"

#include <stdlib.h>

#define SPANS_FIRST 16u

void tomlcut_init(struct tomlcut *c, const char *text, size_t len)
{
	*c = (struct tomlcut){ .text = text, .len = len };
}

void tomlcut_done(struct tomlcut *c)
{
	free(c->spans);
	*c = (struct tomlcut){ 0 };
}

/* ---- lines ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

size_t tomlcut_line_start(const struct tomlcut *c, size_t at)
{
	while (at > 0 && c->text[at - 1] != '\n')
		at--;
	return at;
}

size_t tomlcut_indent_start(const struct tomlcut *c, size_t at)
{
	while (at > 0 && is_blank(c->text[at - 1]))
		at--;
	return at;
}

size_t tomlcut_line_end(const struct tomlcut *c, size_t at)
{
	while (at < c->len && c->text[at] != '\n')
		at++;
	return at < c->len ? at + 1 : at;
}

bool tomlcut_is_blank(const struct tomlcut *c, size_t from, size_t to)
{
	for (; from < to; from++)
		if (!is_blank(c->text[from]) && c->text[from] != '\r' && c->text[from] != '\n')
			return false;
	return true;
}

/* ---- cutting ---- */

void tomlcut_add(struct tomlcut *c, struct toml_span span)
{
	if (c->count == c->capacity) {
		c->capacity = c->capacity ? 2 * c->capacity : SPANS_FIRST;
		c->spans = mem_grow(c->spans, c->capacity, sizeof(*c->spans));
	}
	c->spans[c->count++] = span;
}

void tomlcut_add_lines(struct tomlcut *c, struct toml_span statement)
{
	struct toml_span span = statement;

	while (span.end < c->len && is_blank(c->text[span.end]))
		span.end++;
	if (span.end == c->len || c->text[span.end] != '#') {
		span.start = tomlcut_indent_start(c, span.start); /* but keep a byte order mark */
		span.end = tomlcut_line_end(c, span.end);
	}
	tomlcut_add(c, span);
}

/* The span ends with a line, with the text or before a comment, which is not blank. */
static void tidy_span(const struct tomlcut *c, struct toml_span *span)
{
	size_t before = span->start > 0 ? tomlcut_line_start(c, span->start - 1) : 0;
	size_t after = tomlcut_line_end(c, span->end);

	if (!tomlcut_is_blank(c, before, span->start))
		return;
	if (span->end == c->len)
		span->start = before;
	else if (tomlcut_is_blank(c, span->end, after))
		span->end = after;
}

void tomlcut_tidy(struct tomlcut *c, size_t insert_at)
{
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct toml_span *last = count > 0 ? &c->spans[count - 1] : NULL;

		if (last && tomlcut_is_blank(c, last->end, c->spans[i].start))
			last->end = c->spans[i].end;
		else
			c->spans[count++] = c->spans[i];
	}
	c->count = count;
	for (size_t i = 0; i < c->count; i++)
		if (c->spans[i].start != insert_at)
			tidy_span(c, &c->spans[i]);
}

void tomlcut_copy(const struct tomlcut *c, size_t from, size_t to, struct buf *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct toml_span *span = &c->spans[i];

		if (span->end <= from || span->start >= to)
			continue;
		buf_add(out, c->text + from, span->start - from);
		from = span->end;
	}
	buf_add(out, c->text + from, to - from);
}
