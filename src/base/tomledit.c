/*
 * tomledit - sets or removes one table in the text of a TOML document; see tomledit.h.
 *
 * Theory of operation
 *
 * The document is parsed; its tree shows whether the table exists and how it was defined, its list
 * of statements where the pieces are. A piece belongs to the table if its value does, however the
 * statement is written. A change is a list of removed spans and one position for new text:
 *
 *	the table is                  what goes               what comes
 *	a value, { ... }              the value               { body } in its place
 *	inside an inline table        its pairs there         key = { body } there
 *	below its own [header]        all but the header      body, below the header
 *	only named by [table.sub]     all                     [header] and body where they began
 *	dotted keys                   all                     [header] and body at the end
 *	not there                                             [header] and body at the end
 *
 * An inline table cannot be extended elsewhere, so all pieces of a table inside it are in that same
 * inline table. The result is verified: it is parsed and compared.
 *
 * Hostile input: the document. The path and the body come from our own code, but may contain names
 * that users chose.
 */
#include "base/tomledit.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/toml.h"
#include "base/tomlcut.h"
#include "base/tomlscan.h"
#include "base/tomltree.h"

#include <assert.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define BARE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

enum place {
	PLACE_VALUE,   /* { body } */
	PLACE_PAIR,    /* key = { body } among other pairs */
	PLACE_BODY,    /* lines */
	PLACE_SECTION, /* header and lines */
	PLACE_END,     /* the same after a blank line */
};

struct edit {
	const struct tomledit_table *asked;
	size_t path_len;
	char *path_text; /* a.b */
	struct toml *document;
	const struct toml_value *table;  /* NULL: does not exist */
	const struct toml_value *around; /* the inline table that it is or will be in; NULL: none */
	struct tomlcut cut;
	enum place place;
	size_t at;
};

static void edit_done(struct edit *edit)
{
	tomlcut_done(&edit->cut);
	toml_free(edit->document);
	free(edit->path_text);
	*edit = (struct edit){ 0 };
}

/* ---- writing ---- */

void tomledit_add_string(struct buf *out, const char *text)
{
	buf_add_text(out, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			buf_addf(out, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			buf_addf(out, "\\u%04X", c);
		else
			buf_add(out, text, 1);
	}
	buf_add_text(out, "\"");
}

void tomledit_add_key(struct buf *out, const char *text)
{
	if (text[0] && strspn(text, BARE) == strlen(text))
		buf_add_text(out, text);
	else
		tomledit_add_string(out, text);
}

static void add_path(struct buf *out, const char *const *path)
{
	for (; *path; path++) {
		tomledit_add_key(out, *path);
		if (path[1])
			buf_add_text(out, ".");
	}
}

/* The line end that the document's first line has. */
static const char *newline_of(const struct tomledit_table *asked)
{
	const char *end = asked->len > 0 ? memchr(asked->text, '\n', asked->len) : NULL;

	return end && end > asked->text && end[-1] == '\r' ? "\r\n" : "\n";
}

/* Appends our lines with the document's line ends; also in strings, where each means "\n". */
static void add_lines(const struct edit *edit, const char *text, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			buf_add_text(out, newline_of(edit->asked));
		else if (text[i] != '\r')
			buf_add(out, text + i, 1);
	}
}

static void add_body(const struct edit *edit, const char *body, struct buf *out)
{
	size_t len = strlen(body);

	add_lines(edit, body, len, out);
	if (len > 0 && body[len - 1] != '\n')
		buf_add_text(out, newline_of(edit->asked));
}

/* { a = 1, b = 2 }: values may have several lines, the table itself may not. */
static void add_inline(const struct edit *edit, const struct toml *wanted, const char *body,
		       struct buf *out)
{
	const char *between = "{ ";

	for (size_t i = 0; i < wanted->statement_count; i++) {
		const struct tomltree_statement *pair = &wanted->statements[i];

		if (pair->inside)
			continue;
		buf_add_text(out, between);
		add_lines(edit, body + pair->span.start, pair->span.end - pair->span.start, out);
		between = ", ";
	}
	buf_add_text(out, between[0] == '{' ? "{}" : " }");
}

static void add_pair(const struct edit *edit, const struct toml *wanted, const char *body,
		     struct buf *out)
{
	bool is_first = edit->at == edit->around->span.start + 1;

