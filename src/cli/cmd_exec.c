/* cmd_exec - agentkernel exec: runs a command in a running named sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/ending.h"
#include "ops/events.h"
#include "ops/op_exec.h"
#include "ops/refusal.h"
#include "policy/policy.h"

#include <string.h>

static const char *const examples[] = {
	"agentkernel exec otter apt-get install -y jq",
	"one more command in the sandbox 'otter'",
	"agentkernel exec -u root -w /etc otter ls -la",
	"as another user, in another directory",
	"agentkernel exec -d otter python3 -m http.server",
	"in the background: prints an id for logs, ps, kill and attach",
	NULL,
};

struct flags {
	struct opts_list env;
	const char *workdir, *user, *timeout;
	bool has_tty, has_no_tty, is_detached, is_json, is_interactive;
};

static const struct opt rows[] = {
	{ "Options", "detach", 'd', NULL, "do not wait: print an id; the output is kept",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_detached) },
	{ NULL, "env", 'e', "NAME[=VALUE]", "set a variable; without a value: the caller's own",
	  .kind = OPT_LIST, .offset = offsetof(struct flags, env) },
	{ NULL, "workdir", 'w', "DIR", "where the command starts, inside", .kind = OPT_TEXT,
	  .offset = offsetof(struct flags, workdir) },
	{ NULL, "user", 'u', "USER[:GROUP]", "as whom: a name known inside, or a number",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, user) },
	{ NULL, "timeout", 0, "DURATION", "end it after 30s, 10m, 1h30m (exit status 124)",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, timeout) },
	{ NULL, "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
	{ NULL, "interactive", 'i', NULL, "stdin is passed on (always)", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_interactive) },
	{ NULL, "tty", 't', NULL, "a terminal (default: when stdin and stdout are terminals)",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, has_tty) },
	{ NULL, "no-tty", 'T', NULL, "no terminal", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, has_no_tty) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static int read_flags(const struct flags *f, struct op_exec_args *o, struct err *e)
{
	if (f->has_tty && f->has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	o->tty = f->has_tty ? STREAMS_TTY_ON : f->has_no_tty ? STREAMS_TTY_OFF : STREAMS_TTY_AUTO;
	o->workdir = f->workdir;
	o->user = f->user;
	o->env = (char *const *)(uintptr_t)f->env.texts;
	o->is_captured = f->is_json;
	if (f->timeout && parse_duration_ms(f->timeout, POLICY_TIMEOUT_MIN_MS,
					    POLICY_TIMEOUT_MAX_MS, &o->timeout_ms, e) < 0)
		return err_wrap(e, "--timeout");
	return 0;
}

static int print(const char *text, struct err *e)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_addf(&out, "%s\n", text);
	return cli_print(&out, e);
}

static int run_attached(struct ak *ak, const struct op_exec_args *args, bool is_json,
			int *ret_status, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	cleanup_buf struct buf out;

	buf_init(&out, ENDING_JSON_MAX_BYTES);
	if (op_exec(ak, args, &cli_events, &result, e) < 0)
		return is_json ? cli_print_failure(ret_status, e) : -1;
	*ret_status = result.exit_code;
	if (is_json) {
		ending_format_json(&result, NULL, &out);
		return cli_print(&out, e);
	}
	op_remark_all(&cli_events, result.notices);
	(void)refusal_explain(&cli_events, args->command, &result);
	ending_remark(&cli_events, &result, NULL, args->timeout_ms);
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	cleanup_free char **words = NULL;
	struct op_exec_args o = { 0 };
	struct words_rule rule = { .usage = "exec [options] NAME [COMMAND [ARG...]]",
				   .options = &options,
				   .min = 1,
				   .ends_options = true };
	struct flags flags = { 0 };
	unsigned count = 0;
	char *shell[] = { (char *)"/bin/sh", (char *)"-c",
			  (char *)"command -v bash >/dev/null 2>&1 && exec bash; exec sh", NULL };
	struct op_exec_start_result started;

	while (argv[rule.max])
		rule.max++;
	words = mem_alloc((rule.max + 1) * sizeof(*words));
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    read_flags(&flags, &o, e) < 0)
		return -1;
	o.name = words[0];
	o.command = words + 1;
	if (count > 1 && strcmp(words[1], "--") == 0)
		o.command++;
	if (!o.command[0])
		o.command = shell;
	if (!flags.is_detached)
		return run_attached(context->ak, &o, flags.is_json, ret_status, e);
	if (op_exec_start(context->ak, &o, &cli_events, &started, e) < 0)
		return -1;
	*ret_status = 0;
	return print(started.id, e);
}

const struct cli_command cmd_exec = {
	.name = "exec",
	.summary = "run a command in a running sandbox",
	.usage = "[options] NAME [COMMAND [ARG...]]",
	.text = "Streams, signals and the exit status pass through as with run. When this command "
		"is\n"
		"killed, so is what it started, unless it was detached. Without COMMAND: a shell.",
	.examples = examples,
	.options = &options,
	.run = run,
};
