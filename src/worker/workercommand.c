/* workercommand - runs commands in new and named sandboxes, and watches detached ones. */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/errcode.h"
#include "ops/ending.h"
#include "ops/op_exec.h"
#include "ops/op_run.h"
#include "ops/refusal.h"
#include "ops/taskview.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#define WAIT_DEFAULT_MS 30000u

/* ---- results ---- */

/* `p` NULL: of a named sandbox. The same text as on the command line. */
static void add_reason(struct json *j, const struct run_result *r, const struct policy *p,
		       uint64_t timeout_ms)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	ending_format(r, p, timeout_ms, &out);
	if (out.len)
		json_add_text(j, "reason", buf_text(&out));
}

static void add_result(struct json *j, const struct run_result *r)
{
	static const char *const words[] = {
		[RUN_EXITED] = "exit",          [RUN_SIGNALLED] = "signal",
		[RUN_TIMED_OUT] = "deadline",   [RUN_OUT_OF_CPU] = "cpu_time",
		[RUN_OUT_OF_MEMORY] = "memory", [RUN_OUT_OF_PIDS] = "processes",
		[RUN_SANDBOX_ENDED] = "signal",
	};

	json_add_number(j, "exit_code", r->exit_code);
	json_add_text(j, "ended_by", words[r->end]);
	if (r->signal_number)
		json_add_number(j, "signal", r->signal_number);
	json_add_number(j, "duration_ms", (int64_t)r->duration_ms);
	if (r->has_oom)
		json_add_bool(j, "oom", true);
	if (r->denial_count)
		ending_add_denials(j, r);
}

/* A missing command is a result, not an error, as with `run`. */
static int add_not_started(const struct worker *w, struct json *j, struct err *e)
{
	if (e->code != ERR_COMMAND_NOT_FOUND && e->code != ERR_COMMAND_NOT_EXECUTABLE)
		return -1;
	op_remark(&w->events, "%s", e->msg);
	json_add_number(j, "exit_code", errcode_exit_status(e->code));
	json_add_text(j, "ended_by", "exit");
	json_add_number(j, "duration_ms", 0);
	return 0;
}

/* ---- a new sandbox ---- */

int worker_run(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_run_result_done) struct op_run_result result = { 0 };
	cleanup_free char **argv = worker_command(w);
	cleanup_free char **files = worker_list(w, "files");
	const struct op_run_args args = {
		.request = &w->call,
		.command = argv,
		.has_no_entrypoint = true,
		.tty = STREAMS_TTY_OFF,
		.files = files,
		.contents_fd = WIRE_FILES_FD,
	};
	const struct policy *policy = &w->call.policy;
	int r;

	if (worker_fill_request(w, e) < 0)
		return -1;
	r = op_run(w->ak, &args, &w->events, &result, e);
	op_remark_all(&w->events, result.end.notices);
	if (r < 0 && add_not_started(w, j, e) < 0)
		return -1;
	if (r == 0) {
		op_run_explain(&w->call, argv, &result.end, &w->events);
		add_result(j, &result.end);
		add_reason(j, &result.end, files ? NULL : policy, policy->timeout_ms);
		if (!files)
			json_add_bool(j, "warm", result.end.was_warm);
	}
	if (r == 0 || files)
		json_add_text(j, "image", policy->image);
	return 0;
}

/* ---- a named sandbox ---- */

/* The caller frees the arrays. */
static struct op_exec_args exec_args(const struct worker *w, char **argv, char **env)
{
	return (struct op_exec_args){
		.name = worker_text(w, "name"),
		.command = argv,
		.workdir = worker_text(w, "cwd"),
		.user = worker_text(w, "user"),
		.env = env,
		.timeout_ms = worker_number(w, "timeout_ms", 0),
		.tty = STREAMS_TTY_OFF,
		.starts_it = true,
	};
}

