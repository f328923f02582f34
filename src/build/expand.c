/*
 * expand - variables and words; see expand.h.
 *
 * Theory of operation. One pass over the text writes the result and, beside it, the list of words:
 * what is quoted or escaped joins the current word as it is, everything else, values included, is
 * split at blanks. A "${" starts the same pass for what stands after the modifier, up to its own
 * closing bracket.
 */
#include "build/expand.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_STOP 0

/* One expansion: where it reads, and the words that it has found. */
struct pass {
	const struct expand *x;
	const char *at;
	unsigned depth;
	bool is_raw; /* escapes stay */
	struct buf word;
	bool is_in_word;
	char **words;
	bool is_full; /* more words than a list can have */
};

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* ---- words ---- */

static void end_word(struct pass *p)
{
	if (p->word.len > 0 && !keyrows_list_add(&p->words, buf_text(&p->word)))
		p->is_full = true;
	p->word.len = 0;
	p->is_in_word = false;
}

static void add_raw(struct pass *p, const char *bytes, size_t len)
{
	buf_add(&p->word, bytes, len);
	p->is_in_word = true;
}

static void add_split(struct pass *p, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_blank(text[i]))
			add_raw(p, text + i, 1);
		else if (p->is_in_word && p->word.len > 0)
			end_word(p);
	}
}

/* ---- patterns ---- */

/* A pattern costs its length times the square of the value's: no more than this. */
#define PATTERN_VALUE_MAX_BYTES 2048u
#define PATTERN_MAX_BYTES 128u

/* Which places of a pattern can come next; a '*' may also be over. */
static void reach(const char *pattern, bool *places, size_t at)
{
	places[at] = true;
	while (pattern[at] == '*')
		places[++at] = true;
}

static void step(const char *pattern, size_t len, const bool *from, bool *to, char c)
{
	memset(to, 0, (len + 1) * sizeof(*to));
	for (size_t i = 0; i < len; i++) {
		bool is_escaped = pattern[i] == '\\' && i + 1 < len;

		if (!from[i])
			continue;
		if (pattern[i] == '*')
			reach(pattern, to, i);
		else if (pattern[i] == '?' || pattern[i + is_escaped] == c)
			reach(pattern, to, i + is_escaped + 1);
	}
}

/*
 * The length of the text's beginning that the pattern matches, shortest or longest; -1: none. '*'
 * and '?' as usual, a backslash before a character that means something. All places that the
 * pattern can be at are followed at once, so no pattern is slow.
 */
static long match_prefix(const char *pattern, const char *text, bool is_longest)
{
	bool sets[2][PATTERN_MAX_BYTES + 1] = { 0 };
	size_t len = strlen(pattern);
	long found = -1;

	reach(pattern, sets[0], 0);
	for (size_t i = 0;; i++) {
		bool *now = sets[i % 2];

		if (now[len])
			found = (long)i;
		if (!text[i] || (found >= 0 && !is_longest))
			return found;
		step(pattern, len, now, sets[(i + 1) % 2], text[i]);
	}
}

static bool is_match(const char *pattern, const char *text)
{
	return match_prefix(pattern, text, true) == (long)strlen(text);
}

static char *trim_prefix(const char *pattern, const char *value, bool is_longest)
{
	long n = match_prefix(pattern, value, is_longest);

	return mem_dup(value + (n > 0 ? n : 0));
}

static char *trim_suffix(const char *pattern, const char *value, bool is_longest)
{
	size_t len = strlen(value);

	for (size_t i = 0; i <= len; i++) {
		size_t at = is_longest ? i : len - i;

		if (is_match(pattern, value + at))
			return mem_dup_bytes(value, at);
	}
	return mem_dup(value);
}

static void replace(const char *pattern, const char *with, const char *value, bool is_all,
		    struct buf *out)
{
	bool is_done = false;

