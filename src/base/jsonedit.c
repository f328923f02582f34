/*
 * jsonedit - edits one value in a JSON document; see jsonedit.h.
 *
 * Every edit is a copy of the document with parts removed or inserted: copy_to() copies old bytes
 * up to a position, new text goes to `out` in between. The positions are found by walking
 * (jsonwalk.h). An object is either spread, one member per line, or on one line; a new member
 * follows the style of its neighbours, or else of the objects around it.
 *
 * A new member goes to the end of its object, after the comments there, and the comma that it needs
 * goes directly after the previous value. So no comment is separated from its member, and nothing
 * is inserted after a "//" on its line.
 */
#include "base/jsonedit.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/jsonwalk.h"

#include <assert.h>
#include <string.h>

#define DEFAULT_UNIT "  "

struct place {
	const char *objects[JSONEDIT_KEYS_MAX]; /* the '{' of each object on the path */
	struct jsonwalk_member members[JSONEDIT_KEYS_MAX];
	unsigned found; /* number of keys that exist; objects[found] lacks the next */
	unsigned wanted;
};

struct style {
	const char *newline;
	const char *unit; /* one level of indentation */
	size_t unit_len;
	const char *base; /* indentation of a member's line: this, plus some units */
	size_t base_len;
	unsigned units;
	bool is_spread; /* one member per line */
	bool is_tight;  /* no space after ':' and ',' */
	bool is_padded; /* "{ ... }" */
};

struct copy {
	const char *from; /* not copied yet */
	const char *end;
	struct buf *out;
};

static void copy_to(struct copy *c, const char *to)
{
	buf_add(c->out, c->from, (size_t)(to - c->from));
	c->from = to;
}

static const char *end_of(const struct jsonscan_text *t)
{
	return t->bytes + t->len;
}

/* ---- lines ---- */

static const char *line_start(const struct jsonscan_text *t, const char *at)
{
	const char *start = jsonwalk_start(t->bytes, end_of(t));

	while (at > start && at[-1] != '\n')
		at--;
	return at;
}

static size_t blank_len(const char *at, const char *end)
{
	const char *from = at;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return (size_t)(at - from);
}

static size_t indent_len(const char *line, const char *end)
{
	size_t len = blank_len(line, end);

	return len < JSONEDIT_INDENT_MAX_BYTES ? len : JSONEDIT_INDENT_MAX_BYTES;
}

static bool is_first_on_line(const struct jsonscan_text *t, const char *at)
{
	const char *line = line_start(t, at);

	return line > t->bytes && line[-1] == '\n' && line + blank_len(line, at) == at;
}

static bool is_blank(const char *at, const char *end)
{
	for (; at < end; at++)
		if (!strchr(" \t\r\n", *at))
			return false;
	return true;
}

/* ---- finding the place ---- */

static unsigned scan_flags(unsigned flags)
{
	return (flags & JSONEDIT_ALLOW_COMMENTS ? JSONSCAN_COMMENTS : 0u) |
	       (flags & JSONEDIT_ALLOW_TRAILING_COMMAS ? JSONSCAN_TRAILING_COMMAS : 0u) |
	       JSONSCAN_MAY_BE_EMPTY;
}

static int expect_object(const struct jsonscan_text *t, const char *value, const char *key,
			 struct err *e)
{
	if (*value == '{')
		return 0;
	if (!key)
		return jsonscan_err(t, value, ERR_INVALID, e, "an object is expected, not %s",
				    jsonwalk_type_name(value));
	return jsonscan_err(t, value, ERR_INVALID, e, "'%s' is %s where an object is expected", key,
			    jsonwalk_type_name(value));
}

static int locate(const struct jsonscan_text *t, const char *const *keys, unsigned flags,
		  struct place *ret, struct err *e)
{
	const char *value;

