/*
 * execute - runs a command in a running named sandbox; see execute.h.
 *
 * Theory of operation. named/execution has the common steps; this file adds those of named
 * sandboxes: the record and the supervisor, other users and variables than the policy's, the query
 * for reached limits and notices at the end, detached commands, and the audit log.
 */
#include "named/execute.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "state/ak.h"
#include "state/audit.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "named/namedrun.h"
#include "named/wake.h"
#include "policy/account.h"
#include "policy/environment.h"
#include "host/mount.h"
#include "protocol/order.h"
#include "protocol/report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct named_execution {
	struct execution base;
	struct named named;
	struct namedrun run;
	struct audit_caller caller; /* looked up while the command starts */
};

static void named_execution_done(struct named_execution *x)
{
	execution_done(&x->base);
	namedrun_done(&x->run);
	named_done(&x->named);
}

static int open_sandbox(struct named_execution *x, struct err *e)
{
	const struct execute_options *o = x->base.options;

	if (named_open(o->ak, o->name, &x->named, e) < 0)
		return -1;
	if (wake_connect(o->ak, &x->named, &x->base.control_fd, e) < 0) {
		struct err why = *e;

		if (e->code == ERR_NOT_FOUND && lifecycle_check_expiry(o->ak, &x->named, e) == 0)
			*e = why;
		return -1;
	}
	if (named_load_policy(&x->named, &x->base.policy, e) < 0 ||
	    namedrun_load(&x->named, &x->run, e) < 0)
		return -1;
	return execution_open_reports(&x->base, e);
}

/* ---- user and variables ---- */

