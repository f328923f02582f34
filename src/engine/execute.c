/*
 * execute - a command in a named sandbox that runs; see execute.h.
 *
 * Theory of operation. One request goes to the supervisor with a socket of ours, on which init
 * reports: the terminal's master first if there is one, then why the command could not start, or
 * how it ended. The connection to the supervisor stays open as long as we wait: signals go that
 * way, a refusal comes that way, and closing it ends the command.
 */
#include "engine/execute.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/audit.h"
#include "engine/claim.h"
#include "engine/control.h"
#include "engine/hostfiles.h"
#include "engine/lifecycle.h"
#include "engine/named.h"
#include "engine/newnames.h"
#include "engine/session.h"
#include "engine/supervise.h"
#include "policy/account.h"
#include "policy/environment.h"
#include "sandbox/mount.h"
#include "sandbox/idmap.h"
#include "sandbox/order.h"
#include "sandbox/placement.h"
#include "sandbox/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct execution {
	const struct execute_options *options;
	struct named named;
	struct policy policy;
	struct named_run run;
	int control_fd;
	const struct claim *claim; /* NULL: it is a named sandbox */
	int report_fd;             /* our end */
	int reporting_fd;          /* init's, until it is sent */
	int master_fd;
	int signal_fd;
	struct streams streams;
	struct audit_caller caller; /* looked up while the command starts */

	/* of one that was claimed and shows directories of the host */
	struct hostfiles files;
	struct newnames names;
	int placed_fd; /* where init says that its walls stand; -1: it has nothing to be sent */
};

static void execution_init(struct execution *x, const struct execute_options *o)
{
	*x = (struct execution){
		.options = o,
		.control_fd = -1,
		.report_fd = -1,
		.reporting_fd = -1,
		.master_fd = -1,
		.signal_fd = -1,
		.placed_fd = -1,
	};
	named_init(&x->named);
	streams_init(&x->streams);
	hostfiles_init(&x->files);
	newnames_init(&x->names);
}

static void execution_done(struct execution *x)
{
	streams_done(&x->streams);
	cleanup_closep(&x->control_fd);
	cleanup_closep(&x->report_fd);
	cleanup_closep(&x->reporting_fd);
	cleanup_closep(&x->master_fd);
	cleanup_closep(&x->signal_fd);
	cleanup_closep(&x->placed_fd);
	newnames_done(&x->names);
	hostfiles_done(&x->files);
	policy_done(&x->policy);
	named_run_done(&x->run);
	named_done(&x->named);
}

static int open_reports(struct execution *x, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "create a socket for reports");
	x->report_fd = ends[0];
	x->reporting_fd = ends[1];
	return 0;
}

static int open_sandbox(struct execution *x, struct err *e)
{
	const struct execute_options *o = x->options;

	if (named_open(o->caller->environ_list, o->name, &x->named, e) < 0)
		return -1;
	if (control_connect(x->named.dir_fd, o->name, &x->control_fd, e) < 0) {
		struct err why = *e;

		if (e->code == ERR_NOT_FOUND &&
		    lifecycle_check_expiry(o->caller->environ_list, &x->named, e) == 0)
			*e = why;
		return -1;
	}
	if (named_load_policy(&x->named, &x->policy, e) < 0 ||
	    named_load_run(&x->named, &x->run, e) < 0)
		return -1;
	return open_reports(x, e);
}

/* ---- who, where and what ---- */

/* A file of the sandbox, which may be anything by now. */
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

static int find_account(struct execution *x, struct account *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame files = { 0 };
	cleanup_free char *passwd = NULL, *group = NULL;

	if (control_ask(x->control_fd, CONTROL_FILES, NULL, 0, &files, e) < 0)
		return -1;
	if (files.fd_count < 1)
		return err_set(e, ERR_REMOTE, "the supervisor gave no root");
	if (read_inside(files.fds[0], "/etc/passwd", &passwd, e) < 0 ||
	    read_inside(files.fds[0], "/etc/group", &group, e) < 0)
		return -1;
	return account_find(passwd, group, x->options->user, ret, e);
}

