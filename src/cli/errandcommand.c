/* errandcommand - commands that programs run: in a fresh sandbox, in a named one, detached. */
#include "cli/errand.h"
#include "cli/ending.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/pickimage.h"
#include "cli/refusal.h"
#include "engine/execute.h"
#include "engine/files.h"
#include "engine/images.h"
#include "engine/lifecycle.h"
#include "engine/logs.h"
#include "engine/run.h"
#include "engine/tasks.h"
#include "policy/ceiling.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_LENGTH_DEFAULT 65536u
#define FILES_MODE 0644
#define SPARE_TTL_MS 60000u /* of a sandbox that is only made for one call, beyond its deadline */

/* ---- results ---- */

static void add_denials(struct json *j, const struct run_result *r)
{
	if (r->denial_count == 0)
		return;
	json_open_array(j, "denied");
	for (unsigned i = 0; i < r->denial_count; i++) {
		json_open_object(j, NULL);
		json_add_text(j, "host", r->denials[i].host);
		json_add_number(j, "port", r->denials[i].port);
		json_add_text(j, "reason", r->denials[i].reason);
		if (r->denials[i].fix[0])
			json_add_text(j, "fix", r->denials[i].fix);
		json_close_object(j);
	}
	json_close_array(j);
}

/* `p` NULL: of a named sandbox. The words are those that people are told. */
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
	add_denials(j, r);
}

/* A command that is not there is its result, as with `run`. */
static int add_not_started(struct json *j, struct err *e)
{
	if (e->code != ERR_COMMAND_NOT_FOUND && e->code != ERR_COMMAND_NOT_EXECUTABLE)
		return -1;
	cli_say("%s", e->msg);
	json_add_number(j, "exit_code",
			e->code == ERR_COMMAND_NOT_FOUND ? CLI_EXIT_NOT_FOUND
							 : CLI_EXIT_NOT_EXECUTABLE);
	json_add_text(j, "ended_by", "exit");
	json_add_number(j, "duration_ms", 0);
	return 0;
}

/* ---- a fresh sandbox ---- */

static int run_fresh(struct errand *w, char **argv, struct images *image, struct json *j,
		     struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct run_options o = {
		.policy = &w->ceiling.policy,
		.caller = &w->ceiling.caller,
		.image = image->lock_fd >= 0 ? image : NULL,
		.argv = argv,
		.tty = STREAMS_TTY_OFF,
		.lifeline_fd = ERRAND_LIFELINE_FD,
	};
	int r;

	errand_watch_lifeline_myself();
	errand_give_stderr(w);
	r = run_command(&o, &result, e);
	errand_take_stderr(w);
	ending_tell_notices(result.notices);
	if (r < 0)
		return add_not_started(j, e);
	(void)refusal_explain(argv, &result);
	add_result(j, &result);
	add_reason(j, &result, o.policy, o.policy->timeout_ms);
	json_add_text(j, "image", w->ceiling.policy.image);
	json_add_bool(j, "warm", result.was_warm);
	return 0;
}

