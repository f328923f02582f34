/* cmd_help - agentkernel help: the list of commands, one command's page, the man page. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/commands.h"
#include "policy/operation.h"

#include <string.h>

struct help_options {
	bool is_man, is_operations;
};

static const struct opt rows[] = {
	{ "Options", "man", 0, NULL, "print the man page (roff)", .kind = OPT_FLAG,
	  .offset = offsetof(struct help_options, is_man) },
	{ NULL, "man-operations", 0, NULL, "print the operations for programs (mdoc)",
	  .kind = OPT_FLAG, .offset = offsetof(struct help_options, is_operations) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* The most used commands, in the order in which users need them. */
static const struct cli_command *const first_commands[] = {
	&cmd_run,          &cmd_sandbox_create, &cmd_sandbox_start,  &cmd_exec,
	&cmd_sandbox_list, &cmd_sandbox_stop,   &cmd_sandbox_remove, &cmd_checkpoint_create,
	&cmd_agent_run,    &cmd_plugin_install, &cmd_doctor,
};

static bool is_first(const struct cli_command *c)
{
	for (size_t i = 0; i < COUNT_OF(first_commands); i++)
		if (first_commands[i] == c)
			return true;
	return false;
}

static void add_line(struct buf *out, const struct cli_command *c)
{
	buf_addf(out, "  %-18s %s\n", cli_short_name(c) ? cli_short_name(c) : c->name, c->summary);
}

/* Lists a group by the first word of the names; "" is the group of one-word commands. */
static void add_group(struct buf *out, const char *group, const char *title)
{
	size_t len = strlen(group);

	buf_addf(out, "\n%s:\n", title);
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		bool is_in =
			len > 0 ? strncmp((*c)->name, group, len) == 0 && (*c)->name[len] == ' '
				: !strchr((*c)->name, ' ');

		if (is_in && !is_first(*c))
			add_line(out, *c);
	}
}

static void format_overview(struct buf *out)
{
	static const struct {
		const char *group, *title;
	} groups[] = {
		{ "sandbox", "Named sandboxes" },
		{ "checkpoint", "Checkpoints" },
		{ "image", "Images" },
		{ "network", "Network" },
		{ "agent", "Coding agents" },
		{ "plugin", "Plugins of coding agents" },
		{ "mcp", "For programs" },
		{ "daemon", "Sandboxes that wait ready" },
		{ "config", "Configuration" },
		{ "policy", "Policies" },
		{ "", "Others" },
	};

	buf_add_text(out, "agentkernel - run any command in a sandbox\n\n"
			  "Usage: agentkernel COMMAND [options]\n\n"
			  "Start here:\n"
			  "  agentkernel run python3 -c 'print(6*7)'\n\nMost used:\n");
	for (size_t i = 0; i < COUNT_OF(first_commands); i++)
		add_line(out, first_commands[i]);
	for (size_t i = 0; i < COUNT_OF(groups); i++)
		add_group(out, groups[i].group, groups[i].title);
	buf_add_text(out, "\nMore about a command or a group: agentkernel help run, agentkernel "
			  "help checkpoint\n");
}

/* roff reads a leading dot or quote as a request, '\' as an escape and '-' as a hyphen. */
static void add_roff(struct buf *out, const char *text)
{
	bool is_line_start = true;

	for (; *text; text++) {
		if (is_line_start && (*text == '.' || *text == '\''))
			buf_add_text(out, "\\&");
		if (*text == '\\')
			buf_add_text(out, "\\e");
		else if (*text == '-')
			buf_add_text(out, "\\-");
		else
			buf_add(out, text, 1);
		is_line_start = *text == '\n';
	}
}

