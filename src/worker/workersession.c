/*
 * workersession - sandbox_session: a command whose caller reads and writes frames (rpc/wire.h).
 *
 * Theory of operation. The command is detached: its output goes to its log, from which this process
 * reads it, so the command goes on when this process ends, and others may do the same at the same
 * time. Input that the command does not take is kept here, one frame at most; until it is written
 * no further frame is read, and the pipe's writer waits. Output is written with blocking calls: a
 * caller that does not read makes us wait, and skip what the log does not keep.
 *
 * Hostile input: frames of our server, which passes on what its clients say: sizes are checked.
 */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/errcode.h"
#include "base/file.h"
#include "base/mem.h"
#include "named/tasksession.h"
#include "ops/access.h"
#include "ops/op_exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE_LOG_BYTES (128u << 10) /* reading it again for each line would be waste */
#define LARGE_LOG_PAUSE_US 5000
#define EXIT_TIMED_OUT 124
#define LOST_GRACE_MS 2000u

struct session {
	struct tasksession task;
	char *input; /* the last frame's, of which .done bytes are written */
	size_t input_len, done;
	bool has_caller; /* descriptor 0 is open */
	uint64_t output_bytes;
	struct err *e;
	bool is_failed;
};

static void session_done(struct session *s)
{
	tasksession_done(&s->task);
	free(s->input);
}

static void send_frame(struct session *s, enum wire_stream stream, const void *bytes, size_t len)
{
	const struct wire_frame h = { stream, (uint32_t)len };

	if (!s->is_failed && (file_write_all(STDOUT_FILENO, &h, sizeof(h)) < 0 ||
			      file_write_all(STDOUT_FILENO, bytes, len) < 0))
		s->is_failed = true; /* the caller is gone */
}

static void give_output(void *context, enum tasklog_stream stream, const char *bytes, size_t len)
{
	struct session *s = context;

	s->output_bytes += len;
	send_frame(s, stream == TASKLOG_STDERR ? WIRE_STDERR : WIRE_STDOUT, bytes, len);
}

static int pass_output(struct session *s, struct err *e)
{
	uint64_t skipped = 0;

	if (tasksession_read(&s->task, give_output, s, &skipped, e) < 0)
		return -1;
	if (skipped)
		send_frame(s, WIRE_GAP, &skipped, sizeof(skipped));
	return 0;
}

/* ---- input ---- */

static void write_input(struct session *s)
{
	ssize_t n = s->task.input_fd < 0
			    ? -1
			    : write(s->task.input_fd, s->input + s->done, s->input_len - s->done);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) && s->task.input_fd >= 0)
		return;
	if (n > 0)
		s->done += (size_t)n;
	if (n < 0 || s->done == s->input_len) {
		free(s->input);
		s->input = NULL;
		s->input_len = s->done = 0;
	}
}

static void obey(struct session *s, const struct wire_frame *h)
{
	uint16_t size[2];
	uint32_t number;

	if (h->stream == WIRE_STDIN) {
		s->input_len = h->len;
		write_input(s);
		return;
	}
	if (h->stream == WIRE_END_STDIN) {
		tasksession_end_input(&s->task);
	} else if (h->stream == WIRE_RESIZE && h->len == sizeof(size)) {
		memcpy(size, s->input, sizeof(size));
		tasksession_resize(&s->task, size[0], size[1]);
	} else if (h->stream == WIRE_SIGNAL && h->len == sizeof(number)) {
		memcpy(&number, s->input, sizeof(number));
		if (number >= 1 && number < 64)
			tasksession_signal(&s->task, (int)number);
	}
	free(s->input);
	s->input = NULL;
}

/* The caller writes whole frames, so the rest of one is not far. */
static void take_frame(struct session *s)
{
	struct wire_frame h;

	if (!file_read_exactly(STDIN_FILENO, &h, sizeof(h)) || h.len > WIRE_FRAME_MAX_BYTES) {
		s->has_caller = false;
		return;
	}
	s->input = mem_alloc(h.len + 1);
	if (!file_read_exactly(STDIN_FILENO, s->input, h.len)) {
		s->has_caller = false;
		return;
	}
	obey(s, &h);
}

/* ---- the loop ---- */

static uint32_t exit_status(const struct tasklog_end *end)
{
	if (end->has_timed_out)
		return EXIT_TIMED_OUT;
	return WIFSIGNALED(end->wait_status) ? 128u + (uint32_t)WTERMSIG(end->wait_status)
					     : (uint32_t)WEXITSTATUS(end->wait_status);
}

