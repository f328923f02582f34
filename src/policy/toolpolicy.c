/* toolpolicy - restricts the tools and commands of calling programs; see toolpolicy.h. */
#include "policy/toolpolicy.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void toolpolicy_done(struct toolpolicy *t)
{
	keyrows_list_free(&t->tools);
	keyrows_list_free(&t->blocked_tools);
	keyrows_list_free(&t->commands);
	keyrows_list_free(&t->blocked_commands);
	*t = (struct toolpolicy){ 0 };
}

static bool is_listed(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

int toolpolicy_check_tool(const struct toolpolicy *t, const char *tool, struct err *e)
{
	if (is_listed(t->blocked_tools, tool))
		return err_set(e, ERR_DENIED, "the tool '%s' is blocked ([tools] block)", tool);
	if (t->tools && !is_listed(t->tools, tool))
		return err_set(e, ERR_DENIED, "the tool '%s' is not allowed ([tools] allow)", tool);
	return 0;
}

/* ---- commands ---- */

static int check_program(const struct toolpolicy *t, const char *word, struct err *e)
{
	const char *name = path_base_name(word);

	if (is_listed(t->blocked_commands, name) || is_listed(t->blocked_commands, word))
		return err_set(e, ERR_DENIED,
			       "the command '%.100s' is blocked ([tools.commands] block)", name);
	if (t->commands && !is_listed(t->commands, name) && !is_listed(t->commands, word))
		return err_set(e, ERR_DENIED,
			       "the command '%.100s' is not allowed ([tools.commands] allow)",
			       name);
	return 0;
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

static bool is_shell(const char *word)
{
	static const char *const names[] = { "sh", "bash", "dash", "ash", "zsh", "ksh", "fish" };

	return is_one_of(path_base_name(word), names, COUNT_OF(names));
}

/* Programs that take options and variables, then a command. */
static bool is_starter(const char *word)
{
	static const char *const names[] = { "env",     "sudo",   "doas",    "timeout",
					     "nice",    "nohup",  "time",    "setsid",
					     "stdbuf",  "xargs",  "ionice",  "exec",
					     "command", "chroot", "unshare", "busybox" };

	return is_one_of(path_base_name(word), names, COUNT_OF(names));
}

/* Shell keywords after which a command begins. */
static bool is_keyword(const char *word)
{
	static const char *const words[] = { "if", "then", "else", "elif", "while", "until", "do",
					     "!",  "{",    "}",    "fi",   "done",  "esac" };

	return is_one_of(word, words, COUNT_OF(words));
}

/* Shell keywords that no command follows before the next ';' or ')'. */
static bool is_heading(const char *word)
{
	static const char *const words[] = { "for", "case", "select" };

	return is_one_of(word, words, COUNT_OF(words));
}

static bool is_assignment(const char *word)
{
	size_t len =
		strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	return len > 0 && word[len] == '=';
}

static bool is_number(const char *word)
{
	return isdigit((unsigned char)word[0]) != 0;
}

/* ---- shell text ---- */

/* A shell script being parsed, and the simple command in it that is being collected. */
struct shell {
	const struct toolpolicy *policy;
	unsigned depth;
	const char *at;
	char *room;         /* memory for the text of the words */
	size_t used;        /* bytes of `room` */
	const char **words; /* NULL-ended */
	size_t count;
};

static int check_words(const struct toolpolicy *t, const char *const *argv, unsigned depth,
		       struct err *e);
static int check_shell(const struct toolpolicy *t, const char *text, unsigned depth, struct err *e);

/* Length of the text up to its closing `end`; skips quoted and nested ones. */
static size_t inner_length(const char *text, char end)
{
	const char *at = text;
	unsigned depth = 0;
	char quote = 0;

	for (; *at; at++) {
		if (*at == '\\' && quote != '\'' && at[1])
			at++;
		else if (quote)
			quote = *at == quote ? 0 : quote;
		else if (*at == end && depth == 0)
			break;
		else if (end == ')' && (*at == '\'' || *at == '"'))
			quote = *at;
		else if (end == ')' && *at == '(')
			depth++;
		else if (end == ')' && *at == ')')
			depth--;
	}
	return (size_t)(at - text);
}

static void add_byte(struct shell *s, char c)
{
	s->room[s->used++] = c;
}

/* "$(...)" or "`...`" at s->at: checks the commands in it and adds its text to the word. */
static int take_substitution(struct shell *s, struct err *e)
{
	size_t start_len = *s->at == '`' ? 1 : 2;
	size_t len = inner_length(s->at + start_len, *s->at == '`' ? '`' : ')');
	cleanup_free char *inner = mem_dup_bytes(s->at + start_len, len);

	len += start_len;
	len += s->at[len] != '\0';
	while (len-- > 0)
		add_byte(s, *s->at++);
	return check_shell(s->policy, inner, s->depth + 1, e);
}

static bool is_substitution(const char *at)
{
	return *at == '`' || strncmp(at, "$(", 2) == 0;
}

/* Appends the word at s->at, without quotes and backslashes. */
static int take_word(struct shell *s, struct err *e)
{
	char quote = 0;

	while (*s->at && (quote || !strchr(" \t\n;|&()<>", *s->at))) {
		char c = *s->at;

		if (quote != '\'' && is_substitution(s->at)) {
			if (take_substitution(s, e) < 0)
				return -1;
			continue;
		}
		if (c == '\\' && quote != '\'' && s->at[1]) {
			if (s->at[1] != '\n')
				add_byte(s, s->at[1]);
			s->at++;
		} else if (quote == 0 && c == '$' && (s->at[1] == '\'' || s->at[1] == '"')) {
			; /* $'...' */
		} else if (quote == 0 && (c == '\'' || c == '"')) {
			quote = c;
		} else if (quote && c == quote) {
			quote = 0;
		} else {
			add_byte(s, c);
		}
		s->at++;
	}
	add_byte(s, '\0');
	return 0;
}

/* `eval`: its arguments are a shell script. */
static int check_eval(const struct toolpolicy *t, const char *const *words, unsigned depth,
		      struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, 2 * TOOLPOLICY_TEXT_MAX_BYTES);
	for (; *words; words++)
		buf_addf(&text, "%s ", *words);
	return check_shell(t, buf_text(&text), depth + 1, e);
}

/* Returns the program name in a simple command, or NULL. */
static const char *const *find_program(const char *const *words)
{
	for (;;) {
		if (*words && strcmp(*words, "function") == 0)
			words += words[1] ? 2 : 1; /* skip its name too */
		else if (*words && (is_assignment(*words) || is_keyword(*words)))
			words++;
		else
			break;
	}
	return *words && !is_heading(*words) ? words : NULL;
}

/* All words of a simple command are collected: checks it. */
static int end_command(struct shell *s, struct err *e)
{
	const char *const *words;

	s->words[s->count] = NULL;
	s->count = s->used = 0;
	words = find_program(s->words);
	if (!words)
		return 0;
	if (strcmp(*words, "eval") == 0 && check_eval(s->policy, words + 1, s->depth, e) < 0)
		return -1;
	return check_words(s->policy, words, s->depth + 1, e);
}

/* Skips the file name after '<' or '>'; "<(command)" has none, and the command is read next. */
static int skip_file(struct shell *s, struct err *e)
{
	size_t used = s->used;

	s->at += strspn(s->at, "<>&|");
	s->at += strspn(s->at, " \t");
	if (take_word(s, e) < 0)
		return -1;
	s->used = used;
	return 0;
}

static int add_word(struct shell *s, struct err *e)
{
	size_t start = s->used;

	if (take_word(s, e) < 0)
		return -1;
	/* the number in "2>file" is a descriptor */
	if (strchr("<>", *s->at) && *s->at &&
	    s->room[start + strspn(s->room + start, "0123456789")] == '\0')
		s->used = start;
	else
		s->words[s->count++] = s->room + start;
	return 0;
}

static int read_shell(struct shell *s, struct err *e)
{
	while (*s->at) {
		int ok = 0;

		if (strchr(" \t", *s->at)) {
			s->at++;
		} else if (strchr("\n;|&()", *s->at)) {
			ok = end_command(s, e);
			s->at++;
		} else if (*s->at == '#') {
			s->at += strcspn(s->at, "\n");
		} else if (strchr("<>", *s->at)) {
			ok = skip_file(s, e);
		} else {
			ok = add_word(s, e);
		}
		if (ok < 0)
			return -1;
	}
	return end_command(s, e);
}

/* Checks the simple commands of a shell script, as far as they are visible without running it. */
static int check_shell(const struct toolpolicy *t, const char *text, unsigned depth, struct err *e)
{
	size_t len = strnlen(text, TOOLPOLICY_TEXT_MAX_BYTES + 1);
	cleanup_free char *room = NULL;
	cleanup_free const char **words = NULL;
	struct shell s = { .policy = t, .depth = depth, .at = text };

	if (len > TOOLPOLICY_TEXT_MAX_BYTES)
		return err_set(e, ERR_DENIED, "the command's text is larger than %u bytes",
			       TOOLPOLICY_TEXT_MAX_BYTES);
	if (depth > TOOLPOLICY_DEPTH_MAX)
		return err_set(e, ERR_DENIED,
			       "the command holds more than %u commands in each other",
			       TOOLPOLICY_DEPTH_MAX);
	/* a word takes at least one byte and a separator */
	s.room = room = mem_alloc(2 * len + 2);
	s.words = words = mem_alloc((len + 2) * sizeof(*words));
	return read_shell(&s, e);
}

/* ---- argument lists ---- */

/* Returns the script given with -c, also as in -euo pipefail -c; NULL if there is none. */
static const char *shell_text(const char *const *argv)
{
	bool has_text = false;

	for (size_t i = 1; argv[i]; i++) {
		const char *word = argv[i];

		if (strcmp(word, "--") == 0 || strcmp(word, "-") == 0)
			return has_text ? argv[i + 1] : NULL;
		if (word[0] != '-' && word[0] != '+')
			return has_text ? word : NULL;
		if (word[1] == '-') {
			if (strcmp(word, "--rcfile") == 0 || strcmp(word, "--init-file") == 0)
				i += argv[i + 1] != NULL;
			continue;
		}
		has_text = has_text || (word[0] == '-' && strchr(word, 'c'));
		if (strpbrk(word, "oO"))
			i += argv[i + 1] != NULL;
	}
	return NULL;
}

/* A word after an option may be the option's value; then the command comes later. */
static int check_started(const struct toolpolicy *t, const char *const *argv, unsigned depth,
			 struct err *e)
{
	bool is_after_option = false;

	for (size_t i = 1; argv[i]; i++) {
		if (argv[i][0] == '-' || is_assignment(argv[i]) || is_number(argv[i])) {
			is_after_option = argv[i][0] == '-' && !strchr(argv[i], '=');
			continue;
		}
		if (check_words(t, argv + i, depth + 1, e) < 0)
			return -1;
		if (!is_after_option)
			break;
		is_after_option = false;
	}
	return 0;
}

static int check_words(const struct toolpolicy *t, const char *const *argv, unsigned depth,
		       struct err *e)
{
	const char *text;

	if (depth > TOOLPOLICY_DEPTH_MAX)
		return err_set(e, ERR_DENIED,
			       "the command holds more than %u commands in each other",
			       TOOLPOLICY_DEPTH_MAX);
	text = is_shell(argv[0]) ? shell_text(argv) : NULL;
	/* a shell that only runs a script needs no permission of its own */
	if (!(text && !is_listed(t->blocked_commands, path_base_name(argv[0]))) &&
	    check_program(t, argv[0], e) < 0)
		return -1;
	if (text)
		return check_shell(t, text, depth, e);
	return is_starter(argv[0]) ? check_started(t, argv, depth, e) : 0;
}

int toolpolicy_check_command(const struct toolpolicy *t, const char *const *argv, struct err *e)
{
	if (!t->commands && !t->blocked_commands)
		return 0;
	return argv[0] ? check_words(t, argv, 0, e) : 0;
}