	buf_add_text(out, is_first ? " " : ", ");
	add_path(out, edit->asked->path + edit->around->depth);
	buf_add_text(out, " = ");
	add_inline(edit, wanted, body, out);
	if (is_first)
		buf_add_text(out, " ");
}

static bool is_nothing(const struct buf *out)
{
	return out->len == 0 || strcmp(out->bytes, BYTE_ORDER_MARK) == 0;
}

/* Starts a new line after any text, with a blank one before it if needed. */
static void start_line(const struct edit *edit, struct buf *out)
{
	struct tomlcut written;
	size_t last;

	if (is_nothing(out))
		return;
	if (out->bytes[out->len - 1] != '\n')
		buf_add_text(out, newline_of(edit->asked));
	tomlcut_init(&written, out->bytes, out->len);
	last = tomlcut_line_start(&written, out->len - 1);
	if (edit->place == PLACE_END && !tomlcut_is_blank(&written, last, out->len))
		buf_add_text(out, newline_of(edit->asked));
}

static void add_new(const struct edit *edit, const struct toml *wanted, const char *body,
		    struct buf *out)
{
	switch (edit->place) {
	case PLACE_VALUE:
		add_inline(edit, wanted, body, out);
		return;
	case PLACE_PAIR:
		add_pair(edit, wanted, body, out);
		return;
	case PLACE_BODY:
	case PLACE_SECTION:
	case PLACE_END:
		break;
	}
	start_line(edit, out);
	if (edit->place != PLACE_BODY)
		buf_addf(out, "[%s]%s", edit->path_text, newline_of(edit->asked));
	add_body(edit, body, out);
}

/* ---- finding ---- */

static char *format_path(const char *const *path)
{
	cleanup_buf struct buf text = { 0 };

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	add_path(&text, path);
	return mem_dup(buf_text(&text));
}

/* Finds the table, or returns NULL and the last existing table on the path. */
static int find_table(struct edit *edit, const struct toml_value **ret_last, struct err *e)
{
	const struct toml_value *v = toml_root(edit->document);

	for (size_t i = 0; i < edit->path_len; i++) {
		*ret_last = v;
		v = toml_get(v, edit->asked->path[i]);
		if (!v)
			return 0;
		if (toml_type(v) != TOML_TABLE)
			return toml_err(v, e, "'%.128s' is %s, not a table", edit->asked->path[i],
					toml_type_name(toml_type(v)));
	}
	edit->table = v;
	*ret_last = v->parent;
	return 0;
}

static int begin(struct edit *edit, const struct tomledit_table *asked, struct err *e)
{
	const struct toml_value *last = NULL;

	edit->asked = asked;
	while (asked->path[edit->path_len])
		edit->path_len++;
	assert(edit->path_len > 0 && edit->path_len <= TOMLEDIT_PATH_MAX);
	edit->path_text = format_path(asked->path);
	tomlcut_init(&edit->cut, asked->text, asked->len);
	if (toml_parse(asked->text, asked->len, asked->name, &edit->document, e) < 0 ||
	    find_table(edit, &last, e) < 0)
		return -1;
	while (last && last->made != TOMLTREE_IN_PLACE)
		last = last->parent;
	edit->around = last;
	return 0;
}

/* ---- what to remove ---- */

static bool is_of_table(const struct edit *edit, const struct tomltree_statement *statement)
{
	const struct toml_value *v = statement->value;

	while (v && v != edit->table)
		v = v->parent;
	return v;
}

static const struct tomltree_statement *find_header(const struct edit *edit)
{
	for (size_t i = 0; i < edit->document->statement_count; i++) {
		const struct tomltree_statement *statement = &edit->document->statements[i];

		if (statement->is_header && statement->value == edit->table)
			return statement;
	}
	return NULL;
}

/* Removes all lines of the table except `kept`. Returns the first of them. */
static const struct tomltree_statement *cut_lines(struct edit *edit,
						  const struct tomltree_statement *kept)
{
	const struct tomltree_statement *first = NULL;

	for (size_t i = 0; i < edit->document->statement_count; i++) {
		const struct tomltree_statement *statement = &edit->document->statements[i];

		if (statement == kept || statement->inside || !is_of_table(edit, statement))
			continue;
		if (!first)
			first = statement;
		tomlcut_add_lines(&edit->cut, statement->span);
	}
	return first;
}