/* The contents come one after the other; "PATH\nSIZE" tells how long each is. */
static int place_file(struct files *f, const char *text, struct err *e)
{
	const char *size_text = strrchr(text, '\n');
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;
	uint64_t left;
	char bytes[65536];

	if (!size_text)
		return err_set(e, ERR_INVALID, "a file in the request has no size");
	path = mem_dup_bytes(text, (size_t)(size_text - text));
	left = strtoull(size_text + 1, NULL, 10);
	if (files_open_file(f, path, FILES_WRITE | FILES_PARENTS, FILES_MODE, &fd, e) < 0)
		return -1;
	while (left > 0) {
		ssize_t n =
			read(ERRAND_FILES_FD, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
		int r;

		if (n <= 0)
			return err_set(e, ERR_INVALID, "a file in the request is not whole");
		r = file_write_all(fd, bytes, (size_t)n);
		if (r < 0)
			return err_sys(e, -r, "write '%s'", path);
		left -= (uint64_t)n;
	}
	return 0;
}

static int place_files(struct errand *w, const char *name, char *const *files, struct err *e)
{
	CLEANUP(files_close) struct files f;

	files_init(&f);
	if (files_open(w->environ_list, name, &f, e) < 0)
		return -1;
	for (; *files; files++)
		if (place_file(&f, *files, e) < 0)
			return -1;
	return 0;
}

static int exec_in(struct errand *w, const char *name, char **argv, const char *workdir,
		   struct json *j, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	cleanup_free char **env = errand_list(w, "env");
	const struct execute_options o = {
		.name = name,
		.caller = &w->ceiling.caller,
		.argv = argv,
		.workdir = workdir,
		.user = errand_text(w, "user"),
		.env = env,
		.timeout_ms = errand_timeout_ms(w),
		.tty = STREAMS_TTY_OFF,
	};
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* and the command with us */
	if (errand_is_abandoned())
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	errand_give_stderr(w);
	r = execute_command(&o, &result, e);
	errand_take_stderr(w);
	ending_tell_notices(result.notices);
	if (r < 0)
		return add_not_started(j, e);
	(void)refusal_explain(argv, &result);
	add_result(j, &result);
	add_reason(j, &result, NULL, o.timeout_ms);
	return 0;
}

/* The child's part: its result goes where ours would have gone. */
static _Noreturn void run_in_child(struct errand *w, struct named *n, char **argv,
				   char *const *files)
{
	cleanup_buf struct buf out;
	struct err e = { 0 };
	struct json j;
	int r = -1;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	if (lifecycle_start_locked(w->environ_list, n, &e) == 0 &&
	    place_files(w, n->name, files, &e) == 0)
		r = exec_in(w, n->name, argv, NULL, &j, &e);
	json_add_text(&j, "image", w->ceiling.policy.image);
	json_close_object(&j);
	if (r < 0) {
		errand_format_error(&e, &out);
	}
	_exit(file_write_all(ERRAND_RESULT_FD, out.bytes, out.len) < 0);
}

/* Until the child has ended, or whoever asked for it has gone. */
static void wait_for_child(pid_t pid)
{
	cleanup_fd int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd polled[] = { { .fd = pid_fd, .events = POLLIN },
				   { .fd = ERRAND_LIFELINE_FD, .events = POLLIN } };

	while (poll(polled, COUNT_OF(polled), -1) < 0 && errno == EINTR)
		continue;
	if (!polled[0].revents)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/*
 * Files have to be there before the command: a named sandbox that lives for one command. It belongs
 * to this call: no other caller sees it, the owner of the key included. A child does the work; we
 * stay to remove the sandbox, however that ends.
 */
static int run_with_files(struct errand *w, char **argv, struct images *image, char *const *files,
			  struct err *e)
{
	CLEANUP(named_done) struct named n;
	char name[NAMED_NAME_MAX_BYTES + 1], id[NAMED_ID_BYTES + 1];
	char owner[sizeof(NAMED_CALL_OWNER) + NAMED_ID_BYTES];
	char *labels[] = { (char *)(uintptr_t) "agentkernel=run", NULL };
	const struct lifecycle_request q = {
		.environ_list = w->environ_list,
		.name = name,
		.policy = &w->ceiling.policy,
		.image = image->lock_fd >= 0 ? image : NULL,
		.labels = labels,
		.ttl_ms = w->ceiling.policy.timeout_ms + SPARE_TTL_MS,
	};
	struct err ignored;
	pid_t pid;

	named_init(&n);
	named_random_id(id);
	(void)snprintf(name, sizeof(name), "run-%.12s", id);
	named_random_id(id); /* the name tells nothing about the owner */
	(void)snprintf(owner, sizeof(owner), NAMED_CALL_OWNER "%s", id);
	named_work_for(owner, w->creator);
	errand_watch_lifeline_myself(); /* there is a sandbox to remove, from here on */
	if (lifecycle_create(&q, &n, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_in_child(w, &n, argv, files);
	named_unlock(&n);
	if (pid > 0)
		wait_for_child(pid);
	(void)!lifecycle_remove(w->environ_list, name, LIFECYCLE_FORCE, &ignored);
	return pid < 0 ? err_sys(e, errno, "start a process") : ERRAND_ANSWERED;
}

/* pickimage works on a request: what was asked for takes the place of the ceiling in it. */
static void use_policy(struct errand *w)
{
	policy_done(&w->ceiling.policy);
	w->ceiling.policy = w->policy;
	w->policy = (struct policy){ 0 };
	if (errand_text(w, "image"))
		w->ceiling.is_image_detected = false;
}

int errandcommand_run(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(images_done) struct images image;
	cleanup_free char **argv = errand_command(w);
	cleanup_free char **files = errand_list(w, "files");
	cleanup_free char **composed = NULL;

	images_init(&image);
	if (errand_resolve(w, argv[0], e) < 0)
		return -1;
	use_policy(w);
	w->ceiling.flags.is_json = true; /* no progress bars */
	if (pickimage_open(&w->ceiling, argv[0], &image, e) < 0)
		return -1;
	composed = images_compose(&image, "", argv);
	if (files)
		return run_with_files(w, composed, &image, files, e);
	return run_fresh(w, composed, &image, j, e);
}

/* ---- a named sandbox ---- */

/* Whoever may not be root in a sandbox of its own may not in this one either. */
static int check_user(const struct errand *w, struct err *e)
{
	const char *user = errand_text(w, "user"), *most = w->ceiling.policy.user_text;

	if (!user || ceiling_allows_root(&w->ceiling.policy) || (most && strcmp(user, most) == 0))
		return 0;
	return err_set(e, ERR_DENIED, "user: the server does not let you choose one");
}

int errandcommand_exec(struct errand *w, struct json *j, struct err *e)
{
	const char *name = errand_text(w, "name");
	cleanup_free char **argv = errand_command(w);

	if (check_user(w, e) < 0 || errand_need_running(w, name, e) < 0)
		return -1;
	return exec_in(w, name, argv, errand_text(w, "cwd"), j, e);
}

int errandcommand_exec_start(struct errand *w, struct json *j, struct err *e)
{
	const char *name = errand_text(w, "name");
	cleanup_free char **argv = errand_command(w);
	cleanup_free char **env = errand_list(w, "env");
	const struct execute_options o = {
		.name = name,
		.caller = &w->ceiling.caller,
		.argv = argv,
		.workdir = errand_text(w, "cwd"),
		.user = errand_text(w, "user"),
		.env = env,
		.timeout_ms = errand_timeout_ms(w),
		.tty = STREAMS_TTY_OFF,
	};
	char id_text[TASKS_ID_MAX_BYTES];
	uint32_t id = 0;

	if (check_user(w, e) < 0 || errand_need_running(w, name, e) < 0 ||
	    execute_detached(&o, &id, e) < 0)
		return -1;
	(void)snprintf(id_text, sizeof(id_text), "%08" PRIx32, id);
	json_add_text(j, "id", id_text);
	json_add_text(j, "name", name);
	return 0;
}

/* ---- output of a detached command ---- */

struct reading {
	enum tasklog_stream stream;
	uint64_t skip, seen; /* bytes of that stream */
	struct buf bytes;
};

static void on_chunk(void *context, enum tasklog_stream stream, const char *bytes, size_t len)
{
	struct reading *r = context;
	uint64_t begin;

	if (stream != r->stream)
		return;
	begin = r->seen < r->skip ? r->skip - r->seen : 0;
	r->seen += len;
	if (begin < len)
		buf_add(&r->bytes, bytes + begin, len - begin);
}

static int find_task(const struct errand *w, const char *name, uint32_t id,
		     struct control_task *ret, struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };

	if (tasks_list(w->environ_list, name, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].id == id) {
			*ret = list.entries[i];
			return 0;
		}
	return err_set(e, ERR_NOT_FOUND, "no such command");
}

int errandcommand_exec_output(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(logs_done) struct logs l;
	const char *name = errand_text(w, "name"), *stream = errand_text(w, "stream");
	struct reading r = {
		.stream = stream && strcmp(stream, "stderr") == 0 ? TASKLOG_STDERR : TASKLOG_STDOUT,
		.skip = errand_number(w, "offset", 0),
	};
	struct control_task task = { 0 };
	uint64_t skipped = 0;
	struct err ignored;
	int failed;

	logs_init(&l);
	buf_init(&r.bytes, errand_number(w, "length", OUTPUT_LENGTH_DEFAULT));
	if (!name)
		return err_set(e, ERR_INVALID,
			       "name: which sandbox? (an output_id is only good on "
			       "the server that gave it, and not for ever)");
	if (errand_check_sandbox(w, name, ERRAND_USES_IT, e) < 0 ||
	    logs_open(w->environ_list, name, errand_text(w, "id"), &l, e) < 0)
		return -1;
	failed = logs_read(&l, on_chunk, &r, &skipped, e);
	if (failed == 0) {
		json_add_bytes(j, "output", buf_text(&r.bytes), r.bytes.len);
		json_add_number(j, "offset", (int64_t)r.skip);
		json_add_number(j, "next_offset", (int64_t)(r.skip + r.bytes.len));
		json_add_bool(j, "running",
			      !l.has_ended && find_task(w, name, l.id, &task, &ignored) == 0 &&
				      task.ended_ms == 0);
		if (skipped)
			json_add_number(j, "lost_bytes", (int64_t)skipped);
		if (l.has_ended)
			json_add_number(j, "exit_code",
					WIFEXITED(l.end.wait_status)
						? WEXITSTATUS(l.end.wait_status)
						: 128 + WTERMSIG(l.end.wait_status));
	}
	buf_done(&r.bytes);
	return failed;
}

int errandcommand_exec_kill(struct errand *w, struct json *j, struct err *e)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
		{ "TERM", SIGTERM }, { "KILL", SIGKILL }, { "INT", SIGINT }, { "HUP", SIGHUP }
	};
	const char *name = errand_text(w, "name"), *signal_name = errand_text(w, "signal");
	int number = SIGTERM;
	uint32_t id = 0;

	if (errand_check_sandbox(w, name, ERRAND_USES_IT, e) < 0 ||
	    tasks_parse_id(errand_text(w, "id"), &id, e) < 0)
		return -1;
	for (size_t i = 0; signal_name && i < COUNT_OF(known); i++)
		if (strcmp(known[i].name, signal_name) == 0)
			number = known[i].number;
	if (tasks_kill(w->environ_list, name, id, number, e) < 0)
		return -1;
	json_add_text(j, "note", "the signal was sent");
	return 0;
}

int errandcommand_exec_list(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	const char *name = errand_text(w, "name");

	if (errand_check_sandbox(w, name, ERRAND_USES_IT, e) < 0)
		return -1;
	/* one that does not run has none */
	if (tasks_list(w->environ_list, name, &list, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++) {
		const struct control_task *t = &list.entries[i];
		char id[TASKS_ID_MAX_BYTES];

		if (!(t->flags & ORDER_DETACHED))
			continue;
		(void)snprintf(id, sizeof(id), "%08" PRIx32, t->id);
		json_open_object(j, NULL);
		json_add_text(j, "id", id);
		json_add_text(j, "command", t->text);
		json_add_number(j, "pid", t->pid);
		json_add_bool(j, "running", t->ended_ms == 0);
		if (t->ended_ms)
			json_add_number(j, "exit_code",
					WIFEXITED(t->wait_status) ? WEXITSTATUS(t->wait_status)
								  : 128 + WTERMSIG(t->wait_status));
		json_add_number(j, "started_ms", (int64_t)t->started_ms);
		json_close_object(j);
	}
	json_close_array(j);
	return 0;
}