	*ret = (struct place){ 0 };
	while (keys[ret->wanted])
		ret->wanted++;
	assert(ret->wanted > 0 && ret->wanted <= JSONEDIT_KEYS_MAX);
	if (jsonscan_check(t, scan_flags(flags), e) < 0)
		return -1;
	value = jsonwalk_skip_gap(jsonwalk_start(t->bytes, end_of(t)), end_of(t));
	if (value == end_of(t))
		return 0;
	while (ret->found < ret->wanted) {
		struct jsonwalk_member *m = &ret->members[ret->found];

		if (expect_object(t, value, ret->found ? keys[ret->found - 1] : NULL, e) < 0)
			return -1;
		ret->objects[ret->found] = value;
		if (!jsonwalk_find(value, end_of(t), keys[ret->found], m))
			break;
		value = m->value;
		ret->found++;
	}
	return 0;
}

static enum jsonedit_state judge(const struct place *p, const char *value)
{
	const struct jsonwalk_member *m = &p->members[p->wanted - 1];

	if (p->found < p->wanted)
		return JSONEDIT_ABSENT;
	return jsonwalk_is_same(value, value + strlen(value), m->value, m->value_end)
		       ? JSONEDIT_SAME
		       : JSONEDIT_DIFFERENT;
}

int jsonedit_look(const struct jsonscan_text *t, const char *const *keys, const char *value,
		  unsigned flags, enum jsonedit_state *ret, struct err *e)
{
	struct place p;

	if (locate(t, keys, flags, &p, e) < 0)
		return -1;
	*ret = judge(&p, value);
	return 0;
}

/* ---- style ---- */

static void style_init(struct style *s, const struct jsonscan_text *t)
{
	const char *newline = memchr(t->bytes, '\n', t->len);

	*s = (struct style){
		.newline = newline && newline > t->bytes && newline[-1] == '\r' ? "\r\n" : "\n",
		.unit = DEFAULT_UNIT,
		.unit_len = strlen(DEFAULT_UNIT),
		.base = "",
		.units = 1,
		.is_spread = true,
	};
}

/* The indentation of the root's first member shows the unit. */
static void learn_unit(struct style *s, const struct jsonscan_text *t, const char *root)
{
	struct jsonwalk_member first;
	const char *line;

	if (!jsonwalk_member(root + 1, end_of(t), &first) || !is_first_on_line(t, first.key))
		return;
	line = line_start(t, first.key);
	if (first.key == line)
		return;
	s->unit = line;
	s->unit_len = indent_len(line, first.key);
}

/* The style for a member of the `depth`th object on the path. */
static void learn_style(struct style *s, const struct jsonscan_text *t, const struct place *p,
			unsigned depth)
{
	struct jsonwalk_member first;
	const char *line = line_start(t, p->objects[depth]);
	unsigned i = depth + 1;

	style_init(s, t);
	learn_unit(s, t, p->objects[0]);
	s->base = line;
	s->base_len = indent_len(line, p->objects[depth]);
	while (i > 0 && !jsonwalk_member(p->objects[i - 1] + 1, end_of(t), &first))
		i--;
	if (i == 0)
		return;
	s->is_spread = memchr(p->objects[i - 1], '\n', (size_t)(first.key - p->objects[i - 1]));
	s->is_tight = first.value[-1] == ':';
	s->is_padded = p->objects[i - 1][1] == ' ';
	if (i == depth + 1 && s->is_spread) {
		s->base = line_start(t, first.key);
		s->base_len = indent_len(s->base, first.key);
		s->units = 0;
	}
}

static void put_line(struct buf *out, const struct style *s, int level)
{
	buf_add_text(out, s->newline);
	buf_add(out, s->base, s->base_len);
	for (int i = 0; i < (int)s->units + level; i++)
		buf_add(out, s->unit, s->unit_len);
}

static void put_open(struct buf *out, const struct style *s)
{
	buf_add_text(out, !s->is_spread && s->is_padded ? "{ " : "{");
}

static void put_comma(struct buf *out, const struct style *s, bool is_spread)
{
	buf_add_text(out, is_spread || s->is_tight ? "," : ", ");
}

static void put_close(struct buf *out, const struct style *s, int level)
{
	if (s->is_spread)
		put_line(out, s, level);
	else if (s->is_padded)
		buf_add_text(out, " ");
	buf_add_text(out, "}");
}

