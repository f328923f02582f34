/*
 * execution - runs one command in a running sandbox; see execution.h.
 *
 * Theory of operation. We send one message to the process that controls the sandbox, with a socket
 * on which init reports: first the terminal's master if there is one, then why the command could
 * not start, or how it ended. The connection stays open as long as we wait: it carries signals and
 * refusals, and closing it ends the command.
 */
#include "named/execution.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "named/control.h"
#include "policy/environment.h"
#include "protocol/report.h"
#include "state/ak.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define REFUSAL_MS 1000

void execution_init(struct execution *x, const struct execute_options *o)
{
	*x = (struct execution){
		.options = o,
		.control_fd = -1,
		.report_fd = -1,
		.reporting_fd = -1,
		.master_fd = -1,
		.signal_fd = -1,
	};
	streams_init(&x->streams);
	newnames_init(&x->names);
}

void execution_done(struct execution *x)
{
	streams_done(&x->streams);
	cleanup_closep(&x->control_fd);
	cleanup_closep(&x->report_fd);
	cleanup_closep(&x->reporting_fd);
	cleanup_closep(&x->master_fd);
	cleanup_closep(&x->signal_fd);
	newnames_done(&x->names);
	policy_done(&x->policy);
}

int execution_open_reports(struct execution *x, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "create a socket for reports");
	x->report_fd = ends[0];
	x->reporting_fd = ends[1];
	return 0;
}

/* ---- the command's message ---- */

static void add_terminal(const struct execute_options *o, struct order_command *c)
{
	struct winsize size;

	c->flags |= ORDER_TTY;
	c->rows = o->rows;
	c->columns = o->columns;
	if (o->rows)
		return;
	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	c->rows = size.ws_row;
	c->columns = size.ws_col;
}

/* Started with -l, so that the shell reads its profile files. */
static char *const login_shell[] = { (char *)"sh", (char *)"-c",
				     (char *)"test -x \"$SHELL\" || SHELL=/bin/bash; test -x "
					     "\"$SHELL\" || SHELL=/bin/sh; export "
					     "SHELL; exec \"$SHELL\" -l",
				     NULL };

/* Handles a refusal. A closed connection is no error: the report tells how the command ended. */
static int on_control(void *context, struct err *e)
{
	struct execution *x = context;
	CLEANUP(frame_done) struct frame f = { 0 };
	int r = frame_receive(x->control_fd, FRAME_NO_WAIT, &f);

	if (r == 1 && f.kind == CONTROL_FAILED && f.len == sizeof(*e)) {
		memcpy(e, f.bytes, sizeof(*e));
		err_sanitize(e);
		/* the signal came after the command's end: not a failure of the command */
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	}
	if (r == -EPROTONOSUPPORT)
		return control_explain(x->control_fd, r, e);
	if (r == 0 || (r < 0 && !frame_may_pass(r)))
		cleanup_closep(&x->control_fd);
	return 0;
}

void execution_fill_order(const struct policy *p, unsigned flags, struct order_command *ret)
{
	*ret = (struct order_command){
		.flags = flags | (p->uid == 0 ? ORDER_CAPABILITIES : 0),
		.uid = p->uid,
		.gid = p->gid,
		.group_count = p->group_count,
	};
	memcpy(ret->groups, p->groups, sizeof(ret->groups));
}

void execution_describe(const struct execution *x, unsigned flags, struct order_command *ret)
{
	const struct policy *p = &x->policy;

	execution_fill_order(p, flags, ret);
	ret->timeout_ms = x->options->timeout_ms ? x->options->timeout_ms : p->timeout_ms;
	if (flags & ORDER_TTY)
		add_terminal(x->options, ret);
}

int execution_send(struct execution *x, const struct order_command *c, int fd, uint32_t kind,
		   struct err *e)
{
	const struct execute_options *o = x->options;
	int fds[] = { x->reporting_fd, x->streams.command_fd[0], x->streams.command_fd[1],
		      x->streams.command_fd[2] };
	char *const *argv = o->argv ? o->argv : login_shell;
	const char *term =
		c->flags & ORDER_TTY ? environment_get(o->ak->caller.environ_list, "TERM") : NULL;
	cleanup_buf struct buf body;
	char **environment;
	int r;

