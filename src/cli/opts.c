/* opts - parses command lines by tables; see opts.h. */
#include "cli/opts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HELP_COLUMN 34
#define NAME_MAX_BYTES 64

struct parser {
	const struct opts_table *table;
	char **argv;
	int at;
	void *out;
	struct settings *settings;
};

static int add_setting_from(struct settings *s, const struct opt *o, const char *text,
			    const char *origin, struct err *e)
{
	return settings_add(s, &(struct policy_setting){ o->field, text, origin, o->layer }, e);
}

static int add_setting(struct settings *s, const struct opt *o, const char *text, struct err *e)
{
	return add_setting_from(s, o, text, settings_keep(s, mem_format("--%s", o->name)), e);
}

/* Removes the carriage return that some editors write at the end of lines. */
static void cut_line_end(char *line)
{
	size_t len = strlen(line);

	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = '\0';
}

/* Adds lines of NAME=value; skips blank lines and lines that start with '#'. */
static int add_settings_file(struct settings *s, const struct opt *o, const char *path,
			     struct err *e)
{
	size_t len = 0;
	char *text = NULL;
	char *rest, *line;
	unsigned number = 0;
	int r = file_read_at(AT_FDCWD, path, OPTS_FILE_MAX_BYTES, &text, &len);

	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT, "--%s: '%s' is larger than %u bytes", o->name, path,
			       OPTS_FILE_MAX_BYTES);
	if (r < 0)
		return err_sys(e, -r, "--%s: read '%s'", o->name, path);
	(void)settings_keep(s, text);
	if (strlen(text) != len)
		return err_set(e, ERR_INVALID, "--%s: '%s' is not a text file", o->name, path);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		cut_line_end(line);
		line += strspn(line, " \t");
		if (*line == '\0' || *line == '#')
			continue;
		if (add_setting_from(
			    s, o, line,
			    settings_keep(s, mem_format("--%s %s:%u", o->name, path, number)),
			    e) < 0)
			return -1;
	}
	return 0;
}

static const struct opt *find_long(const struct opts_table *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->count; i++)
		if (strlen(t->rows[i].name) == len && strncmp(t->rows[i].name, name, len) == 0)
			return &t->rows[i];
	return NULL;
}

static const struct opt *find_letter(const struct opts_table *t, char letter)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].letter && t->rows[i].letter == letter)
			return &t->rows[i];
	return NULL;
}

static int unknown_option(const struct opts_table *t, const char *word, struct err *e)
{
	size_t len = strcspn(word, "=");
	cleanup_free char *typed = mem_dup_bytes(word, len);
	cleanup_free const char **names = mem_alloc(t->count * sizeof(*names));
	const char *nearest;

	for (size_t i = 0; i < t->count; i++)
		names[i] = t->rows[i].name;
	nearest = strncmp(typed, "--", 2) == 0 ? suggest_nearest(typed + 2, names, t->count) : NULL;
	if (nearest)
		return err_set(e, ERR_INVALID, "unknown option '%s', did you mean '--%s'?", typed,
			       nearest);
	return err_set(e, ERR_INVALID, "unknown option '%s' (see --help)", typed);
}

/* "./x", "/x", "x/", "..": a plain word may be the command, even if such a directory exists. */
static bool is_directory(const char *word)
{
	struct stat st;
	size_t len = word ? strlen(word) : 0;

	if (len == 0 || (word[0] != '/' && word[0] != '.' && word[len - 1] != '/'))
		return false;
	return stat(word, &st) == 0 && S_ISDIR(st.st_mode);
}

bool opts_has_optional_value(const struct opt *o)
{
	return o->kind == OPT_DIR_SETTING || o->kind == OPT_JSON_FILE;
}

/* Is the word the value of an option that may have none? */
static bool is_meant(const struct opt *o, const char *word)
{
	size_t len = word ? strlen(word) : 0;

	if (o->kind == OPT_DIR_SETTING)
		return is_directory(word);
	return len > 5 && word[0] != '-' && strcmp(word + len - 5, ".json") == 0;
}

/* The value of option `o`: after "=", or the rest of a letter's word, or the next word. */
static int take_value(struct parser *p, const struct opt *o, const char *attached, const char **ret,
		      struct err *e)
{
	if (!o->value) {
		if (attached)
			return err_set(e, ERR_INVALID, "--%s takes no value", o->name);
		*ret = o->fixed ? o->fixed : "";
		return 0;
	}
	if (attached) {
		*ret = attached;
	} else if (opts_has_optional_value(o)) {
		*ret = is_meant(o, p->argv[p->at]) ? p->argv[p->at++] : "";
	} else if (p->argv[p->at]) {
		*ret = p->argv[p->at++];
	} else {
		return err_set(e, ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
			       o->value);
	}
	return 0;
}

static int add_to_list(struct opts_list *l, const struct opt *o, const char *value, struct err *e)
{
	if (l->count == OPTS_LIST_MAX)
		return err_set(e, ERR_LIMIT, "--%s: more than %u times", o->name, OPTS_LIST_MAX);
	l->texts[l->count++] = value;
	return 0;
}