static void put_colon(struct buf *out, const struct style *s)
{
	buf_add_text(out, s->is_tight ? ":" : ": ");
}

static void put_value(struct buf *out, const struct style *s, const char *value, const char *end,
		      int level)
{
	bool is_object = *value == '{';
	struct jsonwalk_member m;
	unsigned count = 0;

	if (!is_object && *value != '[') {
		buf_add(out, value, (size_t)(jsonwalk_skip_value(value, end) - value));
		return;
	}
	for (const char *at = value + 1;
	     is_object ? jsonwalk_member(at, end, &m) : jsonwalk_item(at, end, &m); at = m.next) {
		if (count++ > 0)
			put_comma(out, s, is_object && s->is_spread);
		else if (is_object)
			put_open(out, s);
		else
			buf_add_text(out, "[");
		if (is_object) {
			if (s->is_spread)
				put_line(out, s, level + 1);
			buf_add(out, m.key, (size_t)(m.key_end - m.key));
			put_colon(out, s);
		}
		put_value(out, s, m.value, end, level + 1);
	}
	if (count == 0)
		buf_add_text(out, is_object ? "{}" : "[]");
	else if (is_object)
		put_close(out, s, level);
	else
		buf_add_text(out, "]");
}

/* Writes the member keys[0], with objects for the remaining keys around the value. */
static void put_member(struct buf *out, const struct style *s, const char *const *keys,
		       const char *value, int level)
{
	struct json quoted;

	json_init(&quoted, out);
	json_add_text(&quoted, NULL, keys[0]);
	put_colon(out, s);
	if (!keys[1]) {
		put_value(out, s, value, value + strlen(value), level);
		return;
	}
	put_open(out, s);
	if (s->is_spread)
		put_line(out, s, level + 1);
	put_member(out, s, keys + 1, value, level + 1);
	put_close(out, s, level);
}

/* ---- setting ---- */

/* The document has only blanks and comments: the comments stay in front. */
static void put_document(const struct jsonscan_text *t, const char *const *keys, const char *value,
			 struct buf *out)
{
	const char *start = jsonwalk_start(t->bytes, end_of(t));
	struct style s;

	style_init(&s, t);
	if (is_blank(start, end_of(t))) {
		buf_add(out, t->bytes, (size_t)(start - t->bytes));
	} else {
		buf_add(out, t->bytes, t->len);
		if (end_of(t)[-1] != '\n')
			buf_add_text(out, s.newline);
	}
	buf_add_text(out, "{");
	put_line(out, &s, 0);
	put_member(out, &s, keys, value, 0);
	put_close(out, &s, -1);
	buf_add_text(out, s.newline);
}

/* The position after the last comment in the range, or `at` if there is none. */
static const char *behind_comments(const char *at, const char *end)
{
	const char *behind = at;

	while (at < end) {
		if (jsonwalk_is_comment(at, end))
			at = behind = jsonwalk_comment_end(at, end);
		else
			at++;
	}
	return behind;
}

/* Inserts a member into an object that lacks keys[0]. */
static void insert(const struct jsonscan_text *t, const struct place *p, const char *const *keys,
		   const char *value, struct buf *out)
{
	const char *object = p->objects[p->found];
	const char *tail = object + 1; /* after the last member and its comma */
	struct copy c = { t->bytes, end_of(t), out };
	struct jsonwalk_member last;
	bool has_last = false, has_comma;
	const char *close, *spot;
	struct style s;

	for (; jsonwalk_member(tail, c.end, &last); tail = last.next)
		has_last = true;
	has_comma = has_last && last.comma;
	if (has_last && !has_comma)
		tail = last.value_end;
	close = jsonwalk_skip_gap(tail, c.end);
	learn_style(&s, t, p, p->found);
	spot = s.is_spread ? behind_comments(tail, close) : tail;

	copy_to(&c, tail);
	if (has_last && !has_comma)
		buf_add_text(out, ",");
	copy_to(&c, spot);
	if (s.is_spread)
		put_line(out, &s, 0);
	else if (has_last ? !s.is_tight : s.is_padded)
		buf_add_text(out, " ");
	put_member(out, &s, keys + p->found, value, 0);
	if (has_comma)
		buf_add_text(out, ",");
	if (!has_last && s.is_spread && !memchr(spot, '\n', (size_t)(close - spot))) {
		put_line(out, &s, -1);
		c.from = close;
	} else if (!has_last && !s.is_spread && is_blank(spot, close)) {
		buf_add_text(out, s.is_padded ? " " : "");
		c.from = close;
	}
	copy_to(&c, c.end);
}

