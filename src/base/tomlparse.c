/*
 * tomlparse - the grammar of a TOML document; see tomlparse.h.
 *
 * Theory of operation
 *
 * Recursive descent over a tomlscan. A document is lines: a header selects the table that the
 * following pairs go into. A key is resolved while it is read, part by part: tomltree decides where
 * each part leads and whether that is allowed. The value's entry is created before the value is
 * read, and the parser of its type fills it. Arrays and inline tables recurse; the depth of the
 * tree, which tomltree limits, is also the depth of that recursion.
 */
#include "base/tomlparse.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/tomlnumber.h"
#include "base/tomltext.h"
#include "base/tomltime.h"

#include <string.h>

#define WORD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.:"

struct parser {
	struct tomlscan *s;
	struct toml *t;
};

static int parse_value(struct parser *p, struct toml_value *v, struct err *e);
static int parse_pair(struct parser *p, struct toml_value *table, struct err *e);

/* ---- keys ---- */

struct part {
	struct buf text;
	struct tomlscan_mark start;
	struct tomlscan after; /* the scanner at its end, only for error messages */
};

static void part_done(struct part *part)
{
	buf_done(&part->text);
}

/* Reads one part and the blanks around it. `part` is reused: its old content is freed. */
static int take_part(struct parser *p, struct part *part, struct err *e)
{
	buf_done(&part->text);
	buf_init(&part->text, TOML_DOCUMENT_MAX_BYTES);
	tomlscan_skip_blank(p->s);
	part->start = tomlscan_mark(p->s);
	if (tomltext_take_key(p->s, &part->text, e) < 0)
		return -1;
	part->after = *p->s;
	tomlscan_skip_blank(p->s);
	return 0;
}

typedef const char *step_fn(struct toml *t, struct toml_value *table,
			    const struct tomltree_key *key, struct toml_value **ret,
			    const struct toml_value **ret_other);

/* Executes one step of tomltree and reports its error. */
static int take_step(struct parser *p, step_fn *step, struct toml_value *table,
		     const struct part *part, struct toml_value **ret, struct err *e)
{
	const struct tomltree_key key = { buf_text(&part->text), part->text.len, part->start.where,
					  tomlscan_span(&part->after, part->start.at) };
	const struct toml_value *other = NULL;
	const char *problem = step(p->t, table, &key, ret, &other);

	if (!problem)
		return 0;
	if (!other)
		return tomlscan_err_limit(&part->after, part->start, e, problem);
	return tomlscan_err(&part->after, part->start, e, "%s (line %u)", problem,
			    other->where.line);
}

/* Resolves a dotted key: `inside` for each part but the last, `last` for that one. */
static int walk(struct parser *p, step_fn *inside, step_fn *last, struct toml_value *table,
		struct toml_value **ret, struct err *e)
{
	CLEANUP(part_done) struct part part = { 0 };

	for (;;) {
		if (take_part(p, &part, e) < 0)
			return -1;
		if (!tomlscan_take(p->s, "."))
			return take_step(p, last, table, &part, ret, e);
		if (take_step(p, inside, table, &part, &table, e) < 0)
			return -1;
	}
}

/* ---- values ---- */

static int parse_string(struct parser *p, struct toml_value *v, struct err *e)
{
	CLEANUP(buf_done) struct buf text = { 0 };

	buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
	if (tomltext_take_string(p->s, &text, e) < 0)
		return -1;
	v->type = TOML_STRING;
	v->count = text.len;
	v->text = mem_dup_bytes(buf_text(&text), text.len);
	return 0;
}

/* A single space may separate a date from a time; otherwise a space ends a word. */
static size_t word_len(const struct tomlscan *s)
{
	size_t left = (size_t)(s->end - s->at), len = 0;

	while (len < left && strchr(WORD_CHARACTERS, s->at[len]))
		len++;
	if (tomltime_is_date(s->at, len) && left - len > 3 && s->at[len] == ' ' &&
	    tomltime_is_likely(s->at + len + 1, left - len - 1))
		for (len++; len < left && strchr(WORD_CHARACTERS, s->at[len]);)
			len++;
	return len;
}

static bool parse_bool(const char *word, size_t len, struct toml_value *v)
{
	v->type = TOML_BOOL;
	v->is_true = len == 4 && memcmp(word, "true", 4) == 0;
	return v->is_true || (len == 5 && memcmp(word, "false", 5) == 0);
}

/* Parses any value without quotes or brackets. */
static int parse_word(struct parser *p, struct toml_value *v, struct err *e)
{
	struct tomlscan_mark start = tomlscan_mark(p->s);
	const char *word = p->s->at;
	size_t len = word_len(p->s);
	const char *problem;

	if (len == 0)
		return tomlscan_err(p->s, start, e, "a value is expected");
	tomlscan_skip(p->s, len);
	if (len > TOML_WORD_MAX_BYTES)
		return tomlscan_err_limit(p->s, start, e, "the value is too long");
	if (parse_bool(word, len, v))
		return 0;
	if (tomltime_is_likely(word, len))
		problem = tomltime_parse(word, len, v);
	else
		problem = tomlnumber_parse(word, len, v);
	return problem ? tomlscan_err(p->s, start, e, "%s", problem) : 0;
}

