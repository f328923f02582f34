/*
 * dockerfile - the grammar of Dockerfiles; see dockerfile.h.
 *
 * Theory of operation. Lines are joined into instructions: a line that ends in the escape character
 * goes on in the next one, where comments and empty lines are skipped. The first word of an
 * instruction chooses how the rest is read (a row of `grammar`); "<<NAME" in an instruction that
 * may have one takes the lines up to NAME as a here-document. Each function here is a rule of the
 * grammar; nothing looks at what the words mean.
 */
#include "build/dockerfile.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/jsonscan.h"
#include "base/jsontext.h"
#include "base/jsonwalk.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/suggest.h"
#include "build/expand.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t\v\f\r"
#define LINE_BLANKS " \t\v\f\r\n"
#define QUOTED_MAX_BYTES 60
#define NESTED_MAX 1u /* ONBUILD in an ONBUILD is refused later, with words */

/* The lines of a document. */
struct reading {
	const char *name;
	const char *at, *end;
	unsigned line; /* of the last line read; from 1 */
	char escape;
	bool is_past_directives;
	struct dockerfile *result;
};

/* A line without its newline; `next` has it. */
struct line {
	const char *text;
	size_t len;
	size_t whole_len; /* with the newline */
};

/* ---- errors ---- */

static int set_err(const char *name, unsigned line, unsigned column, const char *keyword,
		   enum err_code code, const char *words, struct err *e)
{
	char shown[32] = "";

