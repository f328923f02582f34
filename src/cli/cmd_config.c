/* cmd_config - agentkernel config check, trust, distrust: configuration files. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/say.h"
#include "cli/commands.h"
#include "ops/request.h"
#include "cli/words.h"

#include <limits.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel config check",
	"the files that count here: do they mean anything, and how far is the project's trusted",
	"agentkernel config trust",
	"allow all that this project's agentkernel.toml asks for, until a byte of it changes",
	NULL,
};

struct flags {
	bool is_json;
};

static const struct opt check_rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table check_options = { check_rows, COUNT_OF(check_rows) };
static const struct opts_table no_options = { NULL, 0 };

/* The given file, or the project's; the caller frees. */
static int find_file(const char *named, char **ret, struct err *e)
{
	char cwd[PATH_MAX];
	char *path = NULL;

	if (!getcwd(cwd, sizeof(cwd)))
		return err_set(e, ERR_INVALID, "the working directory cannot be read");
	if (named)
		path = path_absolute(cwd, named);
	else if (configfile_find(cwd, &path, e) < 0)
		return -1;
	if (!path && named)
		return err_set(e, ERR_INVALID, "'%s' climbs above '/'", named);
	if (!path)
		return err_set(e, ERR_NOT_FOUND,
			       "no " CONFIGFILE_NAME " here ('agentkernel init' writes one)");
	*ret = path;
	return 0;
}

/* Also resolves the policy, because errors may lie in the combination of settings. */
static int check_policy(const struct ak *ak, const char *named, struct request *r, struct err *e)
{
	r->ak = ak;
	r->config_path = named;
	return request_resolve(r, NULL, NULL, e);
}

/* A file given explicitly applies in full, so its trust is not shown. */
static void format(const struct request *r, const struct flags *f, struct buf *out)
{
	const struct configfile *c = &r->config;
	const char *trust = r->config_path  ? ""
			    : c->is_trusted ? ", trusted"
			    : r->left_out   ? ", not trusted: what goes beyond your own is left out"
					    : ", needs no trust";
	struct json j;

	if (f->is_json) {
		json_init(&j, out);
		json_open_object(&j, NULL);
		if (c->user_path)
			json_add_text(&j, "user", c->user_path);
		if (c->project_path) {
			json_add_text(&j, "project", c->project_path);
			if (!r->config_path)
				json_add_bool(&j, "trusted", c->is_trusted);
			json_add_bool(&j, "applies", !r->left_out);
			json_open_array(&j, "left_out");
			for (char **text = r->left_out; text && *text; text++)
				json_add_text(&j, NULL, *text);
			json_close_array(&j);
		}
		json_close_object(&j);
		buf_add_text(out, "\n");
		return;
	}
	if (c->user_path)
		buf_addf(out, "%s: ok, your own\n", c->user_path);
	if (c->project_path)
		buf_addf(out, "%s: ok%s\n", c->project_path, trust);
	for (char **text = r->left_out; text && *text; text++)
		buf_addf(out, "  %s\n", *text);
	shown_replace_lines(out->bytes, out->len);
	if (!c->user_path && !c->project_path)
		buf_add_text(out, "no configuration file counts here ('agentkernel init' writes "
				  "one)\n");
}

static int run_check(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request r = { 0 };
	const struct words_rule rule = { .usage = "config check [FILE]",
					 .options = &check_options,
					 .max = 1 };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	if (check_policy(context->ak, count ? words[0] : NULL, &r, e) < 0)
		return -1;
	format(&r, &flags, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

static int read_file_word(char **argv, const char *usage, char **ret, struct err *e)
{
	const struct words_rule rule = { .usage = usage, .options = &no_options, .max = 1 };
	unsigned count = 0;
	char *words[2];

	if (words_read(&rule, argv, NULL, NULL, words, &count, e) < 0)
		return -1;
	return find_file(count ? words[0] : NULL, ret, e);
}

static int run_trust(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	cleanup_free char *path = NULL;

	if (read_file_word(argv, "config trust [FILE]", &path, e) < 0 ||
	    configfile_trust(context->ak, path, e) < 0)
		return -1;
	say("'%s' is trusted until it changes ('agentkernel policy show' tells what it allows)",
	    path);
	*ret_status = 0;
	return 0;
}

static int run_distrust(const struct cli_context *context, char **argv, int *ret_status,
			struct err *e)
{
	cleanup_free char *path = NULL;

	if (read_file_word(argv, "config distrust [FILE]", &path, e) < 0 ||
	    configfile_distrust(context->ak, path, e) < 0)
		return -1;
	*ret_status = 0;
	return 0;
}

const struct cli_command cmd_config_check = {
	.name = "config check",
	.summary = "check the configuration files that count here, or FILE",
	.usage = "[FILE]",
	.text = "Your own file is ~/.config/agentkernel/config.toml; the project's is the first\n"
		"agentkernel.toml from here upward to the repository's root. A project's file can\n"
		"only take away from what your own file and the command line allow, until it is\n"
		"trusted.",
	.examples = examples,
	.options = &check_options,
	.run = run_check,
};

const struct cli_command cmd_config_trust = {
	.name = "config trust",
	.summary = "allow all that a project's agentkernel.toml asks for, until it changes",
	.usage = "[FILE]",
	.options = &no_options,
	.run = run_trust,
};

const struct cli_command cmd_config_distrust = {
	.name = "config distrust",
	.summary = "stop trusting a project's agentkernel.toml",
	.usage = "[FILE]",
	.options = &no_options,
	.run = run_distrust,
};