static void replace(const struct jsonscan_text *t, const struct place *p, const char *value,
		    struct buf *out)
{
	const struct jsonwalk_member *m = &p->members[p->found - 1];
	struct copy c = { t->bytes, end_of(t), out };
	struct style s;

	learn_style(&s, t, p, p->found - 1);
	s.is_spread = is_first_on_line(t, m->key);
	if (s.is_spread) {
		s.base = line_start(t, m->key);
		s.base_len = indent_len(s.base, m->key);
		s.units = 0;
	}
	copy_to(&c, m->value);
	put_value(out, &s, value, value + strlen(value), 0);
	c.from = m->value_end;
	copy_to(&c, c.end);
}

static int take_text(const struct jsonscan_text *t, struct buf *out, char **ret_text,
		     size_t *ret_len, struct err *e)
{
	if (out->is_cut)
		return jsonscan_err(t, t->bytes, ERR_LIMIT, e, "would become larger than %u MiB",
				    JSONSCAN_DOCUMENT_MAX_BYTES >> 20);
	*ret_len = out->len;
	*ret_text = take_ptr(out->bytes);
	return 1;
}

int jsonedit_set(const struct jsonscan_text *t, const char *const *keys, const char *value,
		 unsigned flags, char **ret_text, size_t *ret_len, struct err *e)
{
	cleanup_buf struct buf out;
	enum jsonedit_state state;
	struct place p;

	buf_init(&out, JSONSCAN_DOCUMENT_MAX_BYTES);
	assert(strlen(value) <= JSONEDIT_VALUE_MAX_BYTES);
	if (locate(t, keys, flags, &p, e) < 0)
		return -1;
	state = judge(&p, value);
	if (state == JSONEDIT_SAME)
		return 0;
	if (state == JSONEDIT_DIFFERENT && !(flags & JSONEDIT_REPLACE))
		return jsonscan_err(t, p.members[p.found - 1].key, ERR_EXISTS, e,
				    "a different '%s' already exists", keys[p.found - 1]);
	if (!p.objects[0])
		put_document(t, keys, value, &out);
	else if (state == JSONEDIT_ABSENT)
		insert(t, &p, keys, value, &out);
	else
		replace(t, &p, value, &out);
	return take_text(t, &out, ret_text, ret_len, e);
}

/* ---- removing ---- */

static unsigned count_key(const char *object, const char *end, const char *key)
{
	struct jsonwalk_member m;
	unsigned count = 0;

	for (const char *at = object + 1; jsonwalk_member(at, end, &m); at = m.next)
		count += jsonwalk_key_is(&m, key);
	return count;
}

/* Does the object contain only that key: no other member, and no comment? */
static bool holds_only(const char *object, const char *end, const char *key)
{
	struct jsonwalk_member m;
	const char *at = object + 1;

	for (; jsonwalk_member(at, end, &m); at = m.next)
		if (!jsonwalk_key_is(&m, key) || !is_blank(at, m.key) ||
		    !is_blank(m.value_end, m.comma ? m.comma : m.next))
			return false;
	return is_blank(at, jsonwalk_skip_gap(at, end));
}

/* Omits a range, and the whole line if nothing else is on it. */
static void leave_out(struct copy *c, const struct jsonscan_text *t, const char *from,
		      const char *to)
{
	const char *rest = to + blank_len(to, c->end);

	if (is_first_on_line(t, from) && rest < c->end && (*rest == '\n' || *rest == '\r')) {
		from = line_start(t, from);
		to = rest + (rest[0] == '\r' && rest + 1 < c->end && rest[1] == '\n' ? 2 : 1);
	} else if (to[-1] == ',') {
		to = rest;
	}
	copy_to(c, from);
	c->from = to;
}