static int parse_item(struct parser *p, struct toml_value *array, struct err *e)
{
	struct tomlscan_mark start = tomlscan_mark(p->s);
	struct toml_value *item = NULL;
	const char *problem = tomltree_append(p->t, array, start.where, &item);

	if (problem)
		return tomlscan_err_limit(p->s, start, e, problem);
	return parse_value(p, item, e);
}

static int parse_array(struct parser *p, struct toml_value *v, struct err *e)
{
	v->type = TOML_ARRAY;
	v->made = TOMLTREE_IN_PLACE;
	tomlscan_skip(p->s, 1);
	for (;;) {
		tomlscan_skip_lines(p->s);
		if (tomlscan_take(p->s, "]"))
			return 0;
		if (parse_item(p, v, e) < 0)
			return -1;
		tomlscan_skip_lines(p->s);
		if (tomlscan_take(p->s, "]"))
			return 0;
		if (!tomlscan_take(p->s, ","))
			return tomlscan_err(p->s, tomlscan_mark(p->s), e,
					    "',' or ']' is expected in the array of line %u",
					    v->where.line);
	}
}

static int parse_inline_table(struct parser *p, struct toml_value *v, struct err *e)
{
	v->type = TOML_TABLE;
	v->made = TOMLTREE_IN_PLACE;
	tomlscan_skip(p->s, 1);
	tomlscan_skip_blank(p->s);
	if (tomlscan_take(p->s, "}"))
		return 0;
	for (;;) {
		if (parse_pair(p, v, e) < 0)
			return -1;
		tomlscan_skip_blank(p->s);
		if (tomlscan_take(p->s, "}"))
			return 0;
		if (!tomlscan_take(p->s, ","))
			return tomlscan_err(p->s, tomlscan_mark(p->s), e,
					    "',' or '}' is expected in the same line");
	}
}

static int parse_any(struct parser *p, struct toml_value *v, struct err *e)
{
	switch (tomlscan_peek(p->s)) {
	case '"':
	case '\'':
		return parse_string(p, v, e);
	case '[':
		return parse_array(p, v, e);
	case '{':
		return parse_inline_table(p, v, e);
	default:
		return parse_word(p, v, e);
	}
}

static int parse_value(struct parser *p, struct toml_value *v, struct err *e)
{
	const char *start = p->s->at;

	v->where = p->s->where;
	if (parse_any(p, v, e) < 0)
		return -1;
	v->span = tomlscan_span(p->s, start);
	return 0;
}

/* ---- lines ---- */

/* key = value */
static int parse_pair(struct parser *p, struct toml_value *table, struct err *e)
{
	struct toml_value *v = NULL;
	const char *start;

	tomlscan_skip_blank(p->s);
	start = p->s->at;
	if (walk(p, tomltree_enter_dotted, tomltree_add, table, &v, e) < 0)
		return -1;
	if (!tomlscan_take(p->s, "="))
		return tomlscan_err(p->s, tomlscan_mark(p->s), e, "'=' is expected after a key");
	tomlscan_skip_blank(p->s);
	if (parse_value(p, v, e) < 0)
		return -1;
	tomltree_state(p->t, &(struct tomltree_statement){
				     .span = tomlscan_span(p->s, start),
				     .value = v,
				     .inside = table->made == TOMLTREE_IN_PLACE ? table : NULL,
			     });
	return 0;
}

/* [table] or [[array of tables]] */
static int parse_header(struct parser *p, struct toml_value **ret_section, struct err *e)
{
	bool is_item = tomlscan_is(p->s, "[[");
	const char *close = is_item ? "]]" : "]";
	const char *start = p->s->at;

	tomlscan_skip(p->s, strlen(close));
	if (walk(p, tomltree_enter_header, is_item ? tomltree_define_item : tomltree_define_table,
		 p->t->root, ret_section, e) < 0)
		return -1;
	if (!tomlscan_take(p->s, close))
		return tomlscan_err(p->s, tomlscan_mark(p->s), e,
				    "'%s' is expected after a table's name", close);
	tomltree_state(p->t, &(struct tomltree_statement){
				     .span = tomlscan_span(p->s, start),
				     .value = *ret_section,
				     .is_header = true,
			     });
	return 0;
}

static int expect_end_of_line(struct parser *p, struct err *e)
{
	tomlscan_skip_blank(p->s);
	tomlscan_skip_comment(p->s);
	if (p->s->at == p->s->end || tomlscan_take_newline(p->s))
		return 0;
	return tomlscan_err(p->s, tomlscan_mark(p->s), e, "the end of the line is expected");
}

int tomlparse_document(struct tomlscan *s, struct toml *t, struct err *e)
{
	struct parser p = { s, t };
	struct toml_value *section = t->root;

	for (;;) {
		tomlscan_skip_lines(s);
		if (s->at == s->end)
			return 0;
		if (tomlscan_peek(s) == '[') {
			if (parse_header(&p, &section, e) < 0)
				return -1;
		} else if (parse_pair(&p, section, e) < 0) {
			return -1;
		}
		if (expect_end_of_line(&p, e) < 0)
			return -1;
	}
}