	buf_init(&body, FRAME_BODY_MAX_BYTES);
	environment = environment_build(&x->policy, &o->ak->caller, term);
	order_format_command(c, o->workdir ? o->workdir : x->policy.workdir, argv, environment,
			     &body);
	environment_free(environment);
	if (body.is_cut || keyrows_list_count(argv) > ORDER_WORDS_MAX)
		return err_set(e, ERR_LIMIT, "the command is longer than %u bytes",
			       FRAME_BODY_MAX_BYTES);
	r = frame_send(fd, kind, body.bytes, body.len, fds,
		       c->flags & (ORDER_TTY | ORDER_DETACHED) ? 1 : 4);
	cleanup_closep(&x->reporting_fd);
	if (r == -EPIPE && on_control(x, e) < 0)
		return -1;
	if (r < 0)
		return err_sys(e, -r, "hand the command to the supervisor");
	return 0;
}

/* ---- waiting ---- */

static void send_signal(void *context, int number, unsigned flags)
{
	const struct execution *x = context;
	const struct order_signal body = { ORDER_ALL, number, flags & SUPERVISE_TO_GROUP };

	if (x->control_fd >= 0)
		(void)frame_send(x->control_fd, CONTROL_SIGNAL, &body, sizeof(body), NULL, 0);
}

/*
 * The report socket was closed without a report. A supervisor that refuses closes it, and its
 * refusal may arrive a moment later; a supervisor that ended closes both. A warm sandbox (no
 * check_unheard) has no supervisor that could refuse.
 */
static int await_refusal(struct execution *x, struct err *e)
{
	struct pollfd polled = { .fd = x->control_fd, .events = POLLIN };

	if (x->control_fd < 0)
		return 0;
	(void)poll(&polled, 1, x->check_unheard ? REFUSAL_MS : 0);
	return on_control(x, e);
}

/* Receives one message: the terminal's descriptor, or a report of why there is none. */
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
	if (await_refusal(x, e) < 0)
		return -1;
	return err_set(e, ERR_SYSTEM, "the sandbox ended before it gave a terminal");
}

/* Waits for init's message with the terminal or the supervisor's refusal. */
int execution_await_terminal(struct execution *x, struct err *e)
{
	for (;;) {
		struct pollfd polled[] = { { .fd = x->report_fd, .events = POLLIN },
					   { .fd = x->control_fd, .events = POLLIN } };

		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, errno, "wait for a terminal");
		/* check refusals first: a refusal closes the report socket too */
		if (polled[1].revents && on_control(x, e) < 0)
			return -1;
		if (polled[0].revents)
			return receive_master(x, e);
	}
}

int execution_wait(struct execution *x, struct supervise_outcome *ret, struct err *e)
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
		.probe = x->probe,
		/* init enforces the deadline; this one is for an init that hangs */
		.timeout_ms =
			x->options->timeout_ms ? x->options->timeout_ms + CONTROL_ANSWER_MS : 0,
		.lifeline_fd = x->options->lifeline_fd,
	};

	if (supervise_wait(&options, ret, e) < 0)
		return -1;
	/* no report: a refusal, which closes the report socket, or the sandbox ended */
	if (ret->has_status || ret->was_left || ret->limit != REPORT_LIMIT_NONE)
		return 0;
	if (await_refusal(x, e) < 0)
		return -1;
	return x->control_fd < 0 && x->check_unheard ? x->check_unheard(x, e) : 0;
}

void execution_drain(struct execution *x)
{
	cleanup_fd int end_fd = x->streams.pump_count ? supervise_open_end_signals() : -1;

	for (unsigned i = 0; i < x->streams.pump_count; i++)
		pump_drain(&x->streams.pumps[i], end_fd, -1);
}

void execution_take_output(struct execution *x, struct run_result *ret)
{
	for (int i = 0; i < 2; i++) {
		ret->output[i] = x->streams.captured[i];
		buf_init(&x->streams.captured[i], STREAMS_CAPTURE_MAX_BYTES);
	}
}
