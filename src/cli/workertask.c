/*
 * workertask - commands in named sandboxes that nobody waits for: start, wait, output, signal,
 * list.
 *
 * Theory of operation. The supervisor of a sandbox knows its commands (named/tasks) and remembers
 * those that have ended, each with its argument list and its pid; what they print is in files
 * (named/logs) that outlive the supervisor. So the output and the end of a command can be read
 * when its sandbox has stopped; who is in the list is known only while it runs.
 *
 * Waiting asks the supervisor again and again, with pauses: a connection that stayed open would be
 * one of the few that it has.
 */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/tail.h"
#include "named/execute.h"
#include "named/logs.h"
#include "named/tasks.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_DEFAULT_MS 30000u
#define WAIT_LOOK_FIRST_MS 10u
#define WAIT_LOOK_MAX_MS 200u
#define STREAM_MAX_BYTES (2u * (TASKLOG_FILE_MAX_BYTES + TASKLOG_CHUNK_MAX_BYTES))

static void format_id(uint32_t id, char out[TASKS_ID_MAX_BYTES])
{
	(void)snprintf(out, TASKS_ID_MAX_BYTES, "%08" PRIx32, id);
}

static int exit_code_of(int32_t wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* One that a supervisor of an older build has started has only a line of text. */
static void add_command(const struct worker *w, const char *name, const struct control_task *t,
			struct json *j)
{
	CLEANUP(tasks_command_done) struct tasks_command c = { 0 };
	struct err ignored;
	int r = tasks_describe(w->ak, name, t->id, &c, &ignored);

	json_add_number(j, "pid", r < 0 ? t->pid : c.pid);
	json_add_text(j, "command", t->text);
	if (r < 0)
		return;
	json_open_array(j, "argv");
	for (char **word = c.argv; *word; word++)
		json_add_text(j, NULL, *word);
	json_close_array(j);
	if (c.is_cut)
		json_add_bool(j, "argv_cut", true);
}

static int find_task(const struct worker *w, const char *name, uint32_t id,
		     struct control_task *ret, struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };

	if (tasks_list(w->ak, name, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].id == id) {
			*ret = list.entries[i];
			return 0;
		}
	return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " in sandbox '%s'", id, name);
}

/* ---- starting ---- */

int workertask_start(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	cleanup_free char **argv = worker_command(w);
	cleanup_free char **env = worker_list(w, "env");
	cleanup_free char *workdir = NULL;
	struct execute_options o = {
		.name = name,
		.ak = w->ak,
		.argv = argv,
		.user = worker_text(w, "user"),
		.env = env,
		.timeout_ms = worker_timeout_ms(w),
		.tty = STREAMS_TTY_OFF,
	};
	CLEANUP(tasks_command_done) struct tasks_command c = { 0 };
	char id_text[TASKS_ID_MAX_BYTES];
	struct err ignored;
	uint32_t id = 0;

	if (worker_check_user(w, e) < 0 || worker_need_running(w, name, e) < 0 ||
	    worker_resolve_path(w, name, worker_text(w, "cwd"), &workdir, e) < 0)
		return -1;
	o.workdir = workdir;
	if (execute_detached(&o, &id, e) < 0)
		return -1;
	format_id(id, id_text);
	json_add_text(j, "id", id_text);
	json_add_text(j, "name", name);
	if (tasks_describe(w->ak, name, id, &c, &ignored) == 0 && c.pid > 0)
		json_add_number(j, "pid", c.pid);
	return 0;
}

/* ---- waiting ---- */

/* How it ended, from its log: also where its sandbox has stopped meanwhile. */
static bool has_ended(const struct worker *w, const char *name, const char *id_text, int *ret_code)
{
	CLEANUP(logs_done) struct logs l;
	uint64_t skipped = 0;
	struct err ignored;

	logs_init(&l);
	if (logs_open(w->ak, name, id_text, &l, &ignored) < 0 ||
	    logs_read(&l, NULL, NULL, &skipped, &ignored) < 0 || !l.has_ended)
		return false;
	*ret_code = exit_code_of(l.end.wait_status);
	return true;
}

/* 1: it runs; 0: it has ended, with *ret_code. */
static int look(const struct worker *w, const char *name, uint32_t id, const char *id_text,
		int *ret_code, struct err *e)
{
	struct control_task t = { 0 };

	if (find_task(w, name, id, &t, e) < 0)
		return e->code == ERR_NOT_FOUND && has_ended(w, name, id_text, ret_code) ? 0 : -1;
	if (t.ended_ms == 0)
		return 1;
	*ret_code = exit_code_of(t.wait_status);
	return 0;
}

