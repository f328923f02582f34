/*
 * gitconfig - parses and writes git configuration files; see gitconfig.h.
 *
 * Theory of operation. One pass over the bytes. A header sets section and subsection; a key is
 * followed by '=' and a value, or by the end of its line. A backslash at the end of a line
 * continues the value; outside quotes '#' or ';' starts a comment, and leading and trailing blanks
 * are dropped.
 */
#include "base/gitconfig.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	const char *at, *end;
	char section[GITCONFIG_NAME_MAX_BYTES];
	char subsection[GITCONFIG_NAME_MAX_BYTES];
	bool has_subsection;
};

/* Returns the next byte, or -1; "\r\n" counts as "\n". */
static int get(struct reader *r)
{
	if (r->at == r->end)
		return -1;
	if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
		r->at++;
	return (unsigned char)*r->at++;
}

static int peek(const struct reader *r)
{
	struct reader copy = { .at = r->at, .end = r->end };

	return get(&copy);
}

static bool is_name_byte(int c)
{
	return c > 0 && c < 128 && (isalnum(c) || c == '-');
}

static void skip_line(struct reader *r)
{
	int c;

	while ((c = get(r)) >= 0 && c != '\n')
		continue;
}

/* Parses "name", "name.sub" or 'name "sub"' after '[', up to the ']'. */
static int read_header(struct reader *r)
{
	size_t len = 0;
	int c;

	r->has_subsection = false;
	while ((c = get(r)) >= 0 && (is_name_byte(c) || c == '.')) {
		if (len + 1 == sizeof(r->section))
			return -1;
		r->section[len++] = (char)tolower(c);
	}
	r->section[len] = '\0';
	if (c == ']') {
		char *dot = strchr(r->section, '.');

		if (dot) { /* the old form, which is case-insensitive */
			memcpy(r->subsection, dot + 1, strlen(dot + 1) + 1);
			*dot = '\0';
			r->has_subsection = true;
		}
		return 0;
	}
	while (c == ' ' || c == '\t')
		c = get(r);
	if (c != '"')
		return -1;
	for (len = 0; (c = get(r)) != '"';) {
		if (c == '\\')
			c = get(r);
		if (c < 0 || c == '\n' || c == 0 || len + 1 == sizeof(r->subsection))
			return -1;
		r->subsection[len++] = (char)c;
	}
	r->subsection[len] = '\0';
	r->has_subsection = true;
	return get(r) == ']' ? 0 : -1;
}

/* The meaning of a backslash and this byte; 0: invalid; '\n': the line continues. */
static int unescape(int c)
{
	switch (c) {
	case '\n':
	case '"':
	case '\\':
		return c;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return 'n';
	}
	return 0;
}

static void add_byte(struct buf *out, size_t *blanks, int c)
{
	char byte = (char)c;

	for (; *blanks > 0; (*blanks)--)
		buf_add(out, " ", 1);
	buf_add(out, &byte, 1);
}

/* Reads up to the end of the line. Blanks are delayed, because trailing ones are dropped. */
static int read_value(struct reader *r, struct buf *out)
{
	bool is_quoted = false;
	size_t blanks = 0;
	int c;

	while ((c = get(r)) >= 0 && c != '\n') {
		if (c == 0)
			return -1;
		if (!is_quoted && (c == '#' || c == ';')) {
			skip_line(r);
			return 0;
		}
		if (!is_quoted && (c == ' ' || c == '\t')) {
			blanks += out->len > 0;
			continue;
		}
		if (c == '"') {
			is_quoted = !is_quoted;
			continue;
		}
		if (c == '\\') {
			int next = get(r), meant = next < 0 ? 0 : unescape(next);

			if (!meant)
				return -1;
			if (next == '\n')
				continue;
			c = next == 'n' ? '\n' : meant;
		}
		add_byte(out, &blanks, c);
	}
	return is_quoted ? -1 : 0;
}

static int read_entry(struct reader *r, int first, gitconfig_fn *fn, void *context)
{
	char key[GITCONFIG_NAME_MAX_BYTES];
	struct gitconfig_entry entry = { .section = r->section, .key = key };
	cleanup_buf struct buf value;
	size_t len = 0;
	int c = first;

	buf_init(&value, BUF_TEXT_MAX_BYTES);
	for (; is_name_byte(c); c = get(r)) {
		if (len + 1 == sizeof(key))
			return -1;
		key[len++] = (char)tolower(c);
	}
	key[len] = '\0';
	while (c == ' ' || c == '\t')
		c = get(r);
	if (c != '=' && c != '\n' && c >= 0)
		return -1;
	if (c == '=') {
		while (peek(r) == ' ' || peek(r) == '\t')
			(void)get(r);
		if (read_value(r, &value) < 0 || value.is_cut)
			return -1;
		entry.value = buf_text(&value);
	}
	entry.subsection = r->has_subsection ? r->subsection : NULL;
	return fn(context, &entry);
}