/* Removes the effective member from an object that has it. */
static void remove_one(const struct jsonscan_text *t, const char *object, const char *key,
		       struct buf *out)
{
	struct copy c = { t->bytes, end_of(t), out };
	struct jsonwalk_member m, member;
	const char *comma = NULL; /* the one before the member */
	const char *last = NULL;

	(void)jsonwalk_find(object, c.end, key, &member);
	for (const char *at = object + 1; jsonwalk_member(at, c.end, &m); at = m.next) {
		if (m.key == member.key)
			comma = last;
		last = m.comma;
	}
	if (holds_only(object, c.end, key) && count_key(object, c.end, key) == 1) {
		copy_to(&c, object + 1);
		c.from = jsonwalk_skip_gap(member.next, c.end);
	} else if (member.comma) {
		leave_out(&c, t, member.key, member.comma + 1);
	} else if (comma && is_blank(comma + 1, member.key)) {
		copy_to(&c, comma);
		c.from = member.value_end;
	} else {
		if (comma) {
			copy_to(&c, comma);
			c.from = comma + 1;
		}
		leave_out(&c, t, member.key, member.value_end);
	}
	copy_to(&c, c.end);
}

/* Chooses the key to remove: an earlier one if its object would become empty. */
static unsigned choose_depth(const struct jsonscan_text *t, const struct place *p,
			     const char *const *keys)
{
	unsigned depth = p->wanted - 1;

	/* not if an earlier duplicate of the key exists, which would then become effective */
	while (depth > 0 && holds_only(p->objects[depth], end_of(t), keys[depth]) &&
	       count_key(p->objects[depth - 1], end_of(t), keys[depth - 1]) == 1)
		depth--;
	return depth;
}

int jsonedit_remove(const struct jsonscan_text *t, const char *const *keys, unsigned flags,
		    char **ret_text, size_t *ret_len, struct err *e)
{
	const char *shorter[JSONEDIT_KEYS_MAX + 1] = { 0 };
	cleanup_buf struct buf out;
	struct jsonscan_text rest = *t;
	struct place p;
	unsigned count;

	buf_init(&out, JSONSCAN_DOCUMENT_MAX_BYTES);
	if (locate(t, keys, flags, &p, e) < 0)
		return -1;
	if (p.found < p.wanted)
		return 0;
	memcpy(shorter, keys, (choose_depth(t, &p, keys) + 1) * sizeof(*keys));
	if (locate(t, shorter, flags, &p, e) < 0)
		return -1;
	count = count_key(p.objects[p.found - 1], end_of(t), shorter[p.found - 1]);
	if (count > JSONEDIT_SAME_KEY_MAX)
		return jsonscan_err(t, p.members[p.found - 1].key, ERR_LIMIT, e,
				    "'%s' is there %u times", shorter[p.found - 1], count);
	while (count-- > 0) {
		struct buf next;

		buf_init(&next, JSONSCAN_DOCUMENT_MAX_BYTES);
		if (locate(&rest, shorter, flags, &p, e) < 0)
			return -1;
		remove_one(&rest, p.objects[p.found - 1], shorter[p.found - 1], &next);
		buf_done(&out);
		out = next;
		rest = (struct jsonscan_text){ t->name, buf_text(&out), out.len };
	}
	return take_text(t, &out, ret_text, ret_len, e);
}

bool jsonedit_is_empty(const char *bytes, size_t len)
{
	const char *end = bytes + len;
	const char *start = jsonwalk_start(bytes, end);
	const char *at = jsonwalk_skip_gap(start, end);
	struct jsonwalk_member m;
	const char *inside = at + 1;

	if (at == end)
		return is_blank(start, at);
	if (*at != '{' || jsonwalk_member(inside, end, &m))
		return false;
	at = jsonwalk_skip_gap(inside, end);
	return is_blank(inside, at) && is_blank(at + 1, end) && is_blank(start, inside - 1);
}