static void format_man_options(const struct opts_table *t, struct buf *out)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct opt *o = &t->rows[i];

		if (opts_begins_group(t, i))
			buf_addf(out, ".PP\n%s:\n", o->group);
		buf_add_text(out, ".TP\n");
		if (o->letter)
			buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
		buf_add_text(out, "\\fB\\-\\-");
		add_roff(out, o->name);
		buf_add_text(out, "\\fR");
		if (o->value)
			buf_addf(out, opts_has_optional_value(o) ? " [\\fI%s\\fR]" : " \\fI%s\\fR",
				 o->value);
		buf_add_text(out, "\n");
		add_roff(out, o->help);
		buf_add_text(out, "\n");
	}
}

static void format_man_command(const struct cli_command *c, struct buf *out)
{
	buf_addf(out, ".SS agentkernel %s %s\n", c->name, c->usage);
	add_roff(out, c->summary);
	buf_add_text(out, ".\n");
	if (c->text) {
		buf_add_text(out, ".PP\n");
		add_roff(out, c->text);
		buf_add_text(out, "\n");
	}
	if (c->options)
		format_man_options(c->options, out);
	for (const char *const *line = c->examples; line && line[0]; line += 2) {
		buf_add_text(out, ".TP\n\\fB");
		add_roff(out, line[0]);
		buf_add_text(out, "\\fR\n");
		add_roff(out, line[1]);
		buf_add_text(out, "\n");
	}
}

static void format_man(struct buf *out)
{
	buf_add_text(out, ".TH AGENTKERNEL 1 \"\" \"agentkernel " AGENTKERNEL_VERSION
			  "\" \"User Commands\"\n"
			  ".SH NAME\nagentkernel \\- run any command in a sandbox\n"
			  ".SH SYNOPSIS\n.B agentkernel\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n"
			  ".SH DESCRIPTION\nRuns commands, programs and agents on Linux behind "
			  "walls made of namespaces, cgroups, Landlock and seccomp, without a "
			  "daemon and without root.\n"
			  ".SH COMMANDS\n");
	for (const struct cli_command *const *c = cli_commands; *c; c++)
		format_man_command(*c, out);
}

/* Accepts "policy show" as one word or two, and "start" for "sandbox start". */
static const struct cli_command *find(char **words)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		size_t len = strlen(words[0]);

		if (strcmp((*c)->name, words[0]) == 0 ||
		    (cli_short_name(*c) && strcmp(cli_short_name(*c), words[0]) == 0))
			return *c;
		if (strncmp((*c)->name, words[0], len) == 0 && (*c)->name[len] == ' ' &&
		    (!words[1] || strcmp((*c)->name + len + 1, words[1]) == 0))
			return *c;
	}
	return NULL;
}

/* Operations with their parameters, as a list of libagentkernel(3). */
static void format_operations(struct buf *out)
{
	buf_add_text(out, ".Bl -tag -width Ds\n");
	for (unsigned id = 0; id < OPERATION_COUNT; id++) {
		const struct operation *o = operation_get(id);
		const char *comma = "";

		buf_addf(out, ".It Sy %s\n%s\n.br\n", o->name, o->help);
		for (const struct operation_field *f = o->params; f->name; f++) {
			buf_addf(out, "%s%s%s", comma, f->name, f->is_required ? "*" : "");
			comma = ", ";
		}
		buf_add_text(out, "\n");
	}
	buf_add_text(out, ".El\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	struct help_options o = { 0 };
	cleanup_buf struct buf out;
	int used = 0;

	(void)context;
	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (opts_parse(&options, argv, &o, NULL, &used, e) < 0)
		return -1;
	if (o.is_operations) {
		format_operations(&out);
	} else if (o.is_man) {
		format_man(&out);
	} else if (!argv[used]) {
		format_overview(&out);
	} else if (argv[used + 1] || !cli_format_group(argv[used], &out)) {
		const struct cli_command *c = find(argv + used);

		if (!c)
			return err_set(e, ERR_NOT_FOUND, "no command '%s' (see agentkernel help)",
				       argv[used]);
		cli_format_help(c, &out);
	}
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_help = {
	.name = "help",
	.summary = "show the commands, or one of them",
	.usage = "[COMMAND]",
	.options = &options,
	.run = run,
};