	if (keyword) {
		(void)snprintf(shown, sizeof(shown) - 3, "%s", keyword);
		for (char *c = shown; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		strcat(shown, ": ");
	}
	(void)err_set(e, code, "%s:%u:%u: %s%s", name, line, column, shown, words);
	shown_replace(e->msg);
	return -1;
}

int dockerfile_err(const char *name, const struct dockerfile_instruction *i, enum err_code code,
		   struct err *e, const char *fmt, ...)
{
	char words[ERR_MESSAGE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return set_err(name, i->line, i->words_column, i->keyword, code, words, e);
}

int dockerfile_err_wrap(const char *name, const struct dockerfile_instruction *i, struct err *e)
{
	char words[ERR_MESSAGE_MAX_BYTES];
	int sys = e->sys;

	memcpy(words, e->msg, sizeof(words));
	(void)set_err(name, i->line, i->words_column, i->keyword, e->code, words, e);
	e->sys = sys;
	return -1;
}

static int refuse_line(const struct reading *r, unsigned line, unsigned column, enum err_code code,
		       struct err *e, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static int refuse_line(const struct reading *r, unsigned line, unsigned column, enum err_code code,
		       struct err *e, const char *fmt, ...)
{
	char words[ERR_MESSAGE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return set_err(r->name, line, column, NULL, code, words, e);
}

/* ---- results ---- */

static void instruction_done(struct dockerfile_instruction *i)
{
	free(i->keyword);
	keyrows_list_free(&i->flags);
	for (unsigned n = 0; n < i->word_count; n++)
		free(i->words[n].text);
	free(i->words);
	free(i->rest);
	for (unsigned n = 0; n < i->heredoc_count; n++) {
		free(i->heredocs[n].name);
		free(i->heredocs[n].content);
	}
	free(i->heredocs);
	if (i->sub)
		instruction_done(i->sub);
	free(i->sub);
	*i = (struct dockerfile_instruction){ 0 };
}

void dockerfile_done(struct dockerfile *d)
{
	for (unsigned i = 0; i < d->count; i++)
		instruction_done(&d->list[i]);
	free(d->list);
	free(d->name);
	free(d->syntax);
	free(d->check);
	*d = (struct dockerfile){ 0 };
}

static int add_word(struct dockerfile_word **list, unsigned *count, const char *bytes, size_t len,
		    struct err *e)
{
	if (*count == DOCKERFILE_WORDS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u words", DOCKERFILE_WORDS_MAX);
	if ((*count & (*count - 1)) == 0)
		*list = mem_grow(*list, *count ? *count * 2 : 1, sizeof(**list));
	(*list)[*count] = (struct dockerfile_word){ mem_dup_bytes(bytes, len), len };
	++*count;
	return 0;
}

static int put(struct dockerfile_instruction *i, const char *bytes, size_t len, struct err *e)
{
	return add_word(&i->words, &i->word_count, bytes, len, e);
}

static int put_text(struct dockerfile_instruction *i, const char *text, struct err *e)
{
	return put(i, text, strlen(text), e);
}

/* ---- JSON ---- */

int dockerfile_parse_json(const char *text, struct dockerfile_word **ret, unsigned *ret_count,
			  struct err *e)
{
	const struct jsonscan_text document = { "JSON", text, strlen(text) };
	const char *end = text + document.len, *at;
	struct dockerfile_word *list = NULL;
	struct jsonwalk_member item;
	struct err ignored;
	unsigned count = 0;
	int r = 0;

	text += strspn(text, LINE_BLANKS);
	if (*text != '[' || jsonscan_check(&document, 0, &ignored) < 0)
		return 1;
	for (at = text + 1; r == 0 && jsonwalk_item(at, end, &item); at = item.next) {
		cleanup_buf struct buf word;

		buf_init(&word, DOCKERFILE_MAX_BYTES);
		if (*item.value != '"') {
			r = err_set(e, ERR_INVALID,
				    "%s stands in a list in JSON, where only texts in double "
				    "quotes may",
				    jsonwalk_type_name(item.value));
			break;
		}
		jsontext_decode(item.value, item.value_end, &word);
		r = add_word(&list, &count, buf_text(&word), word.len, e);
	}
	if (r < 0) {
		for (unsigned i = 0; i < count; i++)
			free(list[i].text);
		free(list);
		return -1;
	}
	*ret = list;
	*ret_count = count;
	return 0;
}

/* ---- how what follows a keyword is read ---- */

typedef int rest_fn(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		    struct err *e);

static int read_text(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		     struct err *e)
{
	(void)r;
	return rest[0] ? put_text(i, rest, e) : 0;
}

static int read_words(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		      struct err *e)
{
	(void)r;
	while (*rest) {
		size_t len = strcspn(rest, BLANKS);

		if (put(i, rest, len, e) < 0)
			return -1;
		rest += len;
		rest += strspn(rest, BLANKS);
	}
	return 0;
}

/* 0: a list in JSON; 1: not. */
static int try_json(struct dockerfile_instruction *i, const char *rest, struct err *e)
{
	struct dockerfile_word *list = NULL;
	unsigned count = 0;
	int r = dockerfile_parse_json(rest, &list, &count, e);

	if (r != 0)
		return r;
	for (unsigned n = 0; n < count && r == 0; n++)
		r = put(i, list[n].text, list[n].len, e);
	for (unsigned n = 0; n < count; n++)
		free(list[n].text);
	free(list);
	i->is_json = r == 0;
	return r;
}

static int read_command(struct reading *r, struct dockerfile_instruction *i, const char *rest,
			struct err *e)
{
	int found = try_json(i, rest, e);

	return found == 1 ? read_text(r, i, rest, e) : found;
}

static int read_paths(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		      struct err *e)
{
	int found = try_json(i, rest, e);

	return found == 1 ? read_words(r, i, rest, e) : found;
}

/*
 * Words with their quotes and escapes. `at` is moved behind the word; *ret has none at the end of
 * the text.
 */
static bool take_quoted_word(const char **at, char escape, struct buf *out)
{
	bool is_quoted = false;
	char quote = '\0';

	*at += strspn(*at, LINE_BLANKS);
	for (; **at && (quote || !strchr(LINE_BLANKS, **at)); ++*at) {
		char c = **at;

		if (!quote && (c == '\'' || c == '"')) {
			quote = c;
			is_quoted = true;
		} else if (quote && c == quote) {
			quote = '\0';
		} else if (c == escape && quote != '\'') {
			if (!(*at)[1]) { /* nothing to escape: it goes */
				++*at;
				break;
			}
			buf_add(out, &c, 1);
			c = *++*at;
		}
		buf_add(out, &c, 1);
	}
	return out->len > 0 || is_quoted;
}

static int read_names(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		      struct err *e)
{
	for (;;) {
		cleanup_buf struct buf word;

		buf_init(&word, DOCKERFILE_MAX_BYTES);
		if (!take_quoted_word(&rest, r->escape, &word))
			return 0;
		if (put(i, buf_text(&word), word.len, e) < 0)
			return -1;
	}
}

/* "NAME VALUE", the old form: everything after the blank is the value. */
static int read_one_value(struct dockerfile_instruction *i, const char *rest, struct err *e)
{
	size_t len = strcspn(rest, BLANKS), gap = strspn(rest + len, BLANKS);

	if (gap == 0)
		return err_set(e, ERR_INVALID, "'%.*s' has no value (write %.*s=VALUE)",
			       QUOTED_MAX_BYTES, rest, QUOTED_MAX_BYTES, rest);
	if (put(i, rest, len, e) < 0 || put_text(i, rest + len + gap, e) < 0)
		return -1;
	return put_text(i, "", e);
}

static int read_values(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		       struct err *e)
{
	bool is_first = true;
	const char *at = rest;

	for (;; is_first = false) {
		cleanup_buf struct buf word;
		const char *sign;

		buf_init(&word, DOCKERFILE_MAX_BYTES);
		if (!take_quoted_word(&at, r->escape, &word))
			return 0;
		sign = word.len ? memchr(word.bytes, '=', word.len) : NULL;
		if (!sign && is_first)
			return read_one_value(i, rest, e);
		if (!sign)
			return err_set(e, ERR_INVALID, "'%.*s' has no '=' (write NAME=VALUE)",
				       QUOTED_MAX_BYTES, buf_text(&word));
		if (put(i, word.bytes, (size_t)(sign - word.bytes), e) < 0 ||
		    put_text(i, sign + 1, e) < 0 || put_text(i, "=", e) < 0)
			return -1;
	}
}

static int read_health(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		       struct err *e)
{
	size_t len = strcspn(rest, LINE_BLANKS);

	if (len == 0)
		return 0;
	if (put(i, rest, len, e) < 0)
		return -1;
	rest += len;
	return read_command(r, i, rest + strspn(rest, LINE_BLANKS), e);
}

static int read_instruction(struct reading *r, const char *text, unsigned depth,
			    struct dockerfile_instruction *i, struct err *e);

static int read_sub(struct reading *r, struct dockerfile_instruction *i, const char *rest,
		    struct err *e)
{
	struct dockerfile_instruction sub = { .line = i->line,
					      .column = i->words_column,
					      .words_column = i->words_column };

	if (!rest[0])
		return 0;
	if (read_instruction(r, rest, 1, &sub, e) < 0) {
		instruction_done(&sub);
		return -1;
	}
	i->sub = mem_alloc(sizeof(*i->sub));
	*i->sub = sub;
	return 0;
}

/* ---- instructions ---- */

static const struct rule {
	const char *keyword;
	rest_fn *take;
	bool has_heredocs;
} grammar[] = {
	{ "add", read_paths, true },           { "arg", read_names, false },
	{ "cmd", read_command, false },        { "copy", read_paths, true },
	{ "entrypoint", read_command, false }, { "env", read_values, false },
	{ "expose", read_words, false },       { "from", read_words, false },
	{ "healthcheck", read_health, false }, { "label", read_values, false },
	{ "maintainer", read_text, false },    { "onbuild", read_sub, true },
	{ "run", read_command, true },         { "shell", read_command, false },
	{ "stopsignal", read_text, false },    { "user", read_text, false },
	{ "volume", read_paths, false },       { "workdir", read_text, false },
};

static const struct rule *find_rule(const char *keyword)
{
	for (size_t i = 0; i < COUNT_OF(grammar); i++)
		if (strcmp(grammar[i].keyword, keyword) == 0)
			return &grammar[i];
	return NULL;
}

static int refuse_keyword(const char *keyword, struct err *e)
{
	const char *names[COUNT_OF(grammar)], *near;

	for (size_t i = 0; i < COUNT_OF(grammar); i++)
		names[i] = grammar[i].keyword;
	near = suggest_nearest(keyword, names, COUNT_OF(names));
	return err_set(e, ERR_INVALID, "there is no instruction '%.*s'%s%s%s", QUOTED_MAX_BYTES,
		       keyword, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* One "--flag", quotes and backslashes removed; false: what follows is none. */
static bool take_flag(const char **at, struct buf *out)
{
	char quote = '\0';

	*at += strspn(*at, LINE_BLANKS);
	if (strncmp(*at, "--", 2) != 0)
		return false;
	for (; **at && (quote || !strchr(LINE_BLANKS, **at)); ++*at) {
		char c = **at;

		if (!quote && (c == '\'' || c == '"')) {
			quote = c;
			continue;
		}
		if (quote && c == quote) {
			quote = '\0';
			continue;
		}
		if (c == '\\') {
			if (!(*at)[1])
				continue;
			c = *++*at;
		}
		buf_add(out, &c, 1);
	}
	return true;
}

static int read_flags(struct dockerfile_instruction *i, const char **at, struct err *e)
{
	for (;;) {
		cleanup_buf struct buf flag;

		buf_init(&flag, DOCKERFILE_MAX_BYTES);
		if (!take_flag(at, &flag) || strcmp(buf_text(&flag), "--") == 0)
			return 0;
		if (!keyrows_list_add(&i->flags, buf_text(&flag)))
			return err_set(e, ERR_LIMIT, "more than %u flags", KEYROWS_LIST_MAX);
	}
}

static char *trimmed(const char *text)
{
	size_t len;

	text += strspn(text, LINE_BLANKS);
	len = strlen(text);
	while (len > 0 && strchr(LINE_BLANKS, text[len - 1]))
		len--;
	return mem_dup_bytes(text, len);
}

static int read_rest(struct reading *r, const char *text, struct dockerfile_instruction *i,
		     struct err *e)
{
	const struct rule *rule = find_rule(i->keyword);

	if (!rule)
		return refuse_keyword(i->keyword, e);
	if (read_flags(i, &text, e) < 0)
		return -1;
	i->rest = trimmed(text);
	return rule->take(r, i, i->rest, e);
}

/* `text` is a whole instruction on one line. */
static int read_instruction(struct reading *r, const char *text, unsigned depth,
			    struct dockerfile_instruction *i, struct err *e)
{
	cleanup_free char *line = trimmed(text);
	size_t len = strcspn(line, BLANKS);
	size_t gap = strspn(line + len, BLANKS);

	if (depth > NESTED_MAX)
		return err_set(e, ERR_INVALID, "an ONBUILD within an ONBUILD");
	i->keyword = mem_dup_bytes(line, len);
	for (char *c = i->keyword; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	i->words_column = i->column + (unsigned)(len + gap);
	if (strcmp(i->keyword, "onbuild") == 0 && depth == NESTED_MAX)
		return err_set(e, ERR_INVALID, "an ONBUILD may not be within an ONBUILD");
	return read_rest(r, line + len + gap, i, e);
}

/* ---- here-documents ---- */

static bool may_have_heredocs(const struct dockerfile_instruction *i)
{
	const struct rule *rule = i->sub ? NULL : find_rule(i->keyword);

	if (i->sub)
		return may_have_heredocs(i->sub);
	return rule && rule->has_heredocs && !i->is_json;
}

/* The name after "<<": without its quotes, and whether it had some. False: it is no single word. */
static bool read_heredoc_name(const char *text, struct dockerfile_heredoc *h)
{
	const struct expand plain = { .escape = '\\', .flags = EXPAND_KEEP_UNSET };
	const struct expand raw = { .escape = '\\', .flags = EXPAND_KEEP_UNSET | EXPAND_RAW };
	char **words = NULL, **raw_words = NULL;
	struct err ignored;
	bool is_one = expand_words(&plain, text, &words, &ignored) == 0 &&
		      expand_words(&raw, text, &raw_words, &ignored) == 0 && words[0] &&
		      !words[1] && raw_words[0];

	if (is_one) {
		h->name = mem_dup(words[0]);
		h->expands = strcmp(words[0], raw_words[0]) == 0;
	}
	keyrows_list_free(&words);
	keyrows_list_free(&raw_words);
	return is_one;
}

/* DIGITS<<[-]NAME */
static bool is_heredoc(const char *word, struct dockerfile_heredoc *ret)
{
	size_t digits = strspn(word, "0123456789");
	struct dockerfile_heredoc h = { 0 };

	if (digits > 3 || strncmp(word + digits, "<<", 2) != 0)
		return false;
	h.fd = (unsigned)strtoul(word, NULL, 10);
	word += digits + 2;
	h.is_chomp = *word == '-';
	word += h.is_chomp;
	if (!*word || strchr(word, '<') || !read_heredoc_name(word, &h))
		return false;
	*ret = h;
	return true;
}

static bool take_line(struct reading *r, struct line *ret)
{
	const char *newline;

	if (r->at == r->end)
		return false;
	newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	ret->text = r->at;
	ret->whole_len = newline ? (size_t)(newline + 1 - r->at) : (size_t)(r->end - r->at);
	ret->len = ret->whole_len - (newline != NULL);
	if (ret->len > 0 && newline && ret->text[ret->len - 1] == '\r')
		ret->len--;
	r->at += ret->whole_len;
	r->line++;
	return true;
}

static int read_heredoc(struct reading *r, struct dockerfile_instruction *i,
			struct dockerfile_heredoc *h, struct err *e)
{
	cleanup_buf struct buf content;
	struct line line;

	buf_init(&content, DOCKERFILE_MAX_BYTES);
	while (take_line(r, &line)) {
		size_t tabs = 0;

		while (h->is_chomp && tabs < line.len && line.text[tabs] == '\t')
			tabs++;
		if (line.len - tabs == strlen(h->name) &&
		    memcmp(line.text + tabs, h->name, line.len - tabs) == 0) {
			h->content = mem_dup(buf_text(&content));
			return 0;
		}
		buf_add(&content, line.text, line.whole_len);
	}
	(void)i;
	return err_set(e, ERR_INVALID,
		       "the here-document '%.*s' has no end: a line with '%.*s' alone",
		       QUOTED_MAX_BYTES, h->name, QUOTED_MAX_BYTES, h->name);
}

static int read_heredocs(struct reading *r, const char *text, struct dockerfile_instruction *i,
			 struct err *e)
{
	const struct expand x = { .escape = '\\', .flags = EXPAND_KEEP_UNSET | EXPAND_RAW };
	struct dockerfile_instruction *owner = i->sub ? i->sub : i;
	CLEANUP(keyrows_list_free) char **words = NULL;
	struct err ignored;

	if (!may_have_heredocs(i) || !strstr(text, "<<") ||
	    expand_words(&x, text, &words, &ignored) < 0)
		return 0;
	for (char **word = words; *word; word++) {
		struct dockerfile_heredoc h = { 0 };

		if (!is_heredoc(*word, &h))
			continue;
		if (owner->heredoc_count == DOCKERFILE_HEREDOCS_MAX) {
			free(h.name);
			return err_set(e, ERR_LIMIT, "more than %u here-documents",
				       DOCKERFILE_HEREDOCS_MAX);
		}
		owner->heredocs = mem_grow(owner->heredocs, owner->heredoc_count + 1,
					   sizeof(*owner->heredocs));
		owner->heredocs[owner->heredoc_count++] = h;
		if (read_heredoc(r, i, &owner->heredocs[owner->heredoc_count - 1], e) < 0)
			return -1;
	}
	return 0;
}

/* ---- lines ---- */

static size_t skip_blanks(const struct line *l)
{
	size_t at = 0;

	while (at < l->len && strchr(LINE_BLANKS, l->text[at]) && l->text[at])
		at++;
	return at;
}

static bool is_comment(const struct line *l)
{
	size_t at = skip_blanks(l);

	return at < l->len && l->text[at] == '#';
}

/* "# name = value" */
static bool read_directive(const char *text, size_t len, char **ret_name, char **ret_value)
{
	cleanup_free char *line = mem_dup_bytes(text, len);
	char *at = line + 1, *name, *end;

	if (line[0] != '#')
		return false;
	at += strspn(at, LINE_BLANKS);
	name = at;
	while (isalnum((unsigned char)*at))
		at++;
	end = at;
	at += strspn(at, LINE_BLANKS);
	if (end == name || !isalpha((unsigned char)*name) || *at != '=')
		return false;
	*end = '\0';
	*ret_value = trimmed(at + 1);
	if (!(*ret_value)[0]) {
		free(take_ptr(*ret_value));
		return false;
	}
	*ret_name = mem_dup(name);
	for (char *c = *ret_name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return true;
}

static int set_escape(struct reading *r, const char *value, struct err *e)
{
	if (strcmp(value, "`") != 0 && strcmp(value, "\\") != 0)
		return refuse_line(r, r->line, 1, ERR_INVALID, e,
				   "escape=%.*s: the escape character is \\ or `", QUOTED_MAX_BYTES,
				   value);
	r->escape = value[0];
	return 0;
}

/* Directives are comments before everything else; the first line that is none ends them. */
static int look_for_directive(struct reading *r, const struct line *l, bool *has_escape,
			      struct err *e)
{
	cleanup_free char *name = NULL, *value = NULL;
	size_t at = skip_blanks(l);
	char **kept = NULL;

	if (r->is_past_directives)
		return 0;
	r->is_past_directives = true;
	if (!read_directive(l->text + at, l->len - at, &name, &value))
		return 0;
	if (strcmp(name, "syntax") == 0)
		kept = &r->result->syntax;
	else if (strcmp(name, "check") == 0)
		kept = &r->result->check;
	else if (strcmp(name, "escape") != 0)
		return 0;
	r->is_past_directives = false;
	if (kept ? *kept != NULL : *has_escape)
		return refuse_line(r, r->line, 1, ERR_INVALID, e,
				   "the directive '%s' may stand there once", name);
	if (kept) {
		*kept = take_ptr(value);
		return 0;
	}
	*has_escape = true;
	return set_escape(r, value, e);
}

/*
 * Does the line go on in the next one: is its last character an escape that is not itself escaped?
 * Then *len is without it.
 */
static bool goes_on(const struct reading *r, const char *text, size_t *len)
{
	size_t end = *len;

	while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t'))
		end--;
	if (end == 0 || text[end - 1] != r->escape)
		return false;
	if (end > 1 && text[end - 2] == r->escape)
		return false;
	*len = end - 1;
	return true;
}

/* Adds the lines that continue it. */
static void join_lines(struct reading *r, struct buf *text)
{
	struct line line;
	bool more = true;

	while (more && take_line(r, &line)) {
		size_t len = line.len;

		if (is_comment(&line) || skip_blanks(&line) == line.len)
			continue;
		more = goes_on(r, line.text, &len);
		buf_add(text, line.text, len);
	}
}

static int add_instruction(struct reading *r, const struct line *first, struct err *e)
{
	struct dockerfile *d = r->result;
	size_t blanks = skip_blanks(first), len = first->len - blanks;
	struct dockerfile_instruction *i;
	cleanup_buf struct buf text;
	bool more;

	buf_init(&text, DOCKERFILE_MAX_BYTES);
	if (d->count == DOCKERFILE_INSTRUCTIONS_MAX)
		return refuse_line(r, r->line, 1, ERR_LIMIT, e, "more than %u instructions",
				   DOCKERFILE_INSTRUCTIONS_MAX);
	if ((d->count & (d->count - 1)) == 0)
		d->list = mem_grow(d->list, d->count ? d->count * 2 : 1, sizeof(*d->list));
	i = &d->list[d->count++];
	*i = (struct dockerfile_instruction){ .line = r->line,
					      .column = (unsigned)blanks + 1,
					      .words_column = (unsigned)blanks + 1 };
	more = goes_on(r, first->text + blanks, &len);
	buf_add(&text, first->text + blanks, len);
	if (more)
		join_lines(r, &text);
	if (text.is_cut || buf_text(&text)[strspn(buf_text(&text), LINE_BLANKS)] == '\0') {
		d->count--; /* nothing but an escape */
		return 0;
	}
	if (read_instruction(r, buf_text(&text), 0, i, e) < 0 ||
	    read_heredocs(r, buf_text(&text), i, e) < 0)
		return dockerfile_err_wrap(r->name, i, e);
	i->end_line = r->line;
	return 0;
}

static int check_bytes(struct reading *r, struct err *e)
{
	const char *nul = r->end > r->at ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;
	unsigned line = 1, column = 1;

	for (const char *at = r->at; nul && at < nul; at++) {
		column = *at == '\n' ? 1 : column + 1;
		line += *at == '\n';
	}
	if (nul)
		return refuse_line(r, line, column, ERR_INVALID, e,
				   "there is a NUL: this is no Dockerfile");
	return 0;
}

static int read_lines(struct reading *r, struct err *e)
{
	bool has_escape = false;
	struct line line;

	if (check_bytes(r, e) < 0)
		return -1;
	if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0)
		r->at += 3;
	while (take_line(r, &line)) {
		size_t blanks = skip_blanks(&line);

		if (look_for_directive(r, &line, &has_escape, e) < 0)
			return -1;
		if (is_comment(&line) || blanks == line.len)
			continue;
		if (add_instruction(r, &line, e) < 0)
			return -1;
	}
	if (r->result->count == 0)
		return refuse_line(r, r->line ? r->line : 1, 1, ERR_INVALID, e,
				   "there are no instructions (it begins with FROM)");
	return 0;
}

int dockerfile_parse(const char *name, const char *bytes, size_t len, struct dockerfile *ret,
		     struct err *e)
{
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	struct reading r = { .at = bytes, .end = bytes + len, .escape = '\\', .result = &d };

	d.name = mem_dup(strlen(name) > DOCKERFILE_NAME_MAX_BYTES
				 ? name + strlen(name) - DOCKERFILE_NAME_MAX_BYTES
				 : name);
	r.name = d.name;
	if (len > DOCKERFILE_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "%s: a Dockerfile of more than %u bytes", d.name,
			       DOCKERFILE_MAX_BYTES);
	if (read_lines(&r, e) < 0)
		return -1;
	d.escape = r.escape;
	*ret = d;
	d = (struct dockerfile){ 0 };
	return 0;
}

int dockerfile_parse_line(const char *name, const char *line, struct dockerfile *ret, struct err *e)
{
	return dockerfile_parse(name, line, strlen(line), ret, e);
}