int worker_exec(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	cleanup_free char **argv = worker_command(w), **env = worker_list(w, "env");
	const struct op_exec_args args = exec_args(w, argv, env);
	struct pollfd lifeline = { .fd = WIRE_LIFELINE_FD, .events = POLLIN };
	int r;

	/* if the server dies, we die, and the command with us */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (poll(&lifeline, 1, 0) > 0)
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	r = op_exec(w->ak, &args, &w->events, &result, e);
	op_remark_all(&w->events, result.notices);
	if (r < 0)
		return add_not_started(w, j, e);
	(void)refusal_explain(&w->events, argv, &result);
	add_result(j, &result);
	add_reason(j, &result, NULL, args.timeout_ms);
	return 0;
}

int worker_exec_start(struct worker *w, struct json *j, struct err *e)
{
	cleanup_free char **argv = worker_command(w), **env = worker_list(w, "env");
	const struct op_exec_args args = exec_args(w, argv, env);
	struct op_exec_start_result result = { 0 };

	if (op_exec_start(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "id", result.id);
	json_add_text(j, "name", args.name);
	if (result.pid > 0)
		json_add_number(j, "pid", result.pid);
	return 0;
}

int worker_exec_wait(struct worker *w, struct json *j, struct err *e)
{
	const struct op_exec_wait_args args = {
		.name = worker_text(w, "name"),
		.id = worker_text(w, "id"),
		.timeout_ms = worker_number(w, "timeout_ms", WAIT_DEFAULT_MS),
	};
	struct op_exec_wait_result result = { 0 };

	if (op_exec_wait(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "id", args.id);
	json_add_bool(j, "running", result.is_running);
	if (!result.is_running)
		json_add_number(j, "exit_code", result.exit_code);
	return 0;
}

int worker_exec_output(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_exec_output_result_done) struct op_exec_output_result result;
	const char *stream = worker_text(w, "stream");
	const struct op_exec_output_args args = {
		.name = worker_text(w, "name"),
		.id = worker_text(w, "id"),
		.is_stderr = stream && strcmp(stream, "stderr") == 0,
		.range = { .has_offset = worker_text(w, "offset") != NULL,
			   .offset = worker_number(w, "offset", 0),
			   .length = worker_number(w, "length", OPERATION_SHOWN_MAX_BYTES),
			   .bytes = worker_number(w, "tail_bytes", 0),
			   .lines = worker_number(w, "tail_lines", 0) },
	};

	op_exec_output_result_init(&result);
	if (!args.name)
		return err_set(e, ERR_INVALID, "name: which sandbox?%s",
			       w->ak->view.is_for_library
				       ? ""
				       : " (an output_id is only good on the server that gave it, "
					 "and not for ever)");
	if (op_exec_output(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_bytes(j, "output", buf_text(&result.bytes), result.bytes.len);
	json_add_number(j, "offset", (int64_t)result.offset);
	json_add_number(j, "next_offset", (int64_t)result.next_offset);
	json_add_bool(j, "running", result.is_running);
	if (result.lost_bytes)
		json_add_number(j, "lost_bytes", (int64_t)result.lost_bytes);
	if (result.has_ended)
		json_add_number(j, "exit_code", result.exit_code);
	return 0;
}

int worker_exec_kill(struct worker *w, struct json *j, struct err *e)
{
	const struct op_exec_kill_args args = { .name = worker_text(w, "name"),
						.id = worker_text(w, "id"),
						.signal = worker_text(w, "signal") };

	if (op_exec_kill(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note", "the signal was sent");
	return 0;
}

int worker_exec_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	const struct op_exec_list_args args = { .name = worker_text(w, "name"),
						.may_be_stopped = true };

	if (op_exec_list(w->ak, &args, &w->events, &list, e) < 0)
		return -1;
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].flags & ORDER_DETACHED)
			taskview_add_object(j, w->ak, args.name, &list.entries[i]);
	json_close_array(j);
	return 0;
}
