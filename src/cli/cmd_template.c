/* cmd_template - agentkernel template list and build: images for coding agents. */
#include "agents/agenttemplate.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/runoptions.h"
#include "cli/words.h"
#include "engine/images.h"
#include "ops/op_build.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- list ---- */

static const char *const list_examples[] = {
	"agentkernel template list",
	"which recipes there are, and which of them were built here",
	NULL,
};

struct flags {
	bool is_json;
};

static const struct opt list_rows[] = {
	{ "Output", "json", 0, NULL, "machine-readable output", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table list_options = { list_rows, COUNT_OF(list_rows) };

static bool is_built(const struct images_list *all, const struct agenttemplate *t)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->entries[i].full_name, t->image) == 0)
			return true;
	return false;
}

static void print_json(const struct images_list *all, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_array(&j, NULL);
	for (size_t i = 0; i < agenttemplate_count; i++) {
		const struct agenttemplate *t = &agenttemplate_all[i];

		json_open_object(&j, NULL);
		json_add_text(&j, "name", t->name);
		json_add_text(&j, "image", t->image);
		json_add_bool(&j, "built", is_built(all, t));
		json_add_text(&j, "about", t->about);
		json_close_object(&j);
	}
	json_close_array(&j);
	buf_add_text(out, "\n");
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	static const struct words_rule rule = { .usage = "template list",
						.options = &list_options };
	CLEANUP(images_list_done) struct images_list all = { 0 };
	cleanup_buf struct buf out;
	struct flags flags = { 0 };
	char *words[1];
	unsigned count;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    images_list(context->ak, &all, e) < 0)
		return -1;
	if (flags.is_json)
		print_json(&all, &out);
	for (size_t i = 0; i < agenttemplate_count && !flags.is_json; i++) {
		const struct agenttemplate *t = &agenttemplate_all[i];

		buf_addf(&out, "%-9s %-10s %-38s %s\n", t->name,
			 is_built(&all, t) ? "built" : "not built", t->image, t->about);
	}
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_template_list = {
	.name = "template list",
	.summary = "list the recipes of images for coding agents",
	.usage = "[options]",
	.examples = list_examples,
	.options = &list_options,
	.run = run_list,
};

/* ---- build ---- */

static const char *const build_examples[] = {
	"agentkernel template build claude",
	"an image with Claude Code; 'agentkernel agent run claude' uses it where claude is not "
	"installed",
	"agentkernel template build base --build-arg BASE=ubuntu:24.04",
	"another system below",
	NULL,
};

static void say_line(void *context, const char *line)
{
	cleanup_free char *text = mem_format("%s\n", line);

	(void)context;
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static int run_build(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	struct op_build_args args = { .request = &o.request, .say = say_line };
	const struct agenttemplate *t;
	struct op_build_result result;
	cleanup_free char *text = NULL;
	const char *name = NULL;
	unsigned count = 0;

	if (runoptions_collect(&runoptions_build, argv, context->ak, &o, &name, 1, &count, e) < 0)
		return -1;
	if (!name)
		return err_set(e, ERR_INVALID,
			       "missing argument NAME: agentkernel template build NAME");
	t = agenttemplate_find(name);
	if (!t)
		return err_set(e, ERR_NOT_FOUND,
			       "no template '%.60s' ('agentkernel template list' shows them)",
			       name);
	if (o.flags.file || o.flags.target || o.flags.secrets.count)
		return err_set(
			e, ERR_INVALID,
			"a template has its own Dockerfile ('agentkernel build' takes yours)");
	text = agenttemplate_format(t);
	args.text = text;
	args.name = o.flags.tag ? o.flags.tag : t->image;
	args.build_args = (char *const *)(uintptr_t)o.flags.build_args.texts;
	args.has_no_cache = o.flags.has_no_cache;
	args.shows_output = o.flags.progress && strcmp(o.flags.progress, "plain") == 0;
	*ret_status = 0;
	return op_build(context->ak, &args, &cli_events, &result, e);
}

const struct cli_command cmd_template_build = {
	.name = "template build",
	.summary = "build an image for a coding agent from its recipe",
	.usage = "[options] NAME",
	.text = "The recipes are in share/templates of the source: a Debian with Node, Python, Go "
		"and "
		"the usual\n"
		"tools, a user 'agent', and the agent from npm. Built here, by 'agentkernel "
		"build', with "
		"its\n"
		"options.",
	.examples = build_examples,
	.options = &runoptions_build,
	.run = run_build,
};
