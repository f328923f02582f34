/* cmd_sandbox_diff - agentkernel sandbox diff: lists changes of a sandbox against its image. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/changes.h"
#include "named/execute.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "policy/clone.h"

#define OUTPUT_MAX_BYTES (256u << 20)

struct flags {
	bool is_json, is_git;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable array", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
	{ NULL, "git", 0, NULL, "of one made with --clone: a patch against the repository",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_git) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static void format(const struct treediff *d, bool is_json, struct buf *out)
{
	char letter[2] = "";
	struct json j;

	json_init(&j, out);
	if (is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < d->count; i++) {
		letter[0] = treediff_letter(d->list[i].kind);
		if (is_json) {
			json_open_object(&j, NULL);
			json_add_text(&j, "kind", letter);
			json_add_text(&j, "path", d->list[i].path);
			json_close_object(&j);
			continue;
		}
		buf_addf(out, "%s ", letter);
		/* the sandbox chose these names: no escape sequences or newlines to the terminal */
		shown_add(out, d->list[i].path);
		buf_add_text(out, "\n");
	}
	if (is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	}
}

static int load_policy(const struct ak *ak, const char *name, struct policy *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_load_policy(&n, ret, e) < 0)
		return -1;
	if (!ret->is_clone)
		return err_set(e, ERR_INVALID,
			       "sandbox '%s' was not made with --clone: there is no repository to "
			       "compare with (without --git, all of its files are)",
			       name);
	return 0;
}

/* Runs git inside, where it can do no harm, and prints its patch unchanged. */
static int print_patch(const struct ak *ak, const char *name, int *ret_status, struct err *e)
{
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };
	cleanup_buf struct buf text;
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", NULL, NULL };
	const struct execute_options o = {
		.name = name, .ak = ak, .argv = argv, .workdir = "/", .tty = STREAMS_TTY_OFF
	};
	bool was_running;
	struct err ignored;
	int r;

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	if (load_policy(ak, name, &policy, e) < 0 || inventory_info(ak, name, &entry, e) < 0)
		return -1;
	clone_format_diff(&policy, &text);
	argv[2] = (char *)(uintptr_t)buf_text(&text);
	was_running = entry.state == NAMED_RUNNING || entry.state == NAMED_DOZING;
	if (!was_running && lifecycle_start(ak, name, e) < 0)
		return -1;
	r = execute_command(&o, &result, e);
	if (!was_running)
		(void)!lifecycle_stop(ak, name, LIFECYCLE_STOP_DEFAULT_MS, 0, &ignored);
	*ret_status = result.exit_code;
	return r;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(treediff_done) struct treediff diff = { 0 };
	const struct words_rule rule = {
		.usage = "diff NAME", .options = &options, .min = 1, .max = 1
	};
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	unsigned count = 0;
	char *words[2];

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	if (flags.is_git && flags.is_json)
		return err_set(e, ERR_INVALID, "--git and --json exclude each other");
	if (flags.is_git)
		return print_patch(context->ak, words[0], ret_status, e);
	if (changes_find(context->ak, words[0], &diff, e) < 0)
		return -1;
	format(&diff, flags.is_json, &out);
	if (diff.is_cut || out.is_cut)
		say("there are more changes than are shown");
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_sandbox_diff = {
	.name = "sandbox diff",
	.summary = "list what a sandbox has changed against its image",
	.usage = "NAME [--git] [--json]",
	.text = "A is added, C changed, D deleted. With --git, for a sandbox made with --clone: "
		"all that\n"
		"was changed in its clone, committed or not, as a patch for 'git apply'. Its "
		"commits are\n"
		"fetched from it while it runs: git fetch --upload-pack 'agentkernel exec -T NAME\n"
		"git-upload-pack' DIR",
	.options = &options,
	.run = run,
};
