/*
 * op_exec - commands in named sandboxes; see op_exec.h.
 *
 * Theory of operation. The supervisor of a sandbox has a table of its commands (named/tasks), also
 * of the last ended ones; the output of detached ones is in files (named/logs) that outlive the
 * supervisor. So the output and the end of a command can be read when its sandbox has stopped; the
 * list of commands exists only while it runs.
 *
 * Waiting polls the supervisor with pauses, because its number of connections is limited.
 */
#include "ops/op_exec.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/errcode.h"
#include "base/keyrows.h"
#include "named/execute.h"
#include "named/logs.h"
#include "ops/access.h"
#include "ops/events.h"
#include "state/ak.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define WAIT_LOOK_FIRST_MS 10u
#define WAIT_LOOK_MAX_MS 200u
#define STREAM_MAX_BYTES (2u * (TASKLOG_FILE_MAX_BYTES + TASKLOG_CHUNK_MAX_BYTES))

/* ---- starting ---- */

/*
 * Checks permissions and resolves the directory. *ret_workdir is NULL if none was given; the caller
 * frees it.
 */
static int prepare(struct ak *ak, const struct op_exec_args *args, char **ret_workdir,
		   struct err *e)
{
	if (access_check_user(ak, args->user, e) < 0)
		return -1;
	if ((args->starts_it ? access_need_running(ak, args->name, e)
			     : access_check_sandbox(ak, args->name, ACCESS_USES_IT, e)) < 0)
		return -1;
	return args->workdir ? access_resolve_path(ak, args->name, args->workdir, ret_workdir, e)
			     : 0;
}

static struct execute_options options_of(const struct ak *ak, const struct op_exec_args *args,
					 const char *workdir)
{
	return (struct execute_options){
		.name = args->name,
		.ak = ak,
		.argv = args->command,
		.workdir = workdir,
		.user = args->user,
		.env = args->env,
		.timeout_ms = access_timeout_ms(ak, args->timeout_ms),
		.tty = args->tty,
		.is_captured = args->is_captured,
		.keeps_input = args->keeps_input,
		.rows = args->rows,
		.columns = args->columns,
		.lifeline_fd = ak->lifeline_fd,
	};
}

int op_exec(struct ak *ak, const struct op_exec_args *args, const struct op_events *ev,
	    struct run_result *ret, struct err *e)
{
	cleanup_free char *workdir = NULL;
	struct execute_options options;
	int r;

	if (prepare(ak, args, &workdir, e) < 0)
		return -1;
	options = options_of(ak, args, workdir);
	op_command_begins(ev);
	r = execute_command(&options, ret, e);
	op_command_ended(ev);
	return r;
}

int op_exec_start(struct ak *ak, const struct op_exec_args *args, const struct op_events *ev,
		  struct op_exec_start_result *ret, struct err *e)
{
	CLEANUP(tasks_command_done) struct tasks_command c = { 0 };
	cleanup_free char *workdir = NULL;
	struct execute_options options;
	struct err ignored;
	uint32_t id = 0;

	(void)ev;
	if (prepare(ak, args, &workdir, e) < 0)
		return -1;
	options = options_of(ak, args, workdir);
	if (execute_detached(&options, &id, e) < 0)
		return -1;
	tasks_format_id(id, ret->id);
	ret->pid = tasks_describe(ak, args->name, id, &c, &ignored) == 0 ? c.pid : 0;
	return 0;
}

/* ---- waiting ---- */

static int find_task(const struct ak *ak, const char *name, uint32_t id, struct control_task *ret,
		     struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };

	if (tasks_list(ak, name, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].id == id) {
			*ret = list.entries[i];
			return 0;
		}
	return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " in sandbox '%s'", id, name);
}

/* Reads the command's end from its log, which also works if the sandbox has stopped. */
static bool has_ended(const struct ak *ak, const char *name, const char *id_text, int *ret_code)
{
	CLEANUP(logs_done) struct logs l;
	uint64_t skipped = 0;
	struct err ignored;

	logs_init(&l);
	if (logs_open(ak, name, id_text, &l, &ignored) < 0 ||
	    logs_read(&l, NULL, NULL, &skipped, &ignored) < 0 || !l.has_ended)
		return false;
	*ret_code = errcode_exit_of_wait(l.end.wait_status);
	return true;
}

/* 1: it is running; 0: it has ended with *ret_code. */
static int look(const struct ak *ak, const char *name, uint32_t id, const char *id_text,
		int *ret_code, struct err *e)
{
	struct control_task t = { 0 };

	if (find_task(ak, name, id, &t, e) < 0)
		return e->code == ERR_NOT_FOUND && has_ended(ak, name, id_text, ret_code) ? 0 : -1;
	if (t.ended_ms == 0)
		return 1;
	*ret_code = errcode_exit_of_wait(t.wait_status);
	return 0;
}