/* The policy as this command sees it: another user, more variables. */
static int choose_user(struct execution *x, struct err *e)
{
	struct account *a;
	int r;

	if (!x->options->user)
		return 0;
	a = mem_alloc(sizeof(*a));
	r = find_account(x, a, e);
	if (r == 0) {
		struct policy *p = &x->policy;

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

static int add_variables(struct execution *x, struct err *e)
{
	struct policy *p = &x->policy;

	for (char *const *entry = x->options->env; entry && *entry; entry++) {
		const char *value = *entry;
		cleanup_free char *own = NULL;

		if (strcspn(*entry, "=") == 0)
			return err_set(e, ERR_INVALID, "--env: '%s' does not start with a name",
				       *entry);
		if (!strchr(*entry, '=')) {
			value = environment_get(x->options->caller->environ_list, *entry);
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

static void add_terminal(struct order_command *c)
{
	struct winsize size;

	c->flags |= ORDER_TTY;
	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	c->rows = size.ws_row;
	c->columns = size.ws_col;
}

/* A login shell says so by the dash in its name. */
static char *const login_shell[] = { (char *)"sh", (char *)"-c",
				     (char *)"test -x \"$SHELL\" || SHELL=/bin/bash; test -x "
					     "\"$SHELL\" || SHELL=/bin/sh; export "
					     "SHELL; exec \"$SHELL\" -l",
				     NULL };

static int on_control(void *context, struct err *e);

static void choose_for_init(const struct execution *x, struct order_command *c)
{
	const struct claim_answer *answer = &x->claim->answer;
	struct stat st;

	c->id = CLAIM_COMMAND_ID;
	c->seccomp_variant = answer->filter;
	for (int i = 0; i < 3; i++)
		if (fstat(x->streams.command_fd[i], &st) == 0 && S_ISREG(st.st_mode))
			c->seccomp_variant = answer->filter_for_file_streams;
	if (!profile_get(x->policy.profile)->runs_as_root)
		c->flags &= ~(uint32_t)ORDER_CAPABILITIES;
}

static int send_command(struct execution *x, unsigned flags, struct err *e)
{
	const struct execute_options *o = x->options;
	const struct policy *p = &x->policy;
	struct order_command c = {
		.flags = flags,
		.uid = p->uid,
		.gid = p->gid,
		.group_count = p->group_count,
		.timeout_ms = o->timeout_ms ? o->timeout_ms : p->timeout_ms,
	};
	int fds[] = { x->reporting_fd, x->streams.command_fd[0], x->streams.command_fd[1],
		      x->streams.command_fd[2] };
	char *const *argv = o->argv ? o->argv : login_shell;
	const char *term = NULL;
	cleanup_buf struct buf body;
	char **environment;
	int r;

	buf_init(&body, FRAME_BODY_MAX_BYTES);
	memcpy(c.groups, p->groups, sizeof(c.groups));
	if (p->uid == 0)
		c.flags |= ORDER_CAPABILITIES;
	if (x->claim) /* what its supervisor would choose for a named one */
		choose_for_init(x, &c);
	if (flags & ORDER_TTY) {
		add_terminal(&c);
		term = environment_get(o->caller->environ_list, "TERM");
	}
	environment = environment_build(p, o->caller, term);
	order_format_command(&c, o->workdir ? o->workdir : p->workdir, argv, environment, &body);
	environment_free(environment);
	if (body.is_cut || keyrows_list_count(argv) > ORDER_WORDS_MAX)
		return err_set(e, ERR_LIMIT, "the command is longer than %u bytes",
			       FRAME_BODY_MAX_BYTES);
	r = frame_send(x->claim ? x->claim->init_fd : x->control_fd,
		       x->claim ? (uint32_t)ORDER_START : (uint32_t)CONTROL_EXEC, body.bytes,
		       body.len, fds, flags & (ORDER_TTY | ORDER_DETACHED) ? 1 : 4);
	cleanup_closep(&x->reporting_fd);
	if (r == -EPIPE && on_control(x, e) < 0)
		return -1;
	if (r < 0)
		return err_sys(e, -r, "hand the command to the supervisor");
	return 0;
}

static int check_options(const struct execute_options *o, struct err *e)
{
	if (o->workdir && o->workdir[0] != '/')
		return err_set(e, ERR_INVALID, "--workdir: '%s' is not an absolute path",
			       o->workdir);
	return 0;
}

static int prepare(struct execution *x, struct err *e)
{
	if (check_options(x->options, e) < 0 || open_sandbox(x, e) < 0 || choose_user(x, e) < 0)
		return -1;
	return add_variables(x, e);
}

/* ---- waiting ---- */

/* A refusal. The supervisor's end comes here too, but the report tells that. */
static int on_control(void *context, struct err *e)
{
	struct execution *x = context;
	CLEANUP(frame_done) struct frame f = { 0 };
	int r = frame_receive(x->control_fd, FRAME_NO_WAIT, &f);

	if (r == 1 && f.kind == CONTROL_FAILED && f.len == sizeof(*e)) {
		memcpy(e, f.bytes, sizeof(*e));
		err_sanitize(e);
		/* a signal that came too late is no failure of the command */
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	}
	if (r == -EPROTONOSUPPORT)
		return control_explain(x->control_fd, r, e);
	if (r == 0 || (r < 0 && !frame_may_pass(r)))
		cleanup_closep(&x->control_fd);
	return 0;
}

static void send_signal(void *context, int number, unsigned flags)
{
	const struct execution *x = context;
	const struct order_signal body = { ORDER_ALL, number, flags & SUPERVISE_TO_GROUP };

	if (x->control_fd >= 0)
		(void)frame_send(x->control_fd, CONTROL_SIGNAL, &body, sizeof(body), NULL, 0);
}

/* One message: a descriptor, or a report that says why there is none. */
static int receive_master(struct execution *x, struct err *e)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct report report = { 0 };
	struct iovec data = { &report, sizeof(report) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	struct cmsghdr *header;
	ssize_t n = recvmsg(x->report_fd, &message, MSG_CMSG_CLOEXEC);

	header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int))) {
		memcpy(&x->master_fd, CMSG_DATA(header), sizeof(int));
		return 0;
	}
	if (n == (ssize_t)sizeof(report) && report.kind == REPORT_FAILED) {
		err_sanitize(&report.error);
		*e = report.error;
		return -1;
	}
	return err_set(e, ERR_SYSTEM, "the sandbox ended before it gave a terminal");
}

/* Whichever speaks first: init with the terminal, or the supervisor with a refusal. */
static int await_terminal(struct execution *x, struct err *e)
{
	for (;;) {
		struct pollfd polled[] = { { .fd = x->report_fd, .events = POLLIN },
					   { .fd = x->control_fd, .events = POLLIN } };

		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, errno, "wait for a terminal");
		/* a refusal closes the report's socket too */
		if (polled[1].revents && on_control(x, e) < 0)
			return -1;
		if (polled[0].revents)
			return receive_master(x, e);
	}
}

/* It has hung up on us, and lives: what a supervisor does that has no descriptor left. */
static int check_unheard(const struct execution *x, struct err *e)
{
	cleanup_fd int fd = -1;
	struct err ignored;

	if (control_connect(x->named.dir_fd, x->options->name, &fd, &ignored) < 0)
		return 0; /* the sandbox has ended, and so has the command */
	return err_set(e, ERR_BUSY, "the supervisor of sandbox '%s' did not take the command",
		       x->options->name);
}

/* The end is reported by init: a supervisor that has ended is no reason to give up on it. */
static int probe(void *context, struct err *e)
{
	const struct execution *x = context;

	if (control_probe(x->named.dir_fd, x->options->name, e) == 0 || e->code != ERR_TIMEOUT)
		return 0;
	return err_wrap(e, "sandbox '%s'", x->options->name);
}

static int wait_for_end(struct execution *x, struct supervise_outcome *ret, struct err *e)
{
	const struct supervise_options options = {
		.report_fd = x->report_fd,
		.tty_master_fd = x->master_fd,
		.send_signal = send_signal,
		.context = x,
		.streams = &x->streams,
		.names = &x->names,
		.signal_fd = x->signal_fd,
		.other_fd = x->control_fd,
		.on_other = on_control,
		.probe = x->claim ? NULL : probe,
		/* init ends the command in time; this is for an init that does not */
		.timeout_ms =
			x->options->timeout_ms ? x->options->timeout_ms + CONTROL_ANSWER_MS : 0,
		.lifeline_fd = x->options->lifeline_fd,
	};

	if (supervise_wait(&options, ret, e) < 0)
		return -1;
	/* no report at all: a refusal, which closed its socket, or the sandbox's end */
	if (ret->has_status || ret->was_left || ret->limit != REPORT_LIMIT_NONE)
		return 0;
	if (x->control_fd >= 0 && on_control(x, e) < 0)
		return -1;
	return x->control_fd < 0 && !x->claim ? check_unheard(x, e) : 0;
}

static void drain(struct execution *x)
{
	cleanup_fd int end_fd = x->streams.pump_count ? supervise_open_end_signals() : -1;

	for (unsigned i = 0; i < x->streams.pump_count; i++)
		pump_drain(&x->streams.pumps[i], end_fd, -1);
}

/* Was a limit the reason? Only asked when the command has failed. */
static void ask_limits(const struct execution *x, const struct supervise_outcome *outcome,
		       struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	int status = outcome->wait_status;
	struct control_stats stats;
	struct err ignored;

	if (x->control_fd < 0 || !outcome->has_status ||
	    (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	if (outcome->is_disk_full && x->named.has_disk_limit)
		ret->reached_disk_bytes = x->policy.disk_bytes;
	if (control_ask(x->control_fd, CONTROL_STATS, NULL, 0, &answer, &ignored) < 0 ||
	    answer.len != sizeof(stats))
		return;
	memcpy(&stats, answer.bytes, sizeof(stats));
	ret->has_oom =
		stats.oom_kill_count > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (stats.pids_refused_count > 0)
		ret->reached_pids = stats.pids_limit;
}

/* What the supervisor noticed in the workspace since this connection began. */
static void ask_notices(const struct execution *x, struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct err ignored;

	if (x->control_fd < 0 || !x->policy.workspace ||
	    control_ask(x->control_fd, CONTROL_NOTICES, NULL, 0, &answer, &ignored) < 0)
		return;
	for (size_t at = 0; at < answer.len; at += strlen(answer.bytes + at) + 1)
		(void)keyrows_list_add(&ret->notices, answer.bytes + at);
}

static void take_output(struct execution *x, struct run_result *ret)
{
	for (int i = 0; i < 2; i++) {
		ret->output[i] = x->streams.captured[i];
		buf_init(&x->streams.captured[i], STREAMS_CAPTURE_MAX_BYTES);
	}
}

static void finish(struct execution *x, const struct supervise_outcome *outcome,
		   uint64_t started_us, struct run_result *ret)
{
	*ret = (struct run_result){ 0 };
	drain(x);
	ret->duration_ms = (clock_now_us() - started_us) / 1000;
	ask_limits(x, outcome, ret);
	ask_notices(x, ret);
	run_judge(outcome, ret);
	take_output(x, ret);
}

/* How a command that ran came to its end; NULL: with exit status 0. */
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

static void note(const struct execution *x, enum auditline_type type, const char *end,
		 const struct err *why)
{
	const struct execute_options *o = x->options;
	struct named_identity who = { 0 };
	const struct audit_event event = {
		.type = type,
		.who = x->named.id[0] ? &who : NULL,
		.actor = x->caller.actor.program ? &x->caller.actor : NULL,
		.sandbox = o->name,
		.argv = o->argv,
		.what = o->argv ? NULL : "login shell",
		.result = why ? why->msg : end,
	};

	named_set_identity(&who, x->named.id, x->named.owner);
	(void)audit_write(o->caller->environ_list, &event);
}

/*
 * Where packages may bring set-id files, and the owner inside is the caller: a command of another
 * exec, which may set such modes, can be given this one's descriptors, and a file of the host's
 * would get the mode.
 */
static unsigned choose_streams(const struct execution *x)
{
	bool may_set_ids = !x->run.host_gid && strcmp(x->policy.image, POLICY_HOST_IMAGE) != 0;

	return (x->options->is_captured ? STREAMS_CAPTURED : 0) |
	       (may_set_ids ? STREAMS_NO_FILES : 0);
}

static int run_attached(struct execution *x, struct run_result *ret, struct err *e)
{
	const struct execute_options *o = x->options;
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();

	if (supervise_hold_signals(&x->signal_fd, e) < 0 || prepare(x, e) < 0 ||
	    streams_open(&x->streams, o->tty, choose_streams(x), e) < 0)
		return -1;
	if (x->run.host_gid)
		streams_lend_pipes(&x->streams, x->run.host_gid + x->policy.gid);
	if (send_command(x, x->streams.has_tty ? ORDER_TTY : 0, e) < 0)
		return -1;
	if (x->streams.has_tty && await_terminal(x, e) < 0)
		return -1;
	streams_started(&x->streams, x->master_fd);
	audit_find_caller(&x->caller);
	if (wait_for_end(x, &outcome, e) < 0)
		return -1;
	finish(x, &outcome, started_us, ret);
	return 0;
}

int execute_command(const struct execute_options *o, struct run_result *ret, struct err *e)
{
	CLEANUP(execution_done) struct execution x;
	char words[AUDIT_END_MAX_BYTES];
	int r;

	execution_init(&x, o);
	r = run_attached(&x, ret, e);
	note(&x, AUDITLINE_EXEC, r < 0 ? NULL : describe_end(ret, words), r < 0 ? e : NULL);
	return r;
}

/* ---- in a sandbox that waited ready ---- */

/* "HOST\0PORT\0REASON\0FIX\0" */
static void take_denials(const char *at, const char *end, uint32_t count, struct run_result *ret)
{
	while (count-- > 0 && ret->denial_count < GATEKEEPER_DENIALS_MAX) {
		const char *texts[4];

		for (unsigned i = 0; i < COUNT_OF(texts); i++) {
			texts[i] = at;
			at += strnlen(at, (size_t)(end - at));
			if (at == end)
				return;
			at++;
		}
		ret->denials = mem_grow(ret->denials, ret->denial_count + 1, sizeof(*ret->denials));
		ret->denials[ret->denial_count++] = (struct gatekeeper_denial){
			.host = mem_dup(texts[0]),
			.port = (uint16_t)strtoul(texts[1], NULL, 10),
			.reason = mem_dup(texts[2]),
			.fix = mem_dup(texts[3]),
		};
	}
}

/* A directory that it could write to is looked through, which has to wait until nothing inside
 * runs. */
static bool has_to_await_end(const struct execution *x, const struct supervise_outcome *outcome)
{
	bool is_well = outcome->has_status && WIFEXITED(outcome->wait_status) &&
		       WEXITSTATUS(outcome->wait_status) == 0;

	return !is_well || x->options->wants_figures || (x->names.workspace && !outcome->was_alone);
}

/* What only its own process knows. Nobody waits for it where all went well and nobody asks. */
static void ask_end(struct execution *x, struct supervise_outcome *outcome, struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct claim_end end;
	struct err ignored;

	if (!has_to_await_end(x, outcome) || x->control_fd < 0 ||
	    control_ask(x->control_fd, CLAIM_END, NULL, 0, &answer, &ignored) < 0 ||
	    answer.len < sizeof(end))
		return;
	memcpy(&end, answer.bytes, sizeof(end));
	ret->cpu_ms = end.cpu_us / 1000;
	ret->peak_memory_bytes = end.peak_memory_bytes;
	ret->has_oom = end.oom_kill_count > 0;
	ret->reached_pids = end.pids_refused_count > 0 ? x->policy.pids_count : 0;
	ret->gate_deaths = end.gate_deaths;
	if (end.limit <= REPORT_LIMIT_PIDS)
		outcome->limit = end.limit;
	if (end.is_stuck)
		(void)keyrows_list_add(&x->names.notices, SESSION_STUCK_WORDS);
	take_denials(answer.bytes + sizeof(end), answer.bytes + answer.len, end.denial_count, ret);
}

/* What the workspace has gained, once nothing inside runs any more. */
static void take_notices(struct execution *x, struct run_result *ret)
{
	newnames_conclude(&x->names);
	ret->notices = take_ptr(x->names.notices);
}

/* The host's directories, checked as at any start. */
static int open_places(struct execution *x, struct err *e)
{
	char *const *environ_list = x->options->caller->environ_list;
	const struct claim_answer *answer = &x->claim->answer;
	const struct idmap map = { .kind = answer->idmap_kind,
				   .uid = x->policy.uid,
				   .gid = x->policy.gid,
				   .host_uid = answer->host_uid,
				   .host_gid = answer->host_gid,
				   .lock_fd = -1,
				   .has_owner_ns = x->claim->owner_ns_fd >= 0,
				   .owner_ns_fd = x->claim->owner_ns_fd,
				   .owner_uid = geteuid(),
				   .owner_gid = getegid() };

	return hostfiles_open(&x->files, &x->policy, environ_list, &map, e);
}

/* Before anything runs inside. */
static int watch_places(struct execution *x, struct err *e)
{
	return newnames_open(&x->names, &x->policy, &x->files.workspace,
			     x->options->caller->environ_list, NULL, e);
}

/* Returns -errno. The command may follow at once: init takes it when its walls stand. */
static int send_places(struct execution *x)
{
	const struct rootfs_options shown = { .places = x->files.places,
					      .place_count = x->files.count,
					      .guards = x->files.workspace.guards,
					      .guard_count = x->files.workspace.guard_count };
	int fds[1 + PLACEMENT_TREES_MAX];
	cleanup_buf struct buf body;
	unsigned tree_count = 0;
	int ends[2], r;

	buf_init(&body, FRAME_BODY_MAX_BYTES);
	if (!placement_format(&shown, &body, fds + 1, &tree_count))
		return -E2BIG;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	x->placed_fd = ends[0];
	fds[0] = ends[1];
	r = frame_send(x->claim->init_fd, ORDER_PLACES, body.bytes, body.len, fds, 1 + tree_count);
	(void)close(ends[1]);
	return r;
}

/* No end of the command came: did its sandbox's walls ever stand? If not, nothing was started. */
static bool was_placed(const struct execution *x)
{
	struct report report;
	struct err ignored;

	return x->placed_fd < 0 || report_read(x->placed_fd, &report, &ignored) == 1;
}

/* 1: it is under way; 0: its sandbox could not be used, and nothing was started. */
static int start_claimed(struct execution *x, struct err *e)
{
	const struct execute_options *o = x->options;
	struct err why = { 0 };

	/* what it shows first: init mounts that while we do the rest */
	if (x->claim->awaits_places && open_places(x, e) < 0)
		return -1;
	if (x->claim->awaits_places && send_places(x) < 0)
		return 0;
	if (watch_places(x, e) < 0 || supervise_hold_signals(&x->signal_fd, e) < 0 ||
	    open_reports(x, e) < 0 ||
	    streams_open(&x->streams, o->tty, o->is_captured ? STREAMS_CAPTURED : 0, e) < 0)
		return -1;
	if (x->claim->answer.idmap_kind == IDMAP_PRIVATE)
		streams_lend_pipes(&x->streams, x->claim->answer.host_gid + x->policy.gid);
	if (send_command(x, x->streams.has_tty ? ORDER_TTY : 0, &why) < 0) {
		if (why.sys == EPIPE)
			return 0;
		*e = why;
		return -1;
	}
	if (x->streams.has_tty && await_terminal(x, &why) < 0) {
		if (!was_placed(x))
			return 0;
		*e = why;
		return -1;
	}
	streams_started(&x->streams, x->master_fd);
	return 1;
}

/* 1: it ran; 0: its sandbox had ended before it could be handed the command. */
static int run_claimed(struct execution *x, struct run_result *ret, struct err *e)
{
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();
	int r = start_claimed(x, e);

	if (r <= 0)
		return r;
	*ret = (struct run_result){ .was_warm = true };
	if (wait_for_end(x, &outcome, e) < 0) {
		ask_end(x, &outcome, ret);
		take_notices(x, ret);
		return -1;
	}
	if (!outcome.has_status && outcome.limit == REPORT_LIMIT_NONE && !was_placed(x))
		return 0;
	ask_end(x, &outcome, ret);
	take_notices(x, ret);
	drain(x);
	ret->duration_ms = (clock_now_us() - started_us) / 1000;
	run_judge(&outcome, ret);
	take_output(x, ret);
	return 1;
}

int execute_claimed(const struct execute_options *o, const struct policy *p, struct claim *claim,
		    struct run_result *ret, struct err *e)
{
	CLEANUP(execution_done) struct execution x;
	int r;

	execution_init(&x, o);
	x.control_fd = take_fd(&claim->process_fd);
	x.claim = claim;
	x.policy = *p; /* borrowed */
	r = run_claimed(&x, ret, e);
	x.policy = (struct policy){ 0 };
	claim_done(claim);
	return r;
}

/* ---- detached ---- */

static int start_detached(struct execution *x, uint32_t *ret_id, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct report report;
	int r;

	unsigned flags = ORDER_DETACHED | (x->options->tty == STREAMS_TTY_ON ? ORDER_TTY : 0) |
			 (x->options->argv ? 0 : ORDER_AWAITED);

	if (prepare(x, e) < 0 || send_command(x, flags, e) < 0 ||
	    control_wait(x->control_fd, CONTROL_ANSWER_MS, &answer, e) < 0)
		return -1;
	if (answer.len != sizeof(*ret_id))
		return err_set(e, ERR_REMOTE, "the supervisor gave a strange answer");
	memcpy(ret_id, answer.bytes, sizeof(*ret_id));
	r = report_read(x->report_fd, &report, e);
	if (r < 0)
		return -1;
	/* its end without a word: the command runs */
	if (r == 1 && report.kind == REPORT_FAILED) {
		*e = report.error;
		return -1;
	}
	return 0;
}

int execute_detached(const struct execute_options *o, uint32_t *ret_id, struct err *e)
{
	CLEANUP(execution_done) struct execution x;
	int r;

	execution_init(&x, o);
	r = start_detached(&x, ret_id, e);
	note(&x, AUDITLINE_EXEC, NULL, r < 0 ? e : NULL);
	return r;
}

/* ---- attaching ---- */

static int ask_for_terminal(struct execution *x, uint32_t id, struct err *e)
{
	const struct order_signal body = { .id = id };
	CLEANUP(frame_done) struct frame answer = { 0 };
	int r = frame_send(x->control_fd, CONTROL_ATTACH, &body, sizeof(body), &x->reporting_fd, 1);

	if (r < 0)
		return err_sys(e, -r, "ask the supervisor");
	if (control_wait(x->control_fd, CONTROL_ANSWER_MS, &answer, e) < 0)
		return -1;
	cleanup_closep(&x->reporting_fd);
	return 0;
}

/* The login shell is the same one each time, until it ends. */
static int find_terminal(struct execution *x, uint32_t id, struct err *e)
{
	struct execute_options shell = *x->options;
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

static int run_at_terminal(struct execution *x, uint32_t id, struct run_result *ret,
			   bool *ret_has_left, struct err *e)
{
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();

	if (supervise_hold_signals(&x->signal_fd, e) < 0 || open_sandbox(x, e) < 0 ||
	    streams_open(&x->streams, STREAMS_TTY_ON, STREAMS_CAN_LEAVE, e) < 0 ||
	    find_terminal(x, id, e) < 0 || await_terminal(x, e) < 0)
		return -1;
	tty_copy_size(STDIN_FILENO, x->master_fd);
	streams_started(&x->streams, x->master_fd);
	if (wait_for_end(x, &outcome, e) < 0)
		return -1;
	*ret_has_left = outcome.was_left || (!outcome.has_status && x->control_fd < 0);
	if (!*ret_has_left)
		finish(x, &outcome, started_us, ret);
	return 0;
}

int execute_attach(const struct execute_options *o, uint32_t id, struct run_result *ret,
		   bool *ret_has_left, struct err *e)
{
	CLEANUP(execution_done) struct execution x;
	int r;

	*ret = (struct run_result){ 0 };
	execution_init(&x, o);
	r = run_at_terminal(&x, id, ret, ret_has_left, e);
	note(&x, AUDITLINE_ATTACH, NULL, r < 0 ? e : NULL);
	return r;
}