/*
 * Removes all its pairs in the inline table around it, with superfluous commas. Returns the
 * position for a new pair: after the last remaining one, or after the '{'.
 */
static size_t cut_pairs(struct edit *edit)
{
	const struct toml_span inner = { edit->around->span.start + 1, edit->around->span.end - 1 };
	size_t first = 0, end = 0, kept_end = 0; /* 0: none yet */

	for (size_t i = 0; i < edit->document->statement_count; i++) {
		const struct tomltree_statement *pair = &edit->document->statements[i];

		if (pair->inside != edit->around)
			continue;
		if (!first)
			first = pair->span.start;
		if (!is_of_table(edit, pair)) {
			if (!kept_end)
				tomlcut_add(&edit->cut,
					    (struct toml_span){ first, pair->span.start });
			kept_end = pair->span.end;
		} else if (kept_end) {
			tomlcut_add(&edit->cut, (struct toml_span){ end, pair->span.end });
		}
		end = pair->span.end;
	}
	if (kept_end)
		return kept_end;
	tomlcut_add(&edit->cut, inner);
	return inner.start;
}

/* ---- what to insert ---- */

static void replace_value(struct edit *edit)
{
	edit->place = PLACE_VALUE;
	edit->at = edit->table->span.start;
	tomlcut_add(&edit->cut, edit->table->span);
}

static void replace_pairs(struct edit *edit)
{
	edit->place = PLACE_PAIR;
	edit->at = cut_pairs(edit);
}

static void replace_lines(struct edit *edit)
{
	const struct tomltree_statement *header = find_header(edit);
	const struct tomltree_statement *first = cut_lines(edit, header);

	if (header) {
		edit->place = PLACE_BODY;
		edit->at = tomlcut_line_end(&edit->cut, header->span.end);
	} else if (first && first->is_header) {
		edit->place = PLACE_SECTION;
		edit->at = tomlcut_indent_start(&edit->cut, first->span.start);
	} else {
		edit->place = PLACE_END;
		edit->at = edit->cut.len;
	}
	tomlcut_tidy(&edit->cut, edit->at);
}

static void replace(struct edit *edit)
{
	if (edit->table && edit->table->made == TOMLTREE_IN_PLACE)
		replace_value(edit);
	else if (edit->around)
		replace_pairs(edit);
	else
		replace_lines(edit);
}

static void remove_all(struct edit *edit)
{
	edit->at = edit->cut.len;
	if (edit->around) {
		(void)cut_pairs(edit); /* nothing is inserted */
	} else {
		(void)cut_lines(edit, NULL);
		tomlcut_tidy(&edit->cut, edit->at);
	}
}

/* ---- checking ---- */

static bool is_key(const struct toml_entry *entry, const char *key)
{
	return entry->key_len == strlen(key) && memcmp(entry->key, key, entry->key_len) == 0;
}

/* NULL for NULL. */
static const struct toml_value *enter(const struct toml_value *table, const char *key)
{
	const struct toml_value *v = table ? toml_get(table, key) : NULL;

	return v && toml_type(v) == TOML_TABLE ? v : NULL;
}

/* Does `other` have everything that `table` has, except `key`? NULL is an empty table. */
static bool has_others(const struct toml_value *table, const struct toml_value *other,
		       const char *key)
{
	for (size_t i = 0; table && i < table->count; i++) {
		const struct toml_entry *entry = &table->entries[i];
		const struct toml_value *v;

		if (is_key(entry, key))
			continue;
		v = other ? tomltree_find(other, entry->key, entry->key_len) : NULL;
		if (!v || !toml_is_equal(entry->value, v))
			return false;
	}
	return true;
}

/* Tables on the path may appear or vanish with ours; everything else must be equal. */
static bool is_rest_equal(const struct toml_value *a, const struct toml_value *b,
			  const char *const *path)
{
	for (; *path; path++) {
		if (!has_others(a, b, *path) || !has_others(b, a, *path))
			return false;
		a = enter(a, *path);
		b = enter(b, *path);
	}
	return true;
}

static bool is_as_wanted(const struct edit *edit, const struct toml *result,
			 const struct toml *wanted)
{
	const struct toml_value *v = toml_root(result);
	const char *const *path = edit->asked->path;

	for (; path[1]; path++)
		v = enter(v, *path);
	v = v ? toml_get(v, *path) : NULL;
	return wanted ? v && toml_is_equal(v, toml_root(wanted)) : !v;
}