	while (*value) {
		long n = is_done ? -1 : match_prefix(pattern, value, true);

		if (n <= 0) {
			buf_add(out, value++, 1);
			continue;
		}
		buf_add_text(out, with);
		value += n;
		is_done = !is_all;
	}
}

/* Removes the backslash before a '/' or a '}', which had to be escaped to stand in ${...}. */
static void unescape_ends(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '\\' && (from[1] == '/' || from[1] == '}'))
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

static int check_pattern(const char *pattern, const char *value, struct err *e)
{
	if (strlen(pattern) > PATTERN_MAX_BYTES || strlen(value) > PATTERN_VALUE_MAX_BYTES)
		return err_set(
			e, ERR_LIMIT,
			"a pattern of more than %u bytes, or a value of more than %u that it "
			"is for",
			PATTERN_MAX_BYTES, PATTERN_VALUE_MAX_BYTES);
	for (const char *at = pattern; (at = strchr(at, '\\')); at += 2)
		if (!at[1] || !strchr("*?\\", at[1]))
			return err_set(e, ERR_INVALID,
				       "'%s': a backslash in a pattern stands before '*', '?' or "
				       "another backslash",
				       pattern);
	return 0;
}

/* ---- ${...} ---- */

static int run_until(struct pass *p, char stop, bool is_raw, struct buf *out, struct err *e);

/* A part of ${...}, up to its end, in a pass of its own. */
static int read_part(struct pass *p, char stop, bool is_raw, char **ret, struct err *e)
{
	struct pass inner = { .x = p->x, .at = p->at, .depth = p->depth + 1 };
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, EXPAND_RESULT_MAX_BYTES);
	buf_init(&inner.word, EXPAND_RESULT_MAX_BYTES);
	if (inner.depth > EXPAND_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "more than %u ${...} within each other",
			       EXPAND_DEPTH_MAX);
	r = run_until(&inner, stop, is_raw, &out, e);
	p->at = inner.at;
	buf_done(&inner.word);
	keyrows_list_free(&inner.words);
	if (r < 0)
		return -1;
	*ret = mem_dup(buf_text(&out));
	return 0;
}

static const char *read_name(struct pass *p, char **ret)
{
	const char *start = p->at;

	if (isdigit((unsigned char)*p->at))
		while (isdigit((unsigned char)*p->at))
			p->at++;
	else if (*p->at && strchr("@*#?-$!", *p->at))
		p->at++;
	else
		while (is_name_char(*p->at))
			p->at++;
	*ret = mem_dup_bytes(start, (size_t)(p->at - start));
	return *ret;
}

static const char *get(const struct pass *p, const char *name)
{
	return p->x->get && name[0] ? p->x->get(p->x->context, name) : NULL;
}

static int refuse_modifier(const char *name, const char *modifier, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "${%s%s...}: there is no such modifier (use :-  :+  :?  #  %%  or /)", name,
		       modifier);
}

static int apply_trim(char kind, const char *word, const char *value, char **ret, struct err *e)
{
	bool is_longest = word[0] == kind;

	word += is_longest;
	if (check_pattern(word, value, e) < 0)
		return -1;
	*ret = kind == '%' ? trim_suffix(word, value, is_longest)
			   : trim_prefix(word, value, is_longest);
	return 0;
}

static int expand_replace(struct pass *p, const char *name, struct buf *out, struct err *e)
{
	cleanup_free char *pattern = NULL, *with = NULL;
	bool is_all = *p->at == '/';
	const char *value;

	p->at += is_all;
	if (read_part(p, '/', true, &pattern, e) < 0 || read_part(p, '}', true, &with, e) < 0)
		return -1;
	value = get(p, name);
	if (!value && (p->x->flags & EXPAND_KEEP_UNSET)) {
		buf_addf(out, "${%s/%s%s/%s}", name, is_all ? "/" : "", pattern, with);
		return 0;
	}
	unescape_ends(pattern);
	unescape_ends(with);
	if (check_pattern(pattern, value ? value : "", e) < 0)
		return -1;
	replace(pattern, with, value ? value : "", is_all, out);
	return 0;
}