static int go_round(struct session *s, bool *ret_has_ended, struct err *e)
{
	struct pollfd polled[] = {
		{ .fd = s->task.watch_fd, .events = POLLIN },
		{ .fd = s->task.control_fd, .events = POLLIN },
		{ .fd = s->has_caller && !s->input_len ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = s->input_len ? s->task.input_fd : -1, .events = POLLOUT },
		{ .fd = STDOUT_FILENO },
	};
	struct frame f;

	if (poll(polled, COUNT_OF(polled), -1) < 0 && errno != EINTR)
		return err_sys(e, errno, "wait for a command");
	if (polled[4].revents & POLLERR)
		s->is_failed = true;
	if (polled[3].revents)
		write_input(s);
	if (polled[2].revents)
		take_frame(s);
	if (polled[1].revents) {
		int r = frame_receive(s->task.control_fd, FRAME_NO_WAIT, &f);

		if (r == 1)
			frame_done(&f); /* the answer to a signal */
		else if (!frame_may_pass(r))
			*ret_has_ended = true;
	}
	if (polled[0].revents && s->output_bytes > LARGE_LOG_BYTES)
		(void)usleep(LARGE_LOG_PAUSE_US);
	return polled[0].revents || *ret_has_ended ? pass_output(s, e) : 0;
}

/* Its caller is gone: SIGHUP now, SIGKILL a little before we are ended (rpc/wire.h). */
static void end_command(struct session *s)
{
	struct pollfd polled = { .fd = s->task.watch_fd, .events = POLLIN };
	uint64_t end_ms = clock_now_ms() + LOST_GRACE_MS, now_ms, ignored = 0;
	struct err e;

	tasksession_signal(&s->task, SIGHUP);
	tasksession_signal(&s->task, SIGCONT);
	while ((now_ms = clock_now_ms()) < end_ms && !s->task.logs.has_ended) {
		(void)poll(&polled, 1, (int)(end_ms - now_ms));
		if (tasksession_read(&s->task, NULL, NULL, &ignored, &e) < 0)
			break;
	}
	if (!s->task.logs.has_ended)
		tasksession_signal(&s->task, SIGKILL);
}

static int follow(struct session *s, bool is_detachable, struct json *j, struct err *e)
{
	bool has_sandbox_ended = s->task.control_fd < 0;
	uint32_t status;

	if (pass_output(s, e) < 0)
		return -1;
	while (!s->task.logs.has_ended && !has_sandbox_ended && s->has_caller && !s->is_failed)
		if (go_round(s, &has_sandbox_ended, e) < 0)
			return -1;
	if (!s->task.logs.has_ended && !has_sandbox_ended && !is_detachable)
		end_command(s);
	status = s->task.logs.has_ended ? exit_status(&s->task.logs.end) : 128u + SIGKILL;
	if (s->is_failed || !s->has_caller)
		return 0;
	send_frame(s, WIRE_EXIT, &status, sizeof(status));
	json_add_number(j, "exit_code", status);
	return 0;
}

static int start(struct worker *w, char *id, struct err *e)
{
	cleanup_free char **argv = worker_command(w), **env = worker_list(w, "env");
	const struct op_exec_args args = {
		.name = worker_text(w, "name"),
		.command = argv,
		.workdir = worker_text(w, "cwd"),
		.user = worker_text(w, "user"),
		.env = env,
		.timeout_ms = worker_number(w, "timeout_ms", 0),
		.tty = worker_flag(w, "tty") ? STREAMS_TTY_ON : STREAMS_TTY_OFF,
		.rows = (uint16_t)worker_number(w, "rows", 24),
		.columns = (uint16_t)worker_number(w, "cols", 80),
		.keeps_input = true,
		.starts_it = true,
	};
	struct op_exec_start_result result = { 0 };

	if (!argv)
		return err_set(e, ERR_INVALID, "command: what is to be run?");
	if (op_exec_start(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	memcpy(id, result.id, sizeof(result.id));
	return 0;
}

int worker_session(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(session_done) struct session s = { .has_caller = true };
	const char *name = worker_text(w, "name"), *joined = worker_text(w, "id");
	const char *detachable = worker_text(w, "detachable");
	bool is_detachable =
		joined || (detachable ? strcmp(detachable, "true") == 0 : worker_flag(w, "tty"));
	char id[TASKS_ID_MAX_BYTES] = "";

	tasksession_init(&s.task);
	if (joined ? access_check_sandbox(w->ak, name, ACCESS_USES_IT, e) < 0 : start(w, id, e) < 0)
		return -1;
	if (tasksession_open(w->ak, name, joined ? joined : id, worker_number(w, "offset", 0),
			     &s.task, e) < 0)
		return -1;
	send_frame(&s, WIRE_BEGUN, joined ? joined : id, strlen(joined ? joined : id));
	return follow(&s, is_detachable, j, e);
}
