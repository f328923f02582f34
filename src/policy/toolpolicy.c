/* toolpolicy - what programs that call us may do; see toolpolicy.h. */
#include "policy/toolpolicy.h"

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

/* They take options and variables, then a command. */
static bool is_starter(const char *word)
{
	static const char *const names[] = { "env",     "sudo",   "doas",    "timeout",
					     "nice",    "nohup",  "time",    "setsid",
					     "stdbuf",  "xargs",  "ionice",  "exec",
					     "command", "chroot", "unshare", "busybox" };

	return is_one_of(path_base_name(word), names, COUNT_OF(names));
}

/* Words of a shell after which a command begins. */
static bool is_keyword(const char *word)
{
	static const char *const words[] = { "if",   "then", "else", "elif", "while", "until",
					     "do",   "!",    "{",    "time", "eval",  "for",
					     "case", "in",   "fi",   "done", "esac",  "}" };

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

static int check_words(const struct toolpolicy *t, const char *const *argv, unsigned depth,
		       struct err *e);

/* A word of shell text without quotation marks and backslashes; NULL at the end. */
static char *take_word(const char **text)
{
	const char *at = *text + strspn(*text, " \t");
	char *word;
	size_t len = 0;
	char quote = 0;

	if (*at == '\0') {
		*text = at;
		return NULL;
	}
	word = mem_alloc(strlen(at) + 1);
	for (; *at && (quote || !strchr(" \t\n;|&()<>`", *at)); at++) {
		if (quote == 0 && (*at == '\'' || *at == '"'))
			quote = *at;
		else if (quote && *at == quote)
			quote = 0;
		else if (*at == '\\' && quote != '\'' && at[1])
			word[len++] = *++at;
		else
			word[len++] = *at;
	}
	word[len] = '\0';
	*text = at;
	return word;
}

/* The simple commands of a shell text, as far as they can be seen without running it. */
static int check_shell(const struct toolpolicy *t, const char *text, unsigned depth, struct err *e)
{
	const char *words[3] = { NULL };
	bool is_at_start = true;

	while (*text) {
		cleanup_free char *word = NULL;

		if (strchr("\n;|&()`", *text)) {
			is_at_start = true;
			text++;
			continue;
		}
		if (strchr("<>", *text)) { /* the word after it is a file */
			text += strspn(text, "<>&");
			word = take_word(&text);
			continue;
		}
		word = take_word(&text);
		if (!word)
			break;
		if (strstr(word, "$(")) /* cut where the parenthesis begins: what follows is next */
			is_at_start = true;
		if (!is_at_start || word[0] == '\0' || is_assignment(word) || word[0] == '$')
			continue;
		if (is_keyword(word))
			continue;
		words[0] = word;
		if (check_words(t, words, depth + 1, e) < 0)
			return -1;
		is_at_start = is_starter(word);
	}
	return 0;
}

/* The text after -c, also as in -lc; NULL: there is none. */
static const char *shell_text(const char *const *argv)
{
	for (size_t i = 1; argv[i]; i++) {
		if (argv[i][0] != '-' && argv[i][0] != '+')
			return NULL;
		if (argv[i][1] != '-' && strchr(argv[i], 'c'))
			return argv[i + 1];
	}
	return NULL;
}

static int check_started(const struct toolpolicy *t, const char *const *argv, unsigned depth,
			 struct err *e)
{
	size_t i = 1;

	while (argv[i] && (argv[i][0] == '-' || is_assignment(argv[i]) || is_number(argv[i])))
		i++;
	return argv[i] ? check_words(t, argv + i, depth + 1, e) : 0;
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
	/* a shell that is only the way to write a command needs no permission of its own */
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