int op_exec_wait(struct ak *ak, const struct op_exec_wait_args *args, const struct op_events *ev,
		 struct op_exec_wait_result *ret, struct err *e)
{
	uint64_t until_ms = clock_now_ms() + args->timeout_ms;
	uint64_t pause_ms = WAIT_LOOK_FIRST_MS, now_ms;
	uint32_t id = 0;
	int r;

	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    tasks_parse_id(args->id, &id, e) < 0)
		return -1;
	while ((r = look(ak, args->name, id, args->id, &ret->exit_code, e)) == 1 &&
	       (now_ms = clock_now_ms()) < until_ms) {
		uint64_t ms = pause_ms < until_ms - now_ms ? pause_ms : until_ms - now_ms;
		const struct timespec pause = { .tv_nsec = (long)ms * 1000000 };

		(void)nanosleep(&pause, NULL);
		pause_ms = 2 * pause_ms < WAIT_LOOK_MAX_MS ? 2 * pause_ms : WAIT_LOOK_MAX_MS;
	}
	ret->is_running = r == 1;
	return r < 0 ? -1 : 0;
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

/* Copies the requested range. */
static void cut_to_range(const struct tail_range *range, const struct buf *all,
			 struct op_exec_output_result *ret)
{
	uint64_t offset = 0, length = 0;
	size_t begin, len, skip;

	tail_find(range, all->len, &offset, &length);
	begin = offset < all->len ? (size_t)offset : all->len;
	len = all->len - begin < length ? all->len - begin : (size_t)length;
	skip = tail_skip(range, buf_text(all) + begin, len);
	buf_add(&ret->bytes, buf_text(all) + begin + skip, len - skip);
	ret->offset = offset + skip;
	ret->next_offset = offset + len;
}

void op_exec_output_result_init(struct op_exec_output_result *r)
{
	*r = (struct op_exec_output_result){ 0 };
	buf_init(&r->bytes, STREAM_MAX_BYTES);
}

void op_exec_output_result_done(struct op_exec_output_result *r)
{
	buf_done(&r->bytes);
}

int op_exec_output(struct ak *ak, const struct op_exec_output_args *args,
		   const struct op_events *ev, struct op_exec_output_result *ret, struct err *e)
{
	CLEANUP(logs_done) struct logs l;
	CLEANUP(reading_done)
	struct reading r = { .stream = args->is_stderr ? TASKLOG_STDERR : TASKLOG_STDOUT };
	struct control_task task = { 0 };
	struct err ignored;

	(void)ev;
	logs_init(&l);
	buf_init(&r.bytes, STREAM_MAX_BYTES);
	if (tail_check(&args->range, e) < 0 ||
	    access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    logs_open(ak, args->name, args->id, &l, e) < 0 ||
	    logs_read(&l, on_chunk, &r, &ret->lost_bytes, e) < 0)
		return -1;
	cut_to_range(&args->range, &r.bytes, ret);
	ret->has_ended = l.has_ended;
	ret->exit_code = l.has_ended ? errcode_exit_of_wait(l.end.wait_status) : 0;
	ret->is_running = !l.has_ended && find_task(ak, args->name, l.id, &task, &ignored) == 0 &&
			  task.ended_ms == 0;
	return 0;
}

/* ---- signals and the list ---- */

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP },     { "INT", SIGINT },   { "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
	{ "KILL", SIGKILL },   { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "ALRM", SIGALRM },
	{ "TERM", SIGTERM },   { "CONT", SIGCONT }, { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },
	{ "WINCH", SIGWINCH },
};

static int read_signal(const char *text, int *ret, struct err *e)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number = 0;

	for (size_t i = 0; i < COUNT_OF(signals); i++) {
		if (strcasecmp(signals[i].name, name) != 0)
			continue;
		*ret = signals[i].number;
		return 0;
	}
	if (!keyrows_read_number(text, 64, &number) || number == 0)
		return err_set(e, ERR_INVALID,
			       "--signal: no signal '%s' (use TERM, KILL, INT, HUP or a number)",
			       text);
	*ret = (int)number;
	return 0;
}

int op_exec_kill(struct ak *ak, const struct op_exec_kill_args *args, const struct op_events *ev,
		 struct err *e)
{
	int number = SIGTERM;
	uint32_t id = 0;

	(void)ev;
	if ((args->signal && read_signal(args->signal, &number, e) < 0) ||
	    tasks_parse_id(args->id, &id, e) < 0 ||
	    access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return tasks_kill(ak, args->name, id, number, e);
}

int op_exec_list(struct ak *ak, const struct op_exec_list_args *args, const struct op_events *ev,
		 struct tasks_list *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	if (tasks_list(ak, args->name, ret, e) < 0)
		return args->may_be_stopped && e->code == ERR_NOT_FOUND ? 0 : -1;
	return 0;
}