int gitconfig_parse(const char *text, size_t len, gitconfig_fn *fn, void *context)
{
	struct reader r = { .at = text, .end = len ? text + len : text };
	bool is_damaged = false;
	int c;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at += 3;
	while ((c = get(&r)) >= 0) {
		int told = 0;

		if (isspace(c))
			continue;
		if (c == '#' || c == ';')
			skip_line(&r);
		else if (c == '[')
			told = read_header(&r);
		else if (c < 128 && isalpha(c) && r.section[0])
			told = read_entry(&r, c, fn, context);
		else
			told = -1;
		if (told > 0)
			return told;
		if (told < 0) {
			is_damaged = true;
			if (r.at[-1] != '\n') /* otherwise the end of the line was consumed */
				skip_line(&r);
		}
	}
	return is_damaged ? -1 : 0;
}

char *gitconfig_format(const struct gitconfig_entry *entry)
{
	return mem_format("%s.%s.%s=%s", entry->section, entry->subsection ? entry->subsection : "",
			  entry->key, entry->value ? entry->value : "");
}

/* ---- plain texts ---- */

static bool is_plain_header(const char *line, size_t len)
{
	size_t at = 1;

	while (at < len && is_name_byte((unsigned char)line[at]))
		at++;
	if (at == 1 || at == len)
		return false;
	if (line[at] == ']')
		return at + 1 == len;
	if (len < at + 4 || line[at] != ' ' || line[at + 1] != '"' || line[len - 1] != ']' ||
	    line[len - 2] != '"')
		return false;
	for (size_t i = at + 2; i < len - 2; i++)
		if (line[i] == '"' || line[i] == '\\' || (unsigned char)line[i] < ' ')
			return false;
	return true;
}

static bool is_plain_entry(const char *line, size_t len)
{
	size_t at = 0;

	if (len == 0 || line[0] != '\t')
		return false;
	for (at = 1; at < len && is_name_byte((unsigned char)line[at]); at++)
		continue;
	if (at == 1 || !isalpha((unsigned char)line[1]) || len < at + 3 ||
	    memcmp(line + at, " = ", 3) != 0)
		return false;
	for (size_t i = at + 3; i < len; i++)
		if (strchr("\"\\#;", line[i]) || (unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return false;
	return len == at + 3 || (line[at + 3] != ' ' && line[len - 1] != ' ');
}

bool gitconfig_is_plain(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *newline = memchr(text + at, '\n', len - at);
		size_t line_len = newline ? (size_t)(newline - text) - at : len - at;
		const char *line = text + at;

		if (line_len >= GITCONFIG_NAME_MAX_BYTES)
			return false;
		if (line_len > 0 && !(line[0] == '[' ? is_plain_header(line, line_len)
						     : is_plain_entry(line, line_len)))
			return false;
		at += line_len + 1;
	}
	return true;
}

static void put_quoted(struct buf *out, const char *text)
{
	buf_add_text(out, "\"");
	for (; *text; text++) {
		if (*text == '\n')
			buf_add_text(out, "\\n");
		else if (*text == '\t')
			buf_add_text(out, "\\t");
		else if (*text == '\b')
			buf_add_text(out, "\\b");
		else
			buf_addf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	}
	buf_add_text(out, "\"");
}

/* Writes [section "subsection"] and a newline. */
static void put_header(struct buf *out, const struct gitconfig_entry *entry)
{
	buf_addf(out, "[%s", entry->section);
	if (entry->subsection) {
		buf_add_text(out, " \"");
		for (const char *at = entry->subsection; *at; at++)
			buf_addf(out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
		buf_add_text(out, "\"");
	}
	buf_add_text(out, "]\n");
}

void gitconfig_put(struct gitconfig_writer *w, const struct gitconfig_entry *entry)
{
	cleanup_buf struct buf header;

	buf_init(&header, 4 * GITCONFIG_NAME_MAX_BYTES);
	put_header(&header, entry);
	if (!w->header || strcmp(w->header, buf_text(&header)) != 0) {
		free(w->header);
		w->header = mem_dup(buf_text(&header));
		buf_add_text(w->out, w->header);
	}
	buf_addf(w->out, "\t%s", entry->key);
	if (entry->value) {
		buf_add_text(w->out, " = ");
		if (entry->value[0] && !strpbrk(entry->value, "\"\\#;\n\t\b\r "))
			buf_add_text(w->out, entry->value);
		else
			put_quoted(w->out, entry->value);
	}
	buf_add_text(w->out, "\n");
}

void gitconfig_writer_done(struct gitconfig_writer *w)
{
	free(w->header);
	w->header = NULL;
}
