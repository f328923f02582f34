/* cmd_build - agentkernel build: makes an image from a Dockerfile. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/runoptions.h"
#include "ops/op_build.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel build -t tools:1 .",
	"an image from this directory's Dockerfile; 'agentkernel run -i tools:1' uses it",
	"agentkernel build --network-policy deny --allow-host '*.debian.org' -t tools:1 .",
	"the commands reach Debian's servers, and nothing else",
	"agentkernel build --secret id=token,src=token.txt --build-arg VERSION=3 -t app:3 .",
	"RUN --mount=type=secret,id=token sees the file, the image does not",
	"SOURCE_DATE_EPOCH=0 agentkernel build --no-cache -t app:3 .",
	"the same digest whenever the same comes out",
	NULL,
};

static void say_line(void *context, const char *line)
{
	const bool *is_quiet = context;
	char text[8192];
	int len;

	if (*is_quiet)
		return;
	len = snprintf(text, sizeof(text), "%s\n", line);
	if (len > 0)
		(void)!write(STDERR_FILENO, text,
			     (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

static int read_progress(const char *text, bool *ret_shows, struct err *e)
{
	*ret_shows = text && strcmp(text, "plain") == 0;
	if (!text || *ret_shows || strcmp(text, "auto") == 0)
		return 0;
	return err_set(e, ERR_INVALID, "--progress: no '%s' (use plain or auto)", text);
}

static int print_result(const struct op_build_result *r, const char *name, bool is_json,
			struct err *e)
{
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (!is_json) {
		buf_addf(&out, "%s\n", r->built.digest);
		return cli_print(&out, e);
	}
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_text(&j, "digest", r->built.digest);
	if (name)
		json_add_text(&j, "reference", name);
	json_add_number(&j, "steps", r->built.steps);
	json_add_number(&j, "cached", r->built.cached);
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	struct op_build_args args = { .request = &o.request, .say = say_line };
	struct op_build_result result;
	unsigned count = 0;

	if (runoptions_collect(&runoptions_build, argv, context->ak, &o, &args.context, 1, &count,
			       e) < 0 ||
	    read_progress(o.flags.progress, &args.shows_output, e) < 0)
		return -1;
	args.say_context = &o.flags.is_json;
	args.file = o.flags.file;
	args.name = o.flags.tag;
	args.target = o.flags.target;
	args.build_args = (char *const *)(uintptr_t)o.flags.build_args.texts;
	args.secrets = (char *const *)(uintptr_t)o.flags.secrets.texts;
	args.has_no_cache = o.flags.has_no_cache;
	*ret_status = 0;
	if (op_build(context->ak, &args, &cli_events, &result, e) < 0)
		return o.flags.is_json ? cli_print_failure(ret_status, e) : -1;
	return print_result(&result, args.name, o.flags.is_json, e);
}

const struct cli_command cmd_build = {
	.name = "build",
	.summary = "build an image from a Dockerfile, each step in a sandbox",
	.usage = "[options] DIRECTORY|-|GIT-ADDRESS",
	.text = "Reads the Dockerfile as BuildKit does. Each RUN is a sandbox under the given "
		"profile,\n"
		"network rules and limits, and sees the stage's files alone; its changes become a "
		"layer.\n"
		"Stages that do not need each other are built at once, and steps that were done "
		"before\n"
		"are not done again. Prints the image's digest. \"-\" reads a context as an "
		"archive "
		"from\n"
		"stdin, or a Dockerfile that needs none; an address of a repository "
		"(ADDRESS#REF:DIR) "
		"is\n"
		"cloned in a sandbox.",
	.examples = examples,
	.options = &runoptions_build,
	.run = run,
};
