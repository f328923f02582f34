/*
 * cmd_completion - agentkernel completion: completion scripts for bash, zsh and fish.
 *
 * Written from the same tables as the parser and --help, so a new option completes at once.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/commands.h"

#include <string.h>

static const char *const examples[] = {
	"agentkernel completion bash > /etc/bash_completion.d/agentkernel",
	"for all users of bash; new shells then complete commands and options",
	NULL,
};

/* Is it the first command of its group, or of no group? */
static bool is_first_of_group(const struct cli_command *const *c)
{
	size_t len = strcspn((*c)->name, " ");

	for (const struct cli_command *const *earlier = cli_commands; earlier < c; earlier++)
		if (strncmp((*earlier)->name, (*c)->name, len) == 0 &&
		    strcspn((*earlier)->name, " ") == len)
			return false;
	return true;
}

/* Short forms too: "start" for "sandbox start". */
static void add_first_words(struct buf *out)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		const char *own = cli_short_name(*c);

		if (is_first_of_group(c)) {
			buf_add(out, (*c)->name, strcspn((*c)->name, " "));
			buf_add_text(out, " ");
		}
		if (own)
			buf_addf(out, "%s ", own);
	}
}

/* Commands of two words: the first has only these to follow. */
static void add_second_words(struct buf *out)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		size_t len = strcspn((*c)->name, " ");

		if ((*c)->name[len] == '\0' || !is_first_of_group(c))
			continue;
		buf_addf(out, "\t\t%.*s) COMPREPLY=($(compgen -W '", (int)len, (*c)->name);
		for (const struct cli_command *const *other = c; *other; other++)
			if (strncmp((*other)->name, (*c)->name, len + 1) == 0)
				buf_addf(out, "%s ", (*other)->name + len + 1);
		buf_add_text(out, "' -- \"$word\")); return ;;\n");
	}
}

static void add_case(const struct cli_command *c, struct buf *out)
{
	const char *own = cli_short_name(c);

	buf_addf(out, "\t'%s'%s", c->name, strchr(c->name, ' ') ? "*" : "\\ *");
	if (own)
		buf_addf(out, " | '%s'\\ *", own);
	buf_add_text(out, ") options='");
	for (size_t i = 0; c->options && i < c->options->count; i++)
		buf_addf(out, "--%s ", c->options->rows[i].name);
	buf_add_text(out, "--help' ;;\n");
}

static void format_bash(struct buf *out)
{
	buf_add_text(out, "# bash completion for agentkernel\n_agentkernel()\n{\n"
			  "\tlocal word=${COMP_WORDS[COMP_CWORD]} options=\n"
			  "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	add_first_words(out);
	buf_add_text(out, "\" -- \"$word\"))\n\t\treturn\n\tfi\n"
			  "\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
			  "\t\tcase \"${COMP_WORDS[1]}\" in\n");
	add_second_words(out);
	buf_add_text(out, "\t\tesac\n\tfi\n"
			  "\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		add_case(*c, out);
	buf_add_text(out, "\tesac\n\tcase \"$word\" in\n"
			  "\t-*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
			  "\t*) COMPREPLY=($(compgen -W \"$(agentkernel list -aq 2>/dev/null)\" -- "
			  "\"$word\")\n"
			  "\t\t$(compgen -c -- \"$word\") $(compgen -f -- \"$word\")) ;;\n"
			  "\tesac\n}\ncomplete -F _agentkernel agentkernel\n");
}

/* Help texts go between single quotes. */
static void add_quoted(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_add_text(out, "'\\''");
		else if (*text == '[' || *text == ']' || *text == ':')
			buf_add_text(out, " ");
		else
			buf_add(out, text, 1);
	}
}

static void format_zsh_command(const struct cli_command *c, struct buf *out)
{
	buf_addf(out, "\t'%s'*", c->name);
	if (cli_short_name(c))
		buf_addf(out, " | '%s '*", cli_short_name(c));
	buf_add_text(out, ")\n\t\t_arguments '--help[show help]'");
	for (size_t i = 0; c->options && i < c->options->count; i++) {
		const struct opt *o = &c->options->rows[i];

		buf_addf(out, " \\\n\t\t\t'--%s%s[", o->name, o->value ? "=" : "");
		add_quoted(out, o->help);
		buf_add_text(out, "]");
		if (o->value)
			buf_add_text(out, ":value:_files");
		buf_add_text(out, "'");
	}
	buf_add_text(out, " \\\n\t\t\t'*::command:_normal' ;;\n");
}

static void format_zsh(struct buf *out)
{
	buf_add_text(out, "#compdef agentkernel\n_agentkernel()\n{\n"
			  "\tif (( CURRENT == 2 )); then\n\t\tcompadd -- ");
	add_first_words(out);
	buf_add_text(out, "\n\t\treturn\n\tfi\n\tcase \"$words[2] $words[3]\" in\n");
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		format_zsh_command(*c, out);
	buf_add_text(out, "\tesac\n}\n_agentkernel \"$@\"\n");
}

static void format_fish(struct buf *out)
{
	buf_add_text(out, "# fish completion for agentkernel\n");
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		size_t first = strcspn((*c)->name, " ");

		if (cli_short_name(*c))
			buf_addf(out, "complete -c agentkernel -n __fish_use_subcommand -a %s\n",
				 cli_short_name(*c));
		buf_addf(out, "complete -c agentkernel -n __fish_use_subcommand -a %.*s -d '",
			 (int)first, (*c)->name);
		add_quoted(out, (*c)->summary);
		buf_add_text(out, "'\n");
		for (size_t i = 0; (*c)->options && i < (*c)->options->count; i++) {
			const struct opt *o = &(*c)->options->rows[i];

			buf_addf(out,
				 "complete -c agentkernel -n '__fish_seen_subcommand_from %.*s' -l "
				 "%s",
				 (int)first, (*c)->name, o->name);
			if (o->letter)
				buf_addf(out, " -s %c", o->letter);
			buf_addf(out, "%s -d '", o->value ? " -r" : "");
			add_quoted(out, o->help);
			buf_add_text(out, "'\n");
		}
	}
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	cleanup_buf struct buf out;

	(void)context;
	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (!argv[0] || argv[1])
		return err_set(e, ERR_INVALID, "which shell? agentkernel completion bash|zsh|fish");
	if (strcmp(argv[0], "bash") == 0)
		format_bash(&out);
	else if (strcmp(argv[0], "zsh") == 0)
		format_zsh(&out);
	else if (strcmp(argv[0], "fish") == 0)
		format_fish(&out);
	else
		return err_set(e, ERR_INVALID, "no completion for '%s' (use bash, zsh or fish)",
			       argv[0]);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_completion = {
	.name = "completion",
	.summary = "print the completion script of a shell",
	.usage = "bash|zsh|fish",
	.examples = examples,
	.run = run,
};