int workertask_wait(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name"), *id_text = worker_text(w, "id");
	uint64_t until_ms = clock_now_ms() + worker_number(w, "timeout_ms", WAIT_DEFAULT_MS);
	uint64_t pause_ms = WAIT_LOOK_FIRST_MS, now_ms;
	uint32_t id = 0;
	int code = 0, r;

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    tasks_parse_id(id_text, &id, e) < 0)
		return -1;
	while ((r = look(w, name, id, id_text, &code, e)) == 1 &&
	       (now_ms = clock_now_ms()) < until_ms) {
		uint64_t ms = pause_ms < until_ms - now_ms ? pause_ms : until_ms - now_ms;
		const struct timespec pause = { .tv_nsec = (long)ms * 1000000 };

		(void)nanosleep(&pause, NULL);
		pause_ms = 2 * pause_ms < WAIT_LOOK_MAX_MS ? 2 * pause_ms : WAIT_LOOK_MAX_MS;
	}
	if (r < 0)
		return -1;
	json_add_text(j, "id", id_text);
	json_add_bool(j, "running", r == 1);
	if (r == 0)
		json_add_number(j, "exit_code", code);
	return 0;
}

/* ---- output ---- */

struct reading {
	enum tasklog_stream stream;
	struct buf bytes;
};

static void on_chunk(void *context, enum tasklog_stream stream, const char *bytes, size_t len)
{
	struct reading *r = context;

	if (stream == r->stream)
		buf_add(&r->bytes, bytes, len);
}

static void reading_done(struct reading *r)
{
	buf_done(&r->bytes);
}

static void add_part(const struct tail_range *range, const struct buf *bytes, struct json *j)
{
	uint64_t offset = 0, length = 0;
	size_t begin, len, skip;

	tail_find(range, bytes->len, &offset, &length);
	begin = offset < bytes->len ? (size_t)offset : bytes->len;
	len = bytes->len - begin < length ? bytes->len - begin : (size_t)length;
	skip = tail_skip(range, buf_text(bytes) + begin, len);
	json_add_bytes(j, "output", buf_text(bytes) + begin + skip, len - skip);
	json_add_number(j, "offset", (int64_t)(offset + skip));
	json_add_number(j, "next_offset", (int64_t)(offset + len));
}

int workertask_output(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(logs_done) struct logs l;
	CLEANUP(reading_done) struct reading r = { .stream = TASKLOG_STDOUT };
	const char *name = worker_text(w, "name"), *stream = worker_text(w, "stream");
	const struct tail_range range = {
		.has_offset = worker_text(w, "offset") != NULL,
		.offset = worker_number(w, "offset", 0),
		.length = worker_number(w, "length", OPERATION_SHOWN_MAX_BYTES),
		.bytes = worker_number(w, "tail_bytes", 0),
		.lines = worker_number(w, "tail_lines", 0),
	};
	struct control_task task = { 0 };
	uint64_t skipped = 0;
	struct err ignored;

	logs_init(&l);
	buf_init(&r.bytes, STREAM_MAX_BYTES);
	if (stream && strcmp(stream, "stderr") == 0)
		r.stream = TASKLOG_STDERR;
	if (!name)
		return err_set(e, ERR_INVALID,
			       "name: which sandbox? (an output_id is only good on "
			       "the server that gave it, and not for ever)");
	if (tail_check(&range, e) < 0 || worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    logs_open(w->ak, name, worker_text(w, "id"), &l, e) < 0 ||
	    logs_read(&l, on_chunk, &r, &skipped, e) < 0)
		return -1;
	add_part(&range, &r.bytes, j);
	json_add_bool(j, "running",
		      !l.has_ended && find_task(w, name, l.id, &task, &ignored) == 0 &&
			      task.ended_ms == 0);
	if (skipped)
		json_add_number(j, "lost_bytes", (int64_t)skipped);
	if (l.has_ended)
		json_add_number(j, "exit_code", exit_code_of(l.end.wait_status));
	return 0;
}

/* ---- signals, and which there are ---- */

int workertask_kill(struct worker *w, struct json *j, struct err *e)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
		{ "TERM", SIGTERM }, { "KILL", SIGKILL }, { "INT", SIGINT }, { "HUP", SIGHUP }
	};
	const char *name = worker_text(w, "name"), *signal_name = worker_text(w, "signal");
	int number = SIGTERM;
	uint32_t id = 0;

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    tasks_parse_id(worker_text(w, "id"), &id, e) < 0)
		return -1;
	for (size_t i = 0; signal_name && i < COUNT_OF(known); i++)
		if (strcmp(known[i].name, signal_name) == 0)
			number = known[i].number;
	if (tasks_kill(w->ak, name, id, number, e) < 0)
		return -1;
	json_add_text(j, "note", "the signal was sent");
	return 0;
}

int workertask_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	const char *name = worker_text(w, "name");

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0)
		return -1;
	/* one that does not run has none */
	if (tasks_list(w->ak, name, &list, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++) {
		const struct control_task *t = &list.entries[i];
		char id[TASKS_ID_MAX_BYTES];

		if (!(t->flags & ORDER_DETACHED))
			continue;
		format_id(t->id, id);
		json_open_object(j, NULL);
		json_add_text(j, "id", id);
		add_command(w, name, t, j);
		json_add_bool(j, "running", t->ended_ms == 0);
		if (t->ended_ms)
			json_add_number(j, "exit_code", exit_code_of(t->wait_status));
		json_add_number(j, "started_ms", (int64_t)t->started_ms);
		if (t->ended_ms)
			json_add_number(j, "ended_ms", (int64_t)t->ended_ms);
		json_close_object(j);
	}
	json_close_array(j);
	return 0;
}