static int apply(struct parser *p, const struct opt *o, const char *attached, struct err *e)
{
	const char *value = NULL;

	if (take_value(p, o, attached, &value, e) < 0)
		return -1;
	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)((char *)p->out + o->offset) = true;
		return 0;
	case OPT_TEXT:
	case OPT_JSON_FILE:
		*(const char **)((char *)p->out + o->offset) = value;
		return 0;
	case OPT_LIST:
		return add_to_list((struct opts_list *)(void *)((char *)p->out + o->offset), o,
				   value, e);
	case OPT_SETTING_OFF:
		return add_setting(p->settings, o, NULL, e);
	case OPT_SETTING_FILE:
		return add_settings_file(p->settings, o, value, e);
	case OPT_SETTING:
	case OPT_DIR_SETTING:
		break;
	}
	return add_setting(p->settings, o, value, e);
}

static int parse_long(struct parser *p, const char *word, struct err *e)
{
	size_t len = strcspn(word + 2, "=");
	const struct opt *o = find_long(p->table, word + 2, len);

	if (!o)
		return unknown_option(p->table, word, e);
	return apply(p, o, word[2 + len] == '=' ? word + 3 + len : NULL, e);
}

/*
 * docker's -i means "interactive", which is always the case here; ours is the image. "-it" in any
 * order, also with -d, and "-i" before another option or at the end can only be docker's.
 */
static bool is_dockers_i(const struct parser *p, const char *word)
{
	const char *next = p->argv[p->at];
	size_t len = strlen(word + 1);

	if (!find_letter(p->table, 'i') || !find_letter(p->table, 't') || !strchr(word, 'i') ||
	    strspn(word + 1, "itd") != len)
		return false;
	return len > 1 || !next || next[0] == '-';
}

/* "-tv SRC" is "-t -v SRC"; "-eK=V" is "-e K=V" */
static int parse_letters(struct parser *p, const char *word, struct err *e)
{
	bool has_dockers_i = is_dockers_i(p, word);

	for (const char *letter = word + 1; *letter; letter++) {
		const struct opt *o = has_dockers_i && *letter == 'i'
					      ? find_long(p->table, "interactive", 11)
					      : find_letter(p->table, *letter);

		if (!o)
			return err_set(e, ERR_INVALID, "unknown option '-%c' (see --help)",
				       *letter);
		if (o->value)
			return apply(p, o, letter[1] ? letter + 1 : NULL, e);
		if (apply(p, o, NULL, e) < 0)
			return -1;
	}
	return 0;
}

int opts_parse(const struct opts_table *table, char **argv, void *out, struct settings *settings,
	       int *ret_used, struct err *e)
{
	struct parser p = { .table = table, .argv = argv, .out = out, .settings = settings };

	while (argv[p.at]) {
		const char *word = argv[p.at];

		if (word[0] != '-' || word[1] == '\0')
			break;
		p.at++;
		if (strcmp(word, "--") == 0)
			break;
		if ((word[1] == '-' ? parse_long(&p, word, e) : parse_letters(&p, word, e)) < 0)
			return -1;
	}
	*ret_used = p.at;
	return 0;
}

/* Does the option at argv[0] take the next word as its value? */
static bool takes_next(const struct opts_table *t, char **argv)
{
	const char *word = argv[0];
	const struct opt *o;

	if (word[1] == '-')
		o = strchr(word, '=') ? NULL : find_long(t, word + 2, strlen(word + 2));
	else
		o = word[2] ? NULL : find_letter(t, word[1]);
	if (!o || !o->value)
		return false;
	return !opts_has_optional_value(o) || is_meant(o, argv[1]);
}

bool opts_ask_for_help(const struct opts_table *table, char **argv)
{
	static const struct opts_table none = { 0 };

	for (; argv[0] && argv[0][0] == '-' && argv[0][1] && strcmp(argv[0], "--") != 0; argv++) {
		if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
			return true;
		if (takes_next(table ? table : &none, argv) && argv[1])
			argv++;
	}
	return false;
}

bool opts_begins_group(const struct opts_table *table, size_t index)
{
	const char *group = table->rows[index].group;

	return group && (index == 0 || !table->rows[index - 1].group ||
			 strcmp(group, table->rows[index - 1].group) != 0);
}

void opts_format_help(const struct opts_table *table, struct buf *out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct opt *o = &table->rows[i];
		char left[NAME_MAX_BYTES];
		const char *value_mark = opts_has_optional_value(o) ? " [" : " ";

		if (opts_begins_group(table, i))
			buf_addf(out, "%s%s:\n", i ? "\n" : "", o->group);
		(void)snprintf(left, sizeof(left), "  %c%c%s --%s%s%s%s", o->letter ? '-' : ' ',
			       o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
			       o->value ? value_mark : "", o->value ? o->value : "",
			       opts_has_optional_value(o) ? "]" : "");
		if (strlen(left) >= HELP_COLUMN)
			buf_addf(out, "%s\n%*s%s\n", left, HELP_COLUMN, "", o->help);
		else
			buf_addf(out, "%-*s%s\n", HELP_COLUMN, left, o->help);
	}
}
