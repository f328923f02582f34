/* workercommand - commands that programs run and wait for: in a fresh sandbox, in a named one. */
#include "cli/worker.h"
#include "cli/ending.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/pickimage.h"
#include "cli/refusal.h"
#include "named/execute.h"
#include "named/files.h"
#include "engine/images.h"
#include "named/lifecycle.h"
#include "pool/claimed.h"
#include "engine/run.h"
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

#define FILES_MODE 0644
#define SPARE_TTL_MS 60000u /* of a sandbox that is only made for one call, beyond its deadline */

/* ---- results ---- */

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
	if (r->denial_count)
		ending_add_denials(j, r);
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

/* What became of a command: `r` is what running it returned, `p` as for add_reason(). */
static int add_end(const struct worker *w, int r, char **argv, const struct run_result *result,
		   const struct policy *p, uint64_t timeout_ms, struct json *j, struct err *e)
{
	worker_take_stderr(w);
	ending_tell_notices(result->notices);
	if (r < 0)
		return add_not_started(j, e);
	(void)refusal_explain(argv, result);
	add_result(j, result);
	add_reason(j, result, p, timeout_ms);
	return 0;
}

/* ---- a fresh sandbox ---- */

static int run_fresh(struct worker *w, char **argv, struct images *image, struct json *j,
		     struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct run_options o = {
		.policy = &w->ceiling.policy,
		.ak = w->ak,
		.image = image->lock_fd >= 0 ? image : NULL,
		.argv = argv,
		.tty = STREAMS_TTY_OFF,
		.lifeline_fd = WORKER_LIFELINE_FD,
	};
	int r;

	worker_watch_lifeline_myself();
	worker_give_stderr(w);
	r = claimed_run(&o, &result, e);
	if (add_end(w, r, argv, &result, o.policy, o.policy->timeout_ms, j, e) < 0)
		return -1;
	if (r < 0)
		return 0;
	json_add_text(j, "image", w->ceiling.policy.image);
	json_add_bool(j, "warm", result.was_warm);
	return 0;
}