static int expand_modifier(struct pass *p, const char *name, struct buf *out, struct err *e)
{
	bool is_null_unset = *p->at == ':';
	char kind = p->at[is_null_unset], text[3] = { p->at[0], is_null_unset ? kind : '\0', '\0' };
	cleanup_free char *word = NULL, *trimmed = NULL;
	bool is_pattern = kind == '#' || kind == '%';
	const char *value;

	if (!kind)
		return err_set(e, ERR_INVALID, "${%s has no closing '}'", name);
	if (!strchr("+-?#%", kind) || (is_null_unset && is_pattern))
		return refuse_modifier(name, text, e);
	p->at += is_null_unset + 1;
	if (read_part(p, '}', is_pattern, &word, e) < 0)
		return -1;
	value = get(p, name);
	if (!value && (p->x->flags & EXPAND_KEEP_UNSET)) {
		buf_addf(out, "${%s%s%s}", name, text, word);
		return 0;
	}
	if (is_pattern) {
		unescape_ends(word);
		if (apply_trim(kind, word, value ? value : "", &trimmed, e) < 0)
			return -1;
		buf_add_text(out, trimmed);
		return 0;
	}
	if (is_null_unset && value && !value[0])
		value = NULL;
	if (kind == '?' && !value)
		return err_set(e, ERR_INVALID, "%s: %s", name,
			       word[0]         ? word
			       : is_null_unset ? "it is not set, or empty"
					       : "it is not set");
	buf_add_text(out, kind == '+' ? (value ? word : "") : value ? value : word);
	return 0;
}

static int expand_braced(struct pass *p, struct buf *out, struct err *e)
{
	cleanup_free char *name = NULL;
	const char *value;

	if (!*p->at)
		return err_set(e, ERR_INVALID, "${ has no closing '}'");
	if (strchr("{}:", *p->at))
		return err_set(e, ERR_INVALID, "${%c: the name of a variable is missing", *p->at);
	read_name(p, &name);
	switch (*p->at) {
	case '\0':
		return err_set(e, ERR_INVALID, "${%s has no closing '}'", name);
	case '}':
		p->at++;
		value = get(p, name);
		if (!value && (p->x->flags & EXPAND_KEEP_UNSET))
			buf_addf(out, "${%s}", name);
		else
			buf_add_text(out, value ? value : "");
		return 0;
	case '/':
		p->at++;
		return expand_replace(p, name, out, e);
	default:
		return expand_modifier(p, name, out, e);
	}
}

/* `at` is on the '$'. */
static int expand_dollar(struct pass *p, struct buf *out, struct err *e)
{
	cleanup_free char *name = NULL;
	const char *value;

	p->at++;
	if (*p->at == '{') {
		p->at++;
		return expand_braced(p, out, e);
	}
	if (!read_name(p, &name)[0]) {
		buf_add_text(out, "$");
		return 0;
	}
	value = get(p, name);
	if (!value && (p->x->flags & EXPAND_KEEP_UNSET))
		buf_addf(out, "$%s", name);
	else
		buf_add_text(out, value ? value : "");
	return 0;
}

/* ---- quotes ---- */

static int read_single(struct pass *p, struct buf *out, struct err *e)
{
	const char *end = strchr(p->at + 1, '\'');
	bool is_raw = p->x->flags & EXPAND_RAW;

	if (!end)
		return err_set(e, ERR_INVALID, "a single quote (') is not closed");
	if (is_raw)
		buf_add(out, p->at, (size_t)(end + 1 - p->at));
	else
		buf_add(out, p->at + 1, (size_t)(end - p->at - 1));
	p->at = end + 1;
	return 0;
}