/* Reads a file of the sandbox, which may have replaced it by anything. */
static int read_inside(int root_fd, const char *path, char **ret, struct err *e)
{
	cleanup_fd int fd =
		mount_open_in_root(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	size_t len = 0;
	int r = fd < 0 ? fd : 0;

	if (r == -ENOENT) {
		*ret = mem_dup("");
		return 0;
	}
	if (r == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return err_set(e, ERR_INVALID, "'%s' in the sandbox is not a regular file", path);
	if (r == 0)
		r = file_read_fd(fd, ACCOUNT_FILE_MAX_BYTES, ret, &len);
	if (r < 0)
		return err_sys(e, -r, "read '%s' inside", path);
	return 0;
}

static int find_account(struct named_execution *x, struct account *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame files = { 0 };
	cleanup_free char *passwd = NULL, *group = NULL;

	if (control_ask(x->base.control_fd, CONTROL_FILES, NULL, 0, &files, e) < 0)
		return -1;
	if (files.fd_count < 1)
		return err_set(e, ERR_REMOTE, "the supervisor gave no root");
	if (read_inside(files.fds[0], "/etc/passwd", &passwd, e) < 0 ||
	    read_inside(files.fds[0], "/etc/group", &group, e) < 0)
		return -1;
	return account_find(passwd, group, x->base.options->user, ret, e);
}

/* Changes the policy's user for this command (--user). */
static int choose_user(struct named_execution *x, struct err *e)
{
	struct account *a;
	int r;

	if (!x->base.options->user)
		return 0;
	a = mem_alloc(sizeof(*a));
	r = find_account(x, a, e);
	if (r == 0) {
		struct policy *p = &x->base.policy;

		p->uid = a->uid;
		p->gid = a->gid;
		p->group_count = a->group_count;
		memcpy(p->groups, a->groups, sizeof(p->groups));
		free(p->user_name);
		p->user_name = mem_dup(a->name[0] ? a->name : "user");
		free(p->home_dir);
		p->home_dir = mem_dup(a->home);
	}
	free(a);
	return r < 0 ? err_wrap(e, "--user") : 0;
}

static int add_variables(struct named_execution *x, struct err *e)
{
	struct policy *p = &x->base.policy;

	for (char *const *entry = x->base.options->env; entry && *entry; entry++) {
		const char *value = *entry;
		cleanup_free char *own = NULL;

		if (strcspn(*entry, "=") == 0)
			return err_set(e, ERR_INVALID, "--env: '%s' does not start with a name",
				       *entry);
		if (!strchr(*entry, '=')) {
			value = environment_get(x->base.options->ak->caller.environ_list, *entry);
			if (!value)
				continue;
			own = mem_format("%s=%s", *entry, value);
			value = own;
		}
		if (p->env_count == POLICY_ENV_MAX)
			return err_set(e, ERR_LIMIT, "more than %u variables", POLICY_ENV_MAX);
		p->env = mem_grow(p->env, p->env_count + 1, sizeof(*p->env));
		p->env[p->env_count++] = mem_dup(value);
	}
	return 0;
}

static int check_options(const struct execute_options *o, struct err *e)
{
	if (o->workdir && o->workdir[0] != '/')
		return err_set(e, ERR_INVALID, "--workdir: '%s' is not an absolute path",
			       o->workdir);
	return 0;
}

static int prepare(struct named_execution *x, struct err *e)
{
	if (check_options(x->base.options, e) < 0 || open_sandbox(x, e) < 0 ||
	    choose_user(x, e) < 0)
		return -1;
	return add_variables(x, e);
}

/* ---- waiting ---- */

/* The supervisor closed our connection but still listens: it ran out of descriptors. */
static int check_unheard(const struct execution *base, struct err *e)
{
	const struct named_execution *x = (const struct named_execution *)base;
	cleanup_fd int fd = -1;
	struct err ignored;

	if (control_connect(x->named.dir_fd, x->base.options->name, &fd, &ignored) < 0)
		return 0; /* the sandbox has ended, and so has the command */
	return err_set(e, ERR_BUSY, "the supervisor of sandbox '%s' did not take the command",
		       x->base.options->name);
}

/* Checks that the supervisor answers. One that has ended is no error: init reports to us. */
static int probe(void *context, struct err *e)
{
	const struct named_execution *x = context; /* the execution is its first member */

	if (control_probe(x->named.dir_fd, x->base.options->name, e) == 0 || e->code != ERR_TIMEOUT)
		return 0;
	return err_wrap(e, "sandbox '%s'", x->base.options->name);
}

static void begin(struct named_execution *x, const struct execute_options *o)
{
	*x = (struct named_execution){ 0 };
	execution_init(&x->base, o);
	x->base.probe = probe;
	x->base.check_unheard = check_unheard;
	named_init(&x->named);
}

static int send_command(struct named_execution *x, unsigned flags, struct err *e)
{
	struct order_command c;

	execution_describe(&x->base, flags, &c);
	return execution_send(&x->base, &c, x->base.control_fd, CONTROL_EXEC, e);
}

/* Asks for reached limits, only if the command failed. */
static void ask_limits(const struct named_execution *x, const struct supervise_outcome *outcome,
		       struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	int status = outcome->wait_status;
	struct control_stats stats;
	struct err ignored;

	if (x->base.control_fd < 0 || !outcome->has_status ||
	    (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	if (outcome->is_disk_full && x->named.has_disk_limit)
		ret->reached_disk_bytes = x->base.policy.disk_bytes;
	if (control_ask(x->base.control_fd, CONTROL_STATS, NULL, 0, &answer, &ignored) < 0 ||
	    answer.len != sizeof(stats))
		return;
	memcpy(&stats, answer.bytes, sizeof(stats));
	ret->has_oom =
		stats.oom_kill_count > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (stats.pids_refused_count > 0)
		ret->reached_pids = stats.pids_limit;
}

/* Asks for the supervisor's notices about the workspace since this connection began. */
static void ask_notices(const struct named_execution *x, struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct err ignored;

	if (x->base.control_fd < 0 || !x->base.policy.workspace ||
	    control_ask(x->base.control_fd, CONTROL_NOTICES, NULL, 0, &answer, &ignored) < 0)
		return;
	for (size_t at = 0; at < answer.len; at += strlen(answer.bytes + at) + 1)
		(void)keyrows_list_add(&ret->notices, answer.bytes + at);
}

static void finish(struct named_execution *x, const struct supervise_outcome *outcome,
		   uint64_t started_us, struct run_result *ret)
{
	*ret = (struct run_result){ 0 };
	execution_drain(&x->base);
	ret->duration_ms = (clock_now_us() - started_us) / 1000;
	ask_limits(x, outcome, ret);
	ask_notices(x, ret);
	run_judge(outcome, ret);
	execution_take_output(&x->base, ret);
}

/* Describes how the command ended, for the audit log; NULL: with exit status 0. */
static const char *describe_end(const struct run_result *r, char out[AUDIT_END_MAX_BYTES])
{
	switch (r->end) {
	case RUN_EXITED:
		if (r->exit_code == 0)
			return NULL;
		(void)snprintf(out, AUDIT_END_MAX_BYTES, "exit status %d", r->exit_code);
		return out;
	case RUN_SIGNALLED:
		(void)snprintf(out, AUDIT_END_MAX_BYTES, "killed by signal %d", r->signal_number);
		return out;
	case RUN_OUT_OF_MEMORY:
		return "killed: out of memory";
	case RUN_OUT_OF_CPU:
		return "killed: out of cpu time";
	case RUN_OUT_OF_PIDS:
		return "killed: too many processes";
	case RUN_TIMED_OUT:
		return "ended by its deadline";
	case RUN_SANDBOX_ENDED:
		return "the sandbox ended";
	}
	return "it ended";
}

static void note(const struct named_execution *x, enum auditline_type type, const char *end,
		 const struct err *why)
{
	const struct execute_options *o = x->base.options;
	struct audit_identity who = { 0 };
	const struct audit_event event = {
		.type = type,
		.who = x->named.id[0] ? &who : NULL,
		.actor = x->caller.actor.program ? &x->caller.actor : NULL,
		.sandbox = o->name,
		.argv = o->argv,
		.what = o->argv ? NULL : "login shell",
		.result = why ? why->msg : end,
	};

	audit_set_identity(&who, x->named.id, x->named.owner);
	(void)audit_write(o->ak, &event);
}

/*
 * STREAMS_NO_FILES if packages may install set-id files and the caller owns files inside: a command
 * of another exec, which may set such modes, can get this command's descriptors, and would set the
 * mode on a file of the host.
 */
static unsigned choose_streams(const struct named_execution *x)
{
	bool may_set_ids = !x->run.host_gid && strcmp(x->base.policy.image, POLICY_HOST_IMAGE) != 0;

	return (x->base.options->is_captured ? STREAMS_CAPTURED : 0) |
	       (may_set_ids ? STREAMS_NO_FILES : 0);
}

static int run_attached(struct named_execution *x, struct run_result *ret, struct err *e)
{
	const struct execute_options *o = x->base.options;
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();

	if (supervise_hold_signals(&x->base.signal_fd, e) < 0 || prepare(x, e) < 0 ||
	    streams_open(&x->base.streams, o->tty, choose_streams(x), e) < 0)
		return -1;
	if (x->run.host_gid)
		streams_lend_pipes(&x->base.streams, x->run.host_gid + x->base.policy.gid);
	if (send_command(x, x->base.streams.has_tty ? ORDER_TTY : 0, e) < 0)
		return -1;
	if (x->base.streams.has_tty && execution_await_terminal(&x->base, e) < 0)
		return -1;
	streams_started(&x->base.streams, x->base.master_fd);
	audit_find_caller(&x->caller);
	if (execution_wait(&x->base, &outcome, e) < 0)
		return -1;
	finish(x, &outcome, started_us, ret);
	return 0;
}

int execute_command(const struct execute_options *o, struct run_result *ret, struct err *e)
{
	CLEANUP(named_execution_done) struct named_execution x;
	char words[AUDIT_END_MAX_BYTES];
	int r;

	begin(&x, o);
	r = run_attached(&x, ret, e);
	note(&x, AUDITLINE_EXEC, r < 0 ? NULL : describe_end(ret, words), r < 0 ? e : NULL);
	return r;
}

/* ---- detached ---- */

static int start_detached(struct named_execution *x, uint32_t *ret_id, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct report report;
	int r;

	unsigned flags = ORDER_DETACHED | (x->base.options->tty == STREAMS_TTY_ON ? ORDER_TTY : 0) |
			 (x->base.options->keeps_input ? ORDER_STDIN
			  : x->base.options->argv      ? 0
						       : ORDER_AWAITED);

	if (prepare(x, e) < 0 || send_command(x, flags, e) < 0 ||
	    control_wait(x->base.control_fd, CONTROL_ANSWER_MS, &answer, e) < 0)
		return -1;
	if (answer.len != sizeof(*ret_id))
		return err_set(e, ERR_REMOTE, "the supervisor gave a strange answer");
	memcpy(ret_id, answer.bytes, sizeof(*ret_id));
	r = report_read(x->base.report_fd, &report, e);
	if (r < 0)
		return -1;
	/* end of file without a report: the command runs */
	if (r == 1 && report.kind == REPORT_FAILED) {
		*e = report.error;
		return -1;
	}
	return 0;
}

int execute_detached(const struct execute_options *o, uint32_t *ret_id, struct err *e)
{
	CLEANUP(named_execution_done) struct named_execution x;
	int r;

	begin(&x, o);
	r = start_detached(&x, ret_id, e);
	note(&x, AUDITLINE_EXEC, NULL, r < 0 ? e : NULL);
	return r;
}

/* ---- attaching ---- */

static int ask_for_terminal(struct named_execution *x, uint32_t id, struct err *e)
{
	const struct order_signal body = { .id = id };
	CLEANUP(frame_done) struct frame answer = { 0 };
	int r = frame_send(x->base.control_fd, CONTROL_ATTACH, &body, sizeof(body),
			   &x->base.reporting_fd, 1);

	if (r < 0)
		return err_sys(e, -r, "ask the supervisor");
	if (control_wait(x->base.control_fd, CONTROL_ANSWER_MS, &answer, e) < 0)
		return -1;
	cleanup_closep(&x->base.reporting_fd);
	return 0;
}

/* Attaches to the login shell (id 0), starting one if none runs, or to command `id`. */
static int find_terminal(struct named_execution *x, uint32_t id, struct err *e)
{
	struct execute_options shell = *x->base.options;
	uint32_t started = 0;

	if (ask_for_terminal(x, id, e) == 0)
		return 0;
	if (id != 0 || e->code != ERR_NOT_FOUND)
		return -1;
	shell.argv = NULL;
	shell.tty = STREAMS_TTY_ON;
	if (execute_detached(&shell, &started, e) < 0)
		return -1;
	return ask_for_terminal(x, started, e);
}

static int run_at_terminal(struct named_execution *x, uint32_t id, struct run_result *ret,
			   bool *ret_has_left, struct err *e)
{
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();

	if (supervise_hold_signals(&x->base.signal_fd, e) < 0 || open_sandbox(x, e) < 0 ||
	    streams_open(&x->base.streams, STREAMS_TTY_ON, STREAMS_CAN_LEAVE, e) < 0 ||
	    find_terminal(x, id, e) < 0 || execution_await_terminal(&x->base, e) < 0)
		return -1;
	tty_copy_size(STDIN_FILENO, x->base.master_fd);
	streams_started(&x->base.streams, x->base.master_fd);
	if (execution_wait(&x->base, &outcome, e) < 0)
		return -1;
	*ret_has_left = outcome.was_left || (!outcome.has_status && x->base.control_fd < 0);
	if (!*ret_has_left)
		finish(x, &outcome, started_us, ret);
	return 0;
}

int execute_attach(const struct execute_options *o, uint32_t id, struct run_result *ret,
		   bool *ret_has_left, struct err *e)
{
	CLEANUP(named_execution_done) struct named_execution x;
	int r;

	*ret = (struct run_result){ 0 };
	begin(&x, o);
	r = run_at_terminal(&x, id, ret, ret_has_left, e);
	note(&x, AUDITLINE_ATTACH, NULL, r < 0 ? e : NULL);
	return r;
}