/* The contents come one after the other; "PATH\nSIZE" tells how long each is. */
static int place_file(struct files *f, const struct policy *p, const char *text, struct err *e)
{
	const char *size_text = strrchr(text, '\n');
	cleanup_free char *given = NULL, *path = NULL;
	cleanup_fd int fd = -1;
	uint64_t left;
	char bytes[65536];

	if (!size_text)
		return err_set(e, ERR_INVALID, "a file in the request has no size");
	given = mem_dup_bytes(text, (size_t)(size_text - text));
	left = strtoull(size_text + 1, NULL, 10);
	if (worker_resolve_path_by(p, given, &path, e) < 0 ||
	    files_open_file(f, path, FILES_WRITE | FILES_PARENTS, FILES_MODE, &fd, e) < 0)
		return -1;
	while (left > 0) {
		ssize_t n =
			read(WORKER_FILES_FD, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
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

static int place_files(struct worker *w, const char *name, char *const *files, struct err *e)
{
	CLEANUP(files_close) struct files f;

	files_init(&f);
	if (files_open(w->ak, name, &f, e) < 0)
		return -1;
	for (; *files; files++)
		if (place_file(&f, &w->ceiling.policy, *files, e) < 0)
			return -1;
	return 0;
}

static int exec_in(struct worker *w, const char *name, char **argv, const char *workdir,
		   struct json *j, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	cleanup_free char **env = worker_list(w, "env");
	const struct execute_options o = {
		.name = name,
		.ak = w->ak,
		.argv = argv,
		.workdir = workdir,
		.user = worker_text(w, "user"),
		.env = env,
		.timeout_ms = worker_timeout_ms(w),
		.tty = STREAMS_TTY_OFF,
	};
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* and the command with us */
	if (worker_is_abandoned())
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	worker_give_stderr(w);
	r = execute_command(&o, &result, e);
	return add_end(w, r, argv, &result, NULL, o.timeout_ms, j, e);
}

/* The child's part: its result goes where ours would have gone. */
static _Noreturn void run_in_child(struct worker *w, struct named *n, char **argv,
				   char *const *files)
{
	cleanup_buf struct buf out;
	struct err e = { 0 };
	struct json j;
	int r = -1;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	if (lifecycle_start_locked(w->ak, n, &e) == 0 && place_files(w, n->name, files, &e) == 0)
		r = exec_in(w, n->name, argv, NULL, &j, &e);
	json_add_text(&j, "image", w->ceiling.policy.image);
	json_close_object(&j);
	if (r < 0) {
		worker_format_error(&e, &out);
	}
	_exit(file_write_all(WORKER_RESULT_FD, out.bytes, out.len) < 0);
}

/* Until the child has ended, or whoever asked for it has gone. */
static void wait_for_child(pid_t pid)
{
	cleanup_fd int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd polled[] = { { .fd = pid_fd, .events = POLLIN },
				   { .fd = WORKER_LIFELINE_FD, .events = POLLIN } };

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
static int run_with_files(struct worker *w, char **argv, struct images *image, char *const *files,
			  struct err *e)
{
	CLEANUP(named_done) struct named n;
	char name[NAMED_NAME_MAX_BYTES + 1], id[NAMED_ID_BYTES + 1];
	char owner[sizeof(NAMED_CALL_OWNER) + NAMED_ID_BYTES];
	char *labels[] = { (char *)(uintptr_t) "agentkernel=run", NULL };
	const struct lifecycle_request q = {
		.ak = w->ak,
		.name = name,
		.policy = &w->ceiling.policy,
		.image = image->lock_fd >= 0 ? image : NULL,
		.labels = labels,
		.ttl_ms = w->ceiling.policy.timeout_ms + SPARE_TTL_MS,
		.init = request_init(&w->ceiling),
	};
	struct err ignored;
	pid_t pid;

	named_init(&n);
	named_random_id(id);
	(void)snprintf(name, sizeof(name), "run-%.12s", id);
	named_random_id(id); /* the name tells nothing about the owner */
	(void)snprintf(owner, sizeof(owner), NAMED_CALL_OWNER "%s", id);
	named_work_for(w->ak, owner, w->creator);
	worker_watch_lifeline_myself(); /* there is a sandbox to remove, from here on */
	if (lifecycle_create(&q, &n, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_in_child(w, &n, argv, files);
	named_unlock(&n);
	if (pid > 0)
		wait_for_child(pid);
	(void)!lifecycle_remove(w->ak, name, LIFECYCLE_FORCE, &ignored);
	return pid < 0 ? err_sys(e, errno, "start a process") : WORKER_ANSWERED;
}

/* pickimage works on a request: what was asked for takes the place of the ceiling in it. */
static void use_policy(struct worker *w)
{
	policy_done(&w->ceiling.policy);
	w->ceiling.policy = w->policy;
	w->policy = (struct policy){ 0 };
	if (worker_text(w, "image"))
		w->ceiling.is_image_detected = false;
}

int workercommand_run(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(images_done) struct images image;
	cleanup_free char **argv = worker_command(w);
	cleanup_free char **files = worker_list(w, "files");
	cleanup_free char **composed = NULL;
	cleanup_free char *init_text = NULL;

	images_init(&image);
	if (worker_resolve(w, argv[0], e) < 0)
		return -1;
	use_policy(w);
	w->ceiling.flags.is_json = true; /* no progress bars */
	if (pickimage_open(&w->ceiling, argv[0], &image, e) < 0)
		return -1;
	composed = images_compose(&image, "", argv);
	if (files)
		return run_with_files(w, composed, &image, files, e);
	request_put_init_first(&w->ceiling, &composed, &init_text);
	return run_fresh(w, composed, &image, j, e);
}

/* ---- a named sandbox ---- */

int workercommand_exec(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	cleanup_free char **argv = worker_command(w);
	cleanup_free char *workdir = NULL;

	if (worker_check_user(w, e) < 0 || worker_need_running(w, name, e) < 0 ||
	    worker_resolve_path(w, name, worker_text(w, "cwd"), &workdir, e) < 0)
		return -1;
	return exec_in(w, name, argv, workdir, j, e);
}