static int check(const struct edit *edit, const struct buf *out, const struct toml *wanted,
		 struct err *e)
{
	CLEANUP(toml_freep) struct toml *result = NULL;
	struct err problem = { 0 };

	if (toml_parse(buf_text(out), out->len, edit->asked->name, &result, &problem) < 0) {
		if (problem.code == ERR_LIMIT) {
			*e = problem;
			return err_wrap(e, "with the table '%.128s' in it", edit->path_text);
		}
	} else if (is_as_wanted(edit, result, wanted) &&
		   is_rest_equal(toml_root(edit->document), toml_root(result), edit->asked->path)) {
		return 0;
	}
	return err_set(e, ERR_UNSUPPORTED,
		       "%s: the table '%.128s' cannot be changed without changing more than it; "
		       "change it by hand",
		       edit->document->name, edit->path_text);
}

/* ---- executing ---- */

/* Writes the text without the removed spans and with the new text; wanted NULL: none. */
static int finish(const struct edit *edit, const struct toml *wanted, const char *body,
		  struct buf *ret, struct err *e)
{
	cleanup_buf struct buf out = { 0 };

	buf_init(&out, TOML_DOCUMENT_MAX_BYTES + 1); /* one more, so that check() detects excess */
	tomlcut_copy(&edit->cut, 0, edit->at, &out);
	if (wanted)
		add_new(edit, wanted, body, &out);
	tomlcut_copy(&edit->cut, edit->at, edit->cut.len, &out);
	if (check(edit, &out, wanted, e) < 0)
		return -1;
	*ret = out;
	out = (struct buf){ 0 };
	return 0;
}

static int leave(const struct edit *edit, struct buf *ret)
{
	buf_init(ret, TOML_DOCUMENT_MAX_BYTES);
	buf_add(ret, edit->asked->text, edit->asked->len);
	return TOMLEDIT_UNCHANGED;
}

static int refuse_other(const struct edit *edit, struct err *e)
{
	cleanup_free char *words =
		mem_format("the table '%.128s' is there, with other contents", edit->path_text);

	return tomlscan_say(edit->document->name, edit->table->where, ERR_EXISTS, words, e);
}

/* Parses the path too, which may contain a name that a user chose. */
static int parse_wanted(const struct edit *edit, const char *body, struct toml **ret, struct err *e)
{
	cleanup_free char *header = mem_format("[%s]", edit->path_text);
	CLEANUP(toml_freep) struct toml *path = NULL;
	CLEANUP(toml_freep) struct toml *wanted = NULL;

	if (toml_parse(header, strlen(header), "the table's name", &path, e) < 0 ||
	    toml_parse(body, strlen(body), "the table's body", &wanted, e) < 0)
		return -1;
	for (size_t i = 0; i < wanted->statement_count; i++)
		if (wanted->statements[i].is_header)
			return toml_err(wanted->statements[i].value, e,
					"the body of a table has no headers");
	*ret = take_ptr(wanted);
	return 0;
}

int tomledit_set_table(const struct tomledit_table *table, const char *body, unsigned flags,
		       struct buf *ret, struct err *e)
{
	CLEANUP(toml_freep) struct toml *wanted = NULL;
	CLEANUP(edit_done) struct edit edit = { 0 };

	if (begin(&edit, table, e) < 0 || parse_wanted(&edit, body, &wanted, e) < 0)
		return -1;
	if (edit.table && toml_is_equal(edit.table, toml_root(wanted)))
		return leave(&edit, ret);
	if (edit.table && !(flags & TOMLEDIT_REPLACE))
		return refuse_other(&edit, e);
	replace(&edit);
	if (finish(&edit, wanted, body, ret, e) < 0)
		return -1;
	return edit.table ? TOMLEDIT_REPLACED : TOMLEDIT_ADDED;
}

int tomledit_remove_table(const struct tomledit_table *table, struct buf *ret, struct err *e)
{
	CLEANUP(edit_done) struct edit edit = { 0 };

	if (begin(&edit, table, e) < 0)
		return -1;
	if (!edit.table)
		return leave(&edit, ret);
	remove_all(&edit);
	if (finish(&edit, NULL, "", ret, e) < 0)
		return -1;
	return TOMLEDIT_REMOVED;
}
