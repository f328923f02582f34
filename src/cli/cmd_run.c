/* cmd_run - agentkernel run: one command in a fresh sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "engine/run.h"

#include <stdio.h>

static const char *const examples[] = {
	"agentkernel run python3 -c 'print(6*7)'",
	"a script, with this machine's python3, seeing nothing of yours",
	"agentkernel run --workspace sh -c 'make && make test'",
	"build the project in this directory; nothing else of yours is visible",
	"agentkernel run -p restrictive --timeout 10s -v ./untrusted:/untrusted:ro /untrusted",
	"a program of unknown intent: read-only root, small limits, ten seconds at most",
	"agentkernel run --mount ./data:/data:ro --memory 4G sort /data/big",
	"one directory of yours, read-only, and more memory than usual",
	NULL,
};

/* stdout and stderr hold at most 6 escaped characters a byte. */
#define JSON_MAX_BYTES (13u * STREAMS_CAPTURE_MAX_BYTES)

/* The command's status tells the rest; these three would look like crashes of its own. */
static void explain_end(const struct run_result *r, const struct policy *p)
{
	char amount[PARSE_FORMAT_MAX_BYTES];

	switch (r->end) {
	case RUN_TIMED_OUT:
		cli_say("the command was ended after %s (--timeout)",
			parse_format_duration(p->timeout_ms, amount));
		break;
	case RUN_OUT_OF_CPU:
		cli_say("the command used up its processor time of %s (--cpu-time)",
			parse_format_duration(p->cpu_time_ms, amount));
		break;
	case RUN_OUT_OF_MEMORY:
		cli_say("the command ran out of memory: its limit is %s (raise it with --memory)",
			parse_format_bytes(p->memory_bytes, amount));
		break;
	case RUN_EXITED:
	case RUN_SIGNALLED:
		if (r->has_oom)
			cli_say("a process inside was killed for lack of memory: the limit is %s "
				"(raise "
				"it with --memory)",
				parse_format_bytes(p->memory_bytes, amount));
		break;
	}
}

#define DENIALS_SHOWN 3u

/* What a program makes of "no such host" is anyone's guess; say what it was. */
static void explain_denials(const struct run_result *r)
{
	for (unsigned i = 0; i < r->denial_count && i < DENIALS_SHOWN; i++) {
		const struct gatekeeper_denial *d = &r->denials[i];

		char port[8] = "";

		if (d->port)
			(void)snprintf(port, sizeof(port), ":%u", d->port);
		cli_say("the network policy denied %s%s: %s%s%s%s", d->host, port, d->reason,
			d->fix[0] ? " (add " : "", d->fix, d->fix[0] ? ")" : "");
	}
	if (r->denial_count > DENIALS_SHOWN)
		cli_say("and %u more (see agentkernel network log)",
			r->denial_count - DENIALS_SHOWN);
}

static int print_json(const struct run_result *r, struct err *e)
{
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, JSON_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_number(&j, "exit_code", r->exit_code);
	if (r->signal_number)
		json_add_number(&j, "signal", r->signal_number);
	else
		json_add_null(&j, "signal");
	json_add_bytes(&j, "stdout", buf_text(&r->output[0]), r->output[0].len);
	json_add_bytes(&j, "stderr", buf_text(&r->output[1]), r->output[1].len);
	json_add_bool(&j, "stdout_cut", r->output[0].is_cut);
	json_add_bool(&j, "stderr_cut", r->output[1].is_cut);
	json_add_number(&j, "duration_ms", (int64_t)r->duration_ms);
	json_add_bool(&j, "timed_out", r->end == RUN_TIMED_OUT);
	json_add_bool(&j, "oom", r->has_oom);
	json_add_number(&j, "cpu_ms", (int64_t)r->cpu_ms);
	json_add_number(&j, "peak_memory", (int64_t)r->peak_memory_bytes);
	json_open_array(&j, "denied");
	for (unsigned i = 0; i < r->denial_count; i++) {
		json_open_object(&j, NULL);
		json_add_text(&j, "host", r->denials[i].host);
		json_add_number(&j, "port", r->denials[i].port);
		json_add_text(&j, "reason", r->denials[i].reason);
		json_add_text(&j, "fix", r->denials[i].fix);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_add_text(&j, "image", "host");
	json_add_text(&j, "backend", "native");
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
}

/* Harmless, but whoever typed it thinks that it shuts something. */
static void warn_of_idle_rule(const struct policy *p)
{
	const struct egress_rule *idle = p->has_network ? egress_find_idle(&p->egress) : NULL;

	if (idle)
		cli_say("%s %s changes nothing, everything is allowed already (add "
			"--network-policy deny to allow nothing else)",
			idle->origin, idle->text);
}

static int choose_tty(const struct request_flags *f, enum streams_tty *ret, struct err *e)
{
	if (f->has_tty && f->has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	*ret = f->has_tty ? STREAMS_TTY_ON : f->has_no_tty ? STREAMS_TTY_OFF : STREAMS_TTY_AUTO;
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request request = { 0 };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	struct run_options options = { .policy = &request.policy, .caller = &request.caller };

	if (request_read(&request_options, argv, context->environ_list, &request, e) < 0)
		return -1;
	if (!argv[request.used])
		return err_set(e, ERR_INVALID,
			       "no command to run: agentkernel run [options] COMMAND");
	if (choose_tty(&request.flags, &options.tty, e) < 0)
		return -1;
	warn_of_idle_rule(&request.policy);
	options.argv = argv + request.used;
	options.is_captured = request.flags.is_json;
	if (run_command(&options, &result, e) < 0)
		return -1;
	if (result.gate_deaths)
		cli_say("the network broke down %u times%s%s", result.gate_deaths,
			result.gate_trouble ? ": " : "",
			result.gate_trouble ? result.gate_trouble : "");
	if (!request.flags.is_json && result.exit_code != 0)
		explain_denials(&result);
	if (!request.flags.is_json)
		explain_end(&result, &request.policy);
	else if (print_json(&result, e) < 0)
		return -1;
	*ret_status = result.exit_code;
	return 0;
}

const struct cli_command cmd_run = {
	.name = "run",
	.summary = "run a command in a fresh sandbox that leaves nothing behind",
	.usage = "[options] [--] COMMAND [ARG...]",
	.text = "The command sees this machine's programs, read-only, and nothing else: not your\n"
		"files, environment, processes or network. Its streams, signals and exit status\n"
		"pass through as if there were no sandbox. Exit status: the command's own; 124\n"
		"deadline; 125 the sandbox could not be built; 126 not executable; 127 not found;\n"
		"128+n ended by signal n.",
	.examples = examples,
	.options = &request_options,
	.run = run,
};
