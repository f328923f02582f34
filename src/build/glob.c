/*
 * glob - patterns of file names; see glob.h.
 *
 * Theory of operation. A pattern becomes a row of tokens; matching follows all places in that row
 * that are possible at once, byte by byte.
 */
#include "build/glob.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>

enum token_kind {
	TOKEN_BYTE,
	TOKEN_ANY,  /* '?' */
	TOKEN_STAR, /* '*' */
	TOKEN_SET,  /* "[...]" */
	TOKEN_DEEP, /* "**" before something: nothing, or anything that ends in a slash */
	TOKEN_ALL,  /* "**" at the end */
};

struct token {
	enum token_kind kind;
	char byte;
	const char *set; /* behind the '[' and a '^' */
	size_t set_len;
	bool is_negated;
};

struct glob {
	char *text;
	struct token *tokens;
	size_t count;
};

void glob_free(struct glob *g)
{
	if (!g)
		return;
	free(g->text);
	free(g->tokens);
	free(g);
}

static void glob_freep(struct glob **g)
{
	glob_free(*g);
}

static void add(struct glob *g, struct token t)
{
	g->tokens[g->count++] = t;
}

/* `at` is behind the '['; returns what is behind the ']', NULL if there is none. */
static const char *read_set(struct glob *g, const char *at)
{
	struct token t = { .kind = TOKEN_SET, .is_negated = *at == '^' };

	at += t.is_negated;
	t.set = at;
	for (; *at && (*at != ']' || at == t.set); at++)
		if (*at == '\\' && at[1])
			at++;
	if (!*at)
		return NULL;
	t.set_len = (size_t)(at - t.set);
	add(g, t);
	return at + 1;
}

static const char *read_stars(struct glob *g, const char *at, unsigned flags)
{
	bool is_deep = (flags & GLOB_DEEP) && at[1] == '*';

	at += strspn(at, "*");
	if (!is_deep) {
		add(g, (struct token){ .kind = TOKEN_STAR });
		return at;
	}
	at += *at == '/';
	add(g, (struct token){ .kind = *at ? TOKEN_DEEP : TOKEN_ALL });
	return at;
}

int glob_compile(const char *pattern, unsigned flags, struct glob **ret, struct err *e)
{
	CLEANUP(glob_freep) struct glob *g = mem_alloc(sizeof(*g));
	size_t len = strlen(pattern);
	const char *at;

	if (len > GLOB_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "a pattern of more than %u bytes", GLOB_MAX_BYTES);
	g->text = mem_dup(pattern);
	g->tokens = mem_alloc((len + 1) * sizeof(*g->tokens));
	for (at = g->text; at && *at;) {
		if (*at == '*') {
			at = read_stars(g, at, flags);
		} else if (*at == '?') {
			add(g, (struct token){ .kind = TOKEN_ANY });
			at++;
		} else if (*at == '[') {
			at = read_set(g, at + 1);
		} else {
			if (*at == '\\' && !*++at)
				break;
			add(g, (struct token){ .kind = TOKEN_BYTE, .byte = *at++ });
		}
	}
	if (!at || (len > 0 && pattern[len - 1] == '\\' && (len < 2 || pattern[len - 2] != '\\')))
		return err_set(e, ERR_INVALID, "the pattern '%.60s' ends in the middle of %s",
			       pattern, at ? "an escape" : "a '['");
	*ret = take_ptr(g);
	return 0;
}

static bool is_in_set(const struct token *t, char c)
{
	bool is_in = false;

	if (c == '/')
		return false;
	for (size_t i = 0; i < t->set_len; i++) {
		unsigned char low = (unsigned char)t->set[i], high;

		if (low == '\\' && i + 1 < t->set_len)
			low = (unsigned char)t->set[++i];
		high = low;
		if (i + 2 < t->set_len && t->set[i + 1] == '-') {
			i += 2;
			if (t->set[i] == '\\' && i + 1 < t->set_len)
				i++;
			high = (unsigned char)t->set[i];
		}
		is_in = is_in || ((unsigned char)c >= low && (unsigned char)c <= high);
	}
	return is_in != t->is_negated;
}

static void reach(const struct glob *g, bool *places, size_t at)
{
	for (;; at++) {
		places[at] = true;
		if (at == g->count ||
		    (g->tokens[at].kind != TOKEN_STAR && g->tokens[at].kind != TOKEN_DEEP &&
		     g->tokens[at].kind != TOKEN_ALL))
			return;
	}
}

static void step(const struct glob *g, size_t at, bool *to, char c)
{
	const struct token *t = &g->tokens[at];

	switch (t->kind) {
	case TOKEN_BYTE:
		if (t->byte == c)
			reach(g, to, at + 1);
		break;
	case TOKEN_ANY:
		if (c != '/')
			reach(g, to, at + 1);
		break;
	case TOKEN_SET:
		if (is_in_set(t, c))
			reach(g, to, at + 1);
		break;
	case TOKEN_STAR:
		if (c != '/')
			reach(g, to, at);
		break;
	case TOKEN_DEEP: /* it is left only behind a slash */
		to[at] = true;
		if (c == '/')
			reach(g, to, at + 1);
		break;
	case TOKEN_ALL:
		reach(g, to, at);
		break;
	}
}

bool glob_match(const struct glob *g, const char *path)
{
	cleanup_free bool *places = mem_alloc(2 * (g->count + 1) * sizeof(*places));
	bool *now = places, *next = places + g->count + 1;

	reach(g, now, 0);
	for (; *path; path++) {
		bool *swap = now;

		memset(next, 0, (g->count + 1) * sizeof(*next));
		for (size_t i = 0; i < g->count; i++)
			if (now[i])
				step(g, i, next, *path);
		now = next;
		next = swap;
	}
	return now[g->count];
}

bool glob_is_pattern(const char *text)
{
	return strpbrk(text, "*?[\\") != NULL;
}
