/* cmd_run - agentkernel run: one command in a fresh sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "engine/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel run python3 -c 'print(6*7)'",
	"a script, with this machine's python3, seeing nothing of yours",
	"agentkernel run --workspace sh -c 'make && make test'",
	"build the project in this directory; nothing else of yours is visible",
	"agentkernel run -p restrictive --timeout 10s ./untrusted",
	"small limits, read-only root, ten seconds at most",
	"agentkernel run --mount ./data:/data:ro --memory 4G sort /data/big",
	"one directory of yours, read-only, and more memory than usual",
	NULL,
};

/* stdout and stderr hold at most 6 escaped characters a byte. */
#define JSON_MAX_BYTES (13u * STREAMS_CAPTURE_MAX_BYTES)


__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char text[ERR_MESSAGE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)dprintf(STDERR_FILENO, "agentkernel: %s\n", text);
}

/* The command's status tells the rest; these three would look like crashes of its own. */
static void explain_end(const struct run_result *r, const struct policy *p)
{
	char amount[PARSE_FORMAT_MAX_BYTES];

	switch (r->end) {
	case RUN_TIMED_OUT:
		say("the command was ended after %s (--timeout)",
		    parse_format_duration(p->timeout_ms, amount));
		break;
	case RUN_OUT_OF_CPU:
		say("the command used up its processor time of %s (--cpu-time)",
		    parse_format_duration(p->cpu_time_ms, amount));
		break;
	case RUN_OUT_OF_MEMORY:
		say("the command ran out of memory: its limit is %s (raise it with --memory)",
		    parse_format_bytes(p->memory_bytes, amount));
		break;
	case RUN_EXITED:
	case RUN_SIGNALLED:
		if (r->has_oom)
			say("a process inside was killed for lack of memory: the limit is %s (raise "
			    "it with --memory)",
			    parse_format_bytes(p->memory_bytes, amount));
		break;
	}
}

static void print_json(const struct run_result *r)
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
	json_add_text(&j, "image", "host");
	json_add_text(&j, "backend", "native");
	json_close_object(&j);
	buf_add_text(&out, "\n");
	(void)file_write_all(STDOUT_FILENO, out.bytes, out.len);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings settings = { 0 };
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	struct request request = { 0 };
	struct run_options options = { .policy = &policy };
	char cwd[REQUEST_PATH_MAX_BYTES];
	struct policy_caller caller;
	int used = 0;

	if (opts_parse(&request_options, argv, &request, &settings, &used, e) < 0)
		return -1;
	if (!argv[used])
		return err_set(e, ERR_INVALID, "no command to run: agentkernel run [options] COMMAND");
	if (request.has_tty && request.has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	request_caller(context->environ_list, cwd, &caller);
	if (policy_resolve(settings.list, settings.count, &caller, &policy, e) < 0)
		return -1;
	options.caller = &caller;
	options.argv = argv + used;
	options.is_captured = request.is_json;
	options.tty = request.has_tty ? STREAMS_TTY_ON :
		      request.has_no_tty ? STREAMS_TTY_OFF :
					   STREAMS_TTY_AUTO;
	if (run_command(&options, &result, e) < 0)
		return -1;
	if (request.is_json)
		print_json(&result);
	else
		explain_end(&result, &policy);
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