static int read_double(struct pass *p, struct buf *out, struct err *e)
{
	bool is_raw = p->x->flags & EXPAND_RAW;

	for (p->at++, buf_add(out, "\"", is_raw); *p->at != '"';) {
		if (!*p->at)
			return err_set(e, ERR_INVALID, "a double quote (\") is not closed");
		if (*p->at == '$') {
			if (expand_dollar(p, out, e) < 0)
				return -1;
			continue;
		}
		if (*p->at == p->x->escape) {
			bool is_special = p->at[1] && (p->at[1] == '"' || p->at[1] == '$' ||
						       p->at[1] == p->x->escape);

			if (p->is_raw)
				buf_add(out, p->at, 1);
			p->at += is_special || !p->at[1];
			if (!*p->at)
				continue;
		}
		buf_add(out, p->at++, 1);
	}
	p->at++;
	buf_add(out, "\"", is_raw);
	return 0;
}

/* ---- the pass ---- */

/* A '$' or something quoted; false: an ordinary character. */
static int read_special(struct pass *p, struct buf *out, struct err *e)
{
	cleanup_buf struct buf part;
	bool is_dollar = *p->at == '$';
	int r;

	buf_init(&part, EXPAND_RESULT_MAX_BYTES);
	r = is_dollar        ? expand_dollar(p, &part, e)
	    : *p->at == '\'' ? read_single(p, &part, e)
			     : read_double(p, &part, e);
	if (r < 0)
		return -1;
	buf_add(out, buf_text(&part), part.len);
	if (is_dollar)
		add_split(p, buf_text(&part), part.len);
	else
		add_raw(p, buf_text(&part), part.len);
	return 0;
}

static void read_escape(struct pass *p, struct buf *out)
{
	if (p->is_raw) {
		add_raw(p, p->at, 1);
		buf_add(out, p->at, 1);
	}
	p->at++;
	if (!*p->at)
		return;
	add_raw(p, p->at, 1);
	buf_add(out, p->at++, 1);
}

static int run_until(struct pass *p, char stop, bool is_raw, struct buf *out, struct err *e)
{
	const char *special = p->x->flags & EXPAND_AS_IS ? "$" : "$'\"";

	p->is_raw = is_raw || (p->x->flags & EXPAND_RAW);
	while (*p->at) {
		if (stop && *p->at == stop) {
			p->at++;
			return 0;
		}
		if (out->is_cut)
			break;
		if (strchr(special, *p->at)) {
			if (read_special(p, out, e) < 0)
				return -1;
		} else if (*p->at == p->x->escape) {
			read_escape(p, out);
		} else {
			add_split(p, p->at, 1);
			buf_add(out, p->at++, 1);
		}
	}
	if (out->is_cut || p->word.is_cut || p->is_full)
		return err_set(e, ERR_LIMIT, "what variables make of it is more than %u bytes",
			       EXPAND_RESULT_MAX_BYTES);
	return stop ? err_set(e, ERR_INVALID, "a ${...} has no '%c'", stop) : 0;
}

static int run(const struct expand *x, const char *text, char **ret, char ***ret_words,
	       struct err *e)
{
	struct pass p = { .x = x, .at = text };
	struct buf out;
	int r;

	buf_init(&out, EXPAND_RESULT_MAX_BYTES);
	buf_init(&p.word, EXPAND_RESULT_MAX_BYTES);
	r = run_until(&p, NO_STOP, false, &out, e);
	end_word(&p);
	if (r == 0 && ret)
		*ret = mem_dup(buf_text(&out));
	if (r == 0 && ret_words)
		*ret_words = p.words ? take_ptr(p.words) : mem_alloc(sizeof(char *));
	keyrows_list_free(&p.words);
	buf_done(&p.word);
	buf_done(&out);
	return r;
}

int expand_word(const struct expand *x, const char *text, char **ret, struct err *e)
{
	return run(x, text, ret, NULL, e);
}

int expand_words(const struct expand *x, const char *text, char ***ret, struct err *e)
{
	return run(x, text, NULL, ret, e);
}
