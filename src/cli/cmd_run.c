/* cmd_run - agentkernel run: runs one command in a new sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/habits.h"
#include "cli/runoptions.h"
#include "ops/ending.h"
#include "ops/events.h"
#include "ops/op_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel run python3 -c 'print(6*7)'",
	"a script, in python's image, seeing nothing of yours",
	"agentkernel run -i debian:12 sh -c 'apt-get update && apt-get install -y jq && jq "
	"--version'",
	"any image, with its package manager; gone when it ends",
	"agentkernel run -i host --workspace sh -c 'make && make test'",
	"build the project in this directory with this machine's programs; nothing else is visible",
	"agentkernel run -p restrictive --timeout 10s -v ./untrusted:/untrusted:ro /untrusted",
	"a program of unknown intent: read-only root, small limits, ten seconds at most",
	"agentkernel run --keep -i debian:12 apt-get install -y jq",
	"the sandbox stays, stopped, with what it installed; start, exec and checkpoint work on it",
	"agentkernel run --mount ./data:/data:ro --memory 4G sort /data/big",
	"one directory of yours, read-only, and more memory than usual",
	NULL,
};

#define DENIALS_SHOWN 3u

/* Programs report a denied connection in many ways: name the real cause. */
static void explain_denials(const struct run_result *r)
{
	for (unsigned i = 0; i < r->denial_count && i < DENIALS_SHOWN; i++) {
		const struct gatekeeper_denial *d = &r->denials[i];

		char port[8] = "";

		if (d->port)
			(void)snprintf(port, sizeof(port), ":%u", d->port);
		say("the network policy denied %s%s: %s%s%s%s", d->host, port, d->reason,
		    d->fix[0] ? " (add " : "", d->fix, d->fix[0] ? ")" : "");
	}
	if (r->denial_count > DENIALS_SHOWN)
		say("and %u more (see agentkernel network log)", r->denial_count - DENIALS_SHOWN);
}

static int choose_tty(const struct runoptions_flags *f, enum streams_tty *ret, struct err *e)
{
	if (f->has_tty && f->has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	*ret = f->has_tty ? STREAMS_TTY_ON : f->has_no_tty ? STREAMS_TTY_OFF : STREAMS_TTY_AUTO;
	return 0;
}

static int check_kept(const struct runoptions_flags *f, struct err *e)
{
	if (f->is_removed && (f->is_kept || f->name || f->is_detached))
		return err_set(
			e, ERR_INVALID,
			"--rm keeps nothing, and %s keeps the sandbox (leave --rm out; --ttl "
			"1h removes it later)",
			f->is_detached ? "--detach"
			: f->name      ? "--name"
				       : "--keep");
	if (f->is_detached && f->is_json)
		return err_set(e, ERR_INVALID, "--detach prints a name, and --json an object");
	if (f->is_kept || f->name || f->is_detached)
		return f->name ? named_check_name(f->name, e) : 0;
	if (f->labels.count > 0)
		return err_set(e, ERR_INVALID, "--label is for sandboxes that stay (add --keep)");
	if (f->ttl)
		return err_set(e, ERR_INVALID, "--ttl is for sandboxes that stay (add --keep)");
	return 0;
}

static int print_name(const char *name, struct err *e)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_addf(&out, "%s\n", name);
	return cli_print(&out, e);
}

static int print_end(const struct runoptions *o, const struct run_result *end, struct err *e)
{
	cleanup_buf struct buf out;

	buf_init(&out, ENDING_JSON_MAX_BYTES);
	ending_format_json(end, &o->request.policy, &out);
	return cli_print(&out, e);
}

static int report_end(const struct runoptions *o, const struct op_run_result *result,
		      char *const *argv, struct err *e)
{
	const struct run_result *end = &result->end;

	if (o->flags.is_detached)
		return print_name(result->name, e);
	if (end->gate_deaths)
		say("the network broke down %u time%s%s%s", end->gate_deaths,
		    end->gate_deaths == 1 ? "" : "s", end->gate_trouble ? ": " : "",
		    end->gate_trouble ? end->gate_trouble : "");
	if (end->has_outdated_daemon && isatty(STDERR_FILENO))
		say("the daemon is of another build than this program, and was not used "
		    "('agentkernel daemon restart' renews it)");
	if (o->flags.is_json)
		return print_end(o, end, e);
	op_remark_all(&cli_events, end->notices);
	if (end->exit_code != 0)
		explain_denials(end);
	op_run_explain(&o->request, argv, end, &cli_events);
	ending_remark(&cli_events, end, &o->request.policy, o->request.policy.timeout_ms);
	return 0;
}

/* Users of docker type `run debian:12 bash`: explain -i. */
static int explain_not_found(const char *command, struct err *e)
{
	if (e->code != ERR_COMMAND_NOT_FOUND || !command || !strchr(command, ':') ||
	    !habits_is_image(command))
		return -1;
	return err_wrap(e, "an image is named with -i (agentkernel run -i %s COMMAND)", command);
}

static int run_options(const struct cli_context *context, struct runoptions *o, char **argv,
		       int *ret_status, struct err *e)
{
	CLEANUP(op_run_result_done) struct op_run_result result = { 0 };
	const struct runoptions_flags *f = &o->flags;
	struct op_run_args args = { .request = &o->request };

	if (runoptions_parse(&runoptions_run, argv, context->ak, o, e) < 0 ||
	    check_kept(f, e) < 0 || choose_tty(f, &args.tty, e) < 0 ||
	    runoptions_read_ttl(f, &args.ttl_ms, e) < 0)
		return -1;
	args.command = argv + o->used;
	args.entrypoint = f->entrypoint;
	args.is_captured = f->is_json;
	args.is_verbose = f->is_verbose;
	args.is_kept = f->is_kept;
	args.is_detached = f->is_detached;
	args.name = f->name;
	args.labels = (char *const *)(uintptr_t)f->labels.texts;
	if (op_run(context->ak, &args, &cli_events, &result, e) < 0) {
		op_remark_all(&cli_events, result.end.notices);
		return explain_not_found(args.command[0], e);
	}
	*ret_status = f->is_detached ? 0 : result.end.exit_code;
	return report_end(o, &result, args.command, e);
}

/* Looks for --json before the command, also if the other options are invalid. */
static bool asks_for_json(char **argv)
{
	for (; *argv && (*argv)[0] == '-' && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, "--json") == 0)
			return true;
	return false;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };

	if (run_options(context, &o, argv, ret_status, e) == 0)
		return 0;
	if (!o.flags.is_json && !asks_for_json(argv))
		return -1;
	return cli_print_failure(ret_status, e);
}

const struct cli_command cmd_run = {
	.name = "run",
	.summary = "run a command in a fresh sandbox that leaves nothing behind",
	.usage = "[options] [--] [COMMAND [ARG...]]",
	.text = "The command runs from an image: --image, else $AGENTKERNEL_IMAGE, else what the\n"
		"command or the files of this directory suggest, else \"host\", this machine's "
		"own\n"
		"programs, read-only. Of yours it sees no file, process or variable; its network "
		"is\n"
		"the public internet through the gate (--no-network for none). An image's own "
		"command\n"
		"runs when none is given. Streams, signals and the exit status pass through as if "
		"there\n"
		"were no sandbox. Exit status: the command's own; 124 deadline; 125 the sandbox "
		"could\n"
		"not be built; 126 not executable; 127 not found; 128+n ended by signal n.",
	.examples = examples,
	.options = &runoptions_run,
	.run = run,
};
