/*
 * serve - pid 1 of a named sandbox; see serve.h.
 *
 * Theory of operation. One poll loop over orders, requests for connections to the inside
 * (base/dialin), signals (SIGCHLD), the lifeline, and the output of detached commands. A command is
 * a task: its process, the socket to report its end to, and, when detached, its pipes or terminal
 * and its log. No behaviour of a command can block this process.
 *
 * Landlock comes in two parts here. init applies the scopes (signals, abstract sockets) to itself
 * and so to all commands together: they may signal each other. Each command applies its own file
 * rules, because they name its streams.
 *
 * init also installs the sandbox's system call filter: building a filter takes the kernel longer
 * than all other steps of starting a command, and this way commands inherit it. A command that
 * needs another filter installs that one in addition.
 *
 * Trusted input: orders, which the supervisor has checked. Hostile: the output of commands, which
 * is copied but never parsed; the processes themselves, which share nothing with this one.
 */
#include "sandbox/serve.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/closeothers.h"
#include "base/dialin.h"
#include "base/fdpass.h"
#include "base/frame.h"
#include "base/mem.h"
#include "base/signals.h"
#include "base/wall.h"
#include "policy/policy.h"
#include "sandbox/command.h"
#include "sandbox/landlock.h"
#include "host/limitfiles.h"
#include "protocol/order.h"
#include "host/privs.h"
#include "protocol/report.h"
#include "sandbox/seccomp.h"
#include "sandbox/stopall.h"
#include "protocol/tasklog.h"
#include "host/tty.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SERVE_FAILED 125
#define TASK_OUTPUTS 2
#define TELL_TRIES 100u /* retries while the kernel has no memory for a message */
#define TELL_PAUSE_NS 1000000l
#define OUTPUT_TURNS 4u /* reads from one output before other events are handled */
#define REAP_TURNS 256u /* ended processes reaped before orders and the lifeline are handled */

struct task {
	uint32_t id;
	pid_t pid;     /* 0: ended, only its output is still open */
	int report_fd; /* -1: no client waits */
	int master_fd; /* of a detached command's terminal; else -1 */
	int input_fd;  /* the other end of its stdin (ORDER_STDIN); else -1 */
	bool is_detached, is_attached;
	int output_fd[TASK_OUTPUTS]; /* read ends of stdout and stderr, -1 once ended */
	struct tasklog log;
	uint64_t deadline_ms; /* 0: none; when it passes it is moved to the end of the grace time */
	bool has_timed_out;
};

struct server {
	const struct init_options *options;
	struct command template;
	int orders_fd, dial_fd, lifeline_fd, report_fd, signal_fd, pts_fd, null_fd;
	struct watch_limits watch;
	struct limitfiles limits;
	struct task *tasks;
	unsigned count, capacity;
	bool has_ended_children; /* reap() has more children to reap */
	bool has_had_commands;
};

/* ---- messages to the supervisor ---- */

/* A full queue means that the supervisor does not read; treat it as dead and exit. */
static void tell(const struct server *s, uint32_t kind, const void *body, size_t len)
{
	const struct timespec pause = { .tv_nsec = TELL_PAUSE_NS };
	int r = frame_send(s->orders_fd, kind, body, len, NULL, 0);

	for (unsigned i = 0; i < TELL_TRIES && r != -EAGAIN && frame_may_pass(r); i++) {
		(void)nanosleep(&pause, NULL);
		r = frame_send(s->orders_fd, kind, body, len, NULL, 0);
	}
	if (r < 0)
		_exit(EXIT_SERVE_FAILED);
}

static void tell_of_task(const struct server *s, uint32_t kind, const struct task *t, int status)
{
	const struct order_event event = {
		.id = t->id,
		.pid = t->pid,
		.wait_status = status,
		.has_timed_out = t->has_timed_out,
	};

	tell(s, kind, &event, sizeof(event));
}

/* ---- tasks ---- */

static void task_close(struct task *t)
{
	cleanup_closep(&t->report_fd);
	cleanup_closep(&t->master_fd);
	cleanup_closep(&t->input_fd);
	for (int i = 0; i < TASK_OUTPUTS; i++)
		cleanup_closep(&t->output_fd[i]);
	tasklog_done(&t->log);
}

static struct task *find_task(const struct server *s, uint32_t id)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->tasks[i].id == id && s->tasks[i].pid > 0)
			return &s->tasks[i];
	return NULL;
}

static struct task *add_task(struct server *s)
{
	struct task *t;

	if (s->count == s->capacity) {
		s->capacity = s->capacity ? s->capacity * 2 : 4;
		s->tasks = mem_grow(s->tasks, s->capacity, sizeof(*s->tasks));
	}
	t = &s->tasks[s->count++];
	*t = (struct task){ .report_fd = -1,
			    .master_fd = -1,
			    .input_fd = -1,
			    .output_fd = { -1, -1 },
			    .log = { .fds = { -1, -1 } } };
	return t;
}

static void drop_task(struct server *s, struct task *t)
{
	task_close(t);
	*t = s->tasks[--s->count];
}

static bool is_over(const struct task *t)
{
	return t->pid == 0 && t->output_fd[0] < 0 && t->output_fd[1] < 0;
}

/* ---- starting ---- */

/* Assigns an order's descriptors; takes them from the frame. */
static int take_streams(struct task *t, struct command *c, struct frame *f, struct err *e)
{
	unsigned flags = t->is_detached ? ORDER_DETACHED : 0;
	unsigned needed = flags & ORDER_DETACHED ? 4 : c->has_tty ? 1 : 4;

	if (f->fd_count != needed)
		return err_set(e, ERR_INVALID, "a command with %u descriptors", f->fd_count);
	t->report_fd = take_fd(&f->fds[0]);
	if (t->is_detached)
		tasklog_init(&t->log, take_fd(&f->fds[2]), take_fd(&f->fds[3]));
	else
		for (int stream = 0; !c->has_tty && stream < 3; stream++)
			c->stdio_fd[stream] = f->fds[stream + 1]; /* closed with the frame */
	return 0;
}

/* The command's ends of pipes or terminal; we close them once it has started. */
struct ends {
	int fds[3];
};

static void ends_done(struct ends *x)
{
	for (int i = 0; i < 3; i++)
		cleanup_closep(&x->fds[i]);
}

static int open_terminal(const struct server *s, struct task *t, const struct order_command *order,
			 struct command *c, struct ends *ends, struct err *e)
{
	cleanup_fd int master_fd = -1;
	int r = 0;

	if (tty_open_pair(s->pts_fd, &master_fd, &ends->fds[0], e) < 0)
		return -1;
	if (order->rows && order->columns) {
		const struct winsize size = { .ws_row = order->rows, .ws_col = order->columns };

		(void)ioctl(master_fd, TIOCSWINSZ, &size);
	}
	for (int stream = 0; stream < 3; stream++)
		c->stdio_fd[stream] = ends->fds[0];
	if (!t->is_detached) {
		r = fdpass_send(t->report_fd, &master_fd, 1);
		if (r < 0)
			return err_sys(e, -r, "hand the terminal out");
		return 0;
	}
	(void)fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
	t->output_fd[0] = fcntl(master_fd, F_DUPFD_CLOEXEC, 0);
	t->master_fd = take_fd(&master_fd);
	return 0;
}

static int open_input(struct task *t, struct command *c, struct ends *ends, struct err *e)
{
	int pipe_ends[2];

	if (pipe2(pipe_ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe for a command's input");
	t->input_fd = pipe_ends[1];
	c->stdio_fd[0] = ends->fds[2] = pipe_ends[0];
	return 0;
}

static int open_pipes(const struct order_command *order, const struct frame *f, struct task *t,
		      struct command *c, struct ends *ends, struct err *e)
{
	for (int i = 0; i < TASK_OUTPUTS; i++) {
		int pipe_ends[2];

		if (pipe2(pipe_ends, O_CLOEXEC) < 0)
			return err_sys(e, errno, "create a pipe for a command's output");
		t->output_fd[i] = pipe_ends[0];
		ends->fds[i] = pipe_ends[1];
		(void)fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
		c->stdio_fd[i + 1] = pipe_ends[1];
	}
	c->stdio_fd[0] = f->fds[1];
	return order->flags & ORDER_STDIN ? open_input(t, c, ends, e) : 0;
}

static int open_streams(const struct server *s, struct task *t, const struct order_command *order,
			struct frame *f, struct command *c, struct ends *ends, struct err *e)
{
	if (take_streams(t, c, f, e) < 0)
		return -1;
	if (c->has_tty)
		return open_terminal(s, t, order, c, ends, e);
	return t->is_detached ? open_pipes(order, f, t, c, ends, e) : 0;
}

static void fill_command(const struct server *s, const struct order_command *order,
			 const struct order_texts *texts, struct command *ret)
{
	*ret = s->template;
	ret->argv = texts->argv;
	ret->envp = texts->envp;
	ret->workdir = texts->workdir;
	ret->uid = order->uid;
	ret->gid = order->gid;
	ret->groups = order->groups;
	ret->group_count = order->group_count;
	ret->has_capabilities = order->flags & ORDER_CAPABILITIES;
	ret->has_tty = order->flags & ORDER_TTY;
	ret->seccomp_variant = order->seccomp_variant;
}

/*
 * The first command is vforked, as in sandbox/init. Later ones are forked: root inside could stop
 * the new process before its exec, which would block us in vfork().
 */
static int execute(struct server *s, const struct command *c, int report_fd, pid_t *ret_pid,
		   struct err *e)
{
	bool is_alone = !s->has_had_commands;
	pid_t pid;

	s->has_had_commands = true;
	pid = is_alone ? vfork() : fork();
	if (pid == 0)
		command_exec(c, report_fd);
	if (pid < 0)
		return err_sys(e, errno, "start the command");
	*ret_pid = pid;
	return 0;
}

static int start_task(struct server *s, struct frame *f, struct task *t, struct err *e)
{
	CLEANUP(order_texts_done) struct order_texts texts = { 0 };
	CLEANUP(ends_done) struct ends ends = { { -1, -1, -1 } };
	struct order_command order;
	struct command c;

	if (order_parse_command(f->bytes, f->len, &order, &texts, e) < 0)
		return -1;
	t->id = order.id;
	t->is_detached = order.flags & ORDER_DETACHED;
	t->is_attached =
		order.flags & ORDER_AWAITED && order.flags & ORDER_TTY; /* output waits for it */
	fill_command(s, &order, &texts, &c);
	if (open_streams(s, t, &order, f, &c, &ends, e) < 0)
		return -1;
	if (execute(s, &c, t->report_fd, &t->pid, e) < 0)
		return -1;
	if (order.timeout_ms)
		t->deadline_ms = clock_now_ms() + order.timeout_ms;
	/* exec closes the command's copy: end of file without a report means that it is running */
	if (t->is_detached)
		cleanup_closep(&t->report_fd);
	return 0;
}

static void on_start(struct server *s, struct frame *f)
{
	struct task *t = add_task(s);
	struct err e = { 0 };

	if (start_task(s, f, t, &e) < 0) {
		struct task failed = *t;

		if (failed.report_fd < 0 && f->fd_count > 0)
			failed.report_fd = take_fd(&f->fds[0]);
		report_failed(failed.report_fd, &e);
		tell_of_task(s, EVENT_ENDED, t, EXIT_SERVE_FAILED << 8);
		t->report_fd = failed.report_fd;
		drop_task(s, t);
		return;
	}
	tell_of_task(s, EVENT_STARTED, t, 0);
}

/* ---- other orders ---- */

/* Terminal stop signals become SIGSTOP: no shell in the command's session would handle them. */
static int translate(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU ? SIGSTOP : number;
}

static void signal_task(const struct task *t, int number, bool is_for_group)
{
	if (!is_for_group || kill(-t->pid, translate(number)) < 0)
		(void)kill(t->pid, translate(number));
}

static void on_signal_order(struct server *s, const struct frame *f)
{
	struct order_signal order;
	const struct task *t;

	if (f->len != sizeof(order))
		return;
	memcpy(&order, f->bytes, sizeof(order));
	if (order.id == ORDER_ALL) {
		(void)kill(-1, order.number);
		return;
	}
	t = find_task(s, order.id);
	if (t)
		signal_task(t, order.number, order.is_for_group);
}

static void on_attach(struct server *s, struct frame *f)
{
	struct order_signal order;
	struct err e = { 0 };
	struct task *t;

	if (f->len != sizeof(order) || f->fd_count != 1)
		return;
	memcpy(&order, f->bytes, sizeof(order));
	t = find_task(s, order.id);
	if (!t || t->master_fd < 0) {
		(void)err_set(&e, ERR_NOT_FOUND, "that command has ended, or has no terminal");
		report_failed(f->fds[0], &e);
		return;
	}
	cleanup_closep(&t->report_fd);
	t->report_fd = take_fd(&f->fds[0]);
	t->is_attached = fdpass_send(t->report_fd, &t->master_fd, 1) == 0;
}

static void on_detach(struct server *s, const struct frame *f)
{
	struct order_signal order;
	struct task *t;

	if (f->len != sizeof(order))
		return;
	memcpy(&order, f->bytes, sizeof(order));
	t = find_task(s, order.id);
	if (!t || t->master_fd < 0)
		return;
	cleanup_closep(&t->report_fd);
	t->is_attached = false;
}

/* Sends its input back on the descriptor that came with the order. */
static void on_input(const struct server *s, struct frame *f)
{
	struct order_signal order;
	struct err e = { 0 };
	const struct task *t;
	int fd;

	if (f->len != sizeof(order) || f->fd_count != 1)
		return;
	memcpy(&order, f->bytes, sizeof(order));
	t = find_task(s, order.id);
	fd = t ? t->master_fd >= 0 ? t->master_fd : t->input_fd : -1;
	if (fd >= 0) {
		(void)fdpass_send(f->fds[0], &fd, 1);
		return;
	}
	(void)err_set(&e, ERR_NOT_FOUND, "that command has ended, or takes no input");
	report_failed(f->fds[0], &e);
}

static void on_end_input(const struct server *s, const struct frame *f)
{
	struct order_signal order;
	struct task *t;

	if (f->len != sizeof(order))
		return;
	memcpy(&order, f->bytes, sizeof(order));
	t = find_task(s, order.id);
	if (t)
		cleanup_closep(&t->input_fd);
}

static void on_limits(struct server *s, const struct frame *f)
{
	struct order_limits limits;

	if (f->len != sizeof(limits))
		return;
	memcpy(&limits, f->bytes, sizeof(limits));
	s->watch.memory_bytes = limits.memory_bytes;
	s->watch.cpu_ms = limits.cpu_ms;
	s->watch.pids_count = limits.pids_count;
	limitfiles_rewrite(&s->limits, &limits.shown);
}

static void on_usage(const struct server *s)
{
	struct order_usage usage;

	watch_measure(&s->watch, &usage.memory_bytes, &usage.cpu_us, &usage.pids_count);
	tell(s, EVENT_USAGE, &usage, sizeof(usage));
}

static void on_freeze(struct server *s, const struct frame *f)
{
	struct order_freeze body;
	struct order_frozen frozen;

	if (f->len != sizeof(body))
		return;
	memcpy(&body, f->bytes, sizeof(body));
	frozen = (struct order_frozen){ body.number, stopall_begin() };
	tell(s, EVENT_FROZEN, &frozen, sizeof(frozen));
}

static void on_order(struct server *s, struct frame *f)
{
	switch (f->kind) {
	case ORDER_START:
		on_start(s, f);
		break;
	case ORDER_SIGNAL:
		on_signal_order(s, f);
		break;
	case ORDER_ATTACH:
		on_attach(s, f);
		break;
	case ORDER_DETACH:
		on_detach(s, f);
		break;
	case ORDER_INPUT:
		on_input(s, f);
		break;
	case ORDER_END_INPUT:
		on_end_input(s, f);
		break;
	case ORDER_LIMITS:
		on_limits(s, f);
		break;
	case ORDER_USAGE:
		on_usage(s);
		break;
	case ORDER_FREEZE:
		on_freeze(s, f);
		break;
	case ORDER_THAW:
		stopall_end();
		break;
	}
}

static void on_orders(struct server *s)
{
	struct frame f;
	int r;

	while ((r = frame_receive(s->orders_fd, FRAME_NO_WAIT, &f)) == 1) {
		on_order(s, &f);
		frame_done(&f);
	}
	if (!frame_may_pass(r))
		_exit(EXIT_SERVE_FAILED); /* the supervisor is gone: end the sandbox */
}

/* ---- output, ends and deadlines ---- */

static void on_output(struct task *t, int which)
{
	char piece[TASKLOG_CHUNK_MAX_BYTES];

	for (unsigned turn = 0; turn < OUTPUT_TURNS; turn++) {
		ssize_t n = read(t->output_fd[which], piece, sizeof(piece));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) { /* a terminal whose slave is closed gives EIO */
			cleanup_closep(&t->output_fd[which]);
			return;
		}
		tasklog_write(&t->log, which ? TASKLOG_STDERR : TASKLOG_STDOUT, piece, (size_t)n);
	}
}

/* Orphans become our children, so if we have no child there is no other process. */
static bool is_alone(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

static void end_task(struct server *s, struct task *t, int status)
{
	const struct tasklog_end end = { status, t->has_timed_out };

	for (int i = 0; i < TASK_OUTPUTS && !t->is_attached; i++)
		if (t->output_fd[i] >= 0)
			on_output(t, i);
	if (t->master_fd >= 0) /* a terminal that no process has open produces no more output */
		cleanup_closep(&t->output_fd[0]);
	tasklog_write(&t->log, TASKLOG_END, &end, sizeof(end));
	if (t->report_fd >= 0)
		report_ended(t->report_fd, status,
			     (t->has_timed_out ? REPORT_TIMED_OUT : 0) |
				     (is_alone() ? REPORT_ALONE : 0));
	cleanup_closep(&t->report_fd);
	tell_of_task(s, EVENT_ENDED, t, status);
	t->pid = 0;
}

static void reap(struct server *s)
{
	int status;
	pid_t pid = 0;

	for (unsigned turn = 0; turn < REAP_TURNS; turn++) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			break;
		for (unsigned i = 0; i < s->count; i++) {
			if (s->tasks[i].pid != pid)
				continue;
			end_task(s, &s->tasks[i], status);
			break;
		}
	}
	s->has_ended_children =
		pid > 0 || (pid < 0 && errno == EINTR); /* the rest in the next iteration */
}

static void check_deadlines(struct server *s)
{
	uint64_t now_ms = 0;

	for (unsigned i = 0; i < s->count; i++) {
		struct task *t = &s->tasks[i];

		if (t->pid == 0 || t->deadline_ms == 0)
			continue;
		now_ms = now_ms ? now_ms : clock_now_ms();
		if (now_ms < t->deadline_ms)
			continue;
		signal_task(t, t->has_timed_out ? SIGKILL : SIGTERM, true);
		signal_task(t, SIGCONT, true);
		t->deadline_ms = t->has_timed_out ? 0 : now_ms + SERVE_GRACE_MS;
		t->has_timed_out = true;
	}
}

static int wait_ms(const struct server *s)
{
	int longest = s->has_ended_children ? 0 : watch_interval_ms(&s->watch);
	uint64_t now_ms = clock_now_ms();

	for (unsigned i = 0; i < s->count; i++) {
		const struct task *t = &s->tasks[i];
		uint64_t left;

		if (t->pid == 0 || t->deadline_ms == 0)
			continue;
		left = t->deadline_ms > now_ms ? t->deadline_ms - now_ms : 0;
		if (left > INT_MAX)
			left = INT_MAX;
		if (longest < 0 || left < (uint64_t)longest)
			longest = (int)left;
	}
	return longest;
}

static void check_limits(const struct server *s)
{
	enum report_limit reached = watch_check(&s->watch);

	if (reached == REPORT_LIMIT_NONE)
		return;
	report_limit_reached(s->report_fd, reached);
	_exit(EXIT_SERVE_FAILED);
}

static void drop_ended(struct server *s)
{
	for (unsigned i = s->count; i-- > 0;)
		if (is_over(&s->tasks[i]))
			drop_task(s, &s->tasks[i]);
}

/* ---- the loop ---- */

enum { SLOT_ORDERS, SLOT_DIALS, SLOT_SIGNAL, SLOT_LIFELINE, SLOT_FIRST_OUTPUT };

static void turn(struct server *s, struct pollfd *polled)
{
	unsigned used = SLOT_FIRST_OUTPUT;
	struct signalfd_siginfo info;
	unsigned task_count = s->count;

	polled[SLOT_ORDERS] = (struct pollfd){ .fd = s->orders_fd, .events = POLLIN };
	polled[SLOT_DIALS] = (struct pollfd){ .fd = s->dial_fd, .events = POLLIN };
	polled[SLOT_SIGNAL] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	polled[SLOT_LIFELINE] = (struct pollfd){ .fd = s->lifeline_fd, .events = POLLIN };
	for (unsigned i = 0; i < task_count; i++)
		for (int which = 0; which < TASK_OUTPUTS; which++)
			polled[used++] = (struct pollfd){
				.fd = s->tasks[i].is_attached ? -1 : s->tasks[i].output_fd[which],
				.events = POLLIN,
			};
	if (poll(polled, used, wait_ms(s)) < 0 && errno != EINTR)
		_exit(EXIT_SERVE_FAILED);
	if (polled[SLOT_LIFELINE].revents && wall_stands(WALL_LIFELINE))
		_exit(EXIT_SERVE_FAILED);
	for (unsigned i = 0; i < task_count * TASK_OUTPUTS; i++)
		if (polled[SLOT_FIRST_OUTPUT + i].revents)
			on_output(&s->tasks[i / TASK_OUTPUTS], (int)(i % TASK_OUTPUTS));
	/* Read once: one SIGCHLD at most is pending, and senders of more must not keep us here. */
	if (polled[SLOT_SIGNAL].revents && read(s->signal_fd, &info, sizeof(info)) > 0)
		s->has_ended_children = true;
	if (s->has_ended_children)
		reap(s);
	if (polled[SLOT_ORDERS].revents)
		on_orders(s);
	if (polled[SLOT_DIALS].revents && !dialin_answer_all(s->dial_fd))
		cleanup_closep(&s->dial_fd);
	check_deadlines(s);
	check_limits(s);
	drop_ended(s);
}

#define KEPT_FIRST_FD 16 /* above the low numbers that a start uses; ulimit -n may be 64 */
#define KEPT_MAX (7 + POLICY_TMPFS_MAX + LIMITFILES_COUNT)

static int keep_only(struct server *s, struct err *e)
{
	int lock_fd = s->options->lock_fd; /* keeps our range of ids locked while we live */
	int *wanted[KEPT_MAX] = { &s->orders_fd, &s->lifeline_fd, &s->report_fd, &s->dial_fd,
				  &s->pts_fd,    &s->null_fd,     &lock_fd };
	int kept[KEPT_MAX];
	unsigned wanted_count = 7, count = 0;

	for (unsigned i = 0; i < s->watch.tmpfs_count; i++)
		wanted[wanted_count++] = &s->watch.tmpfs_fd[i];
	for (unsigned i = 0; i < LIMITFILES_COUNT; i++)
		if (s->limits.fd[i] >= 0)
			wanted[wanted_count++] = &s->limits.fd[i];
	for (unsigned i = 0; i < wanted_count; i++) {
		if (*wanted[i] < 0 && (wanted[i] == &lock_fd || wanted[i] == &s->dial_fd))
			continue;
		*wanted[i] = fcntl(*wanted[i], F_DUPFD_CLOEXEC, KEPT_FIRST_FD);
		if (*wanted[i] < 0)
			return err_sys(e, errno, "keep init's descriptors");
		kept[count++] = *wanted[i];
	}
	if (closeothers_but(kept, count) < 0)
		return err_sys(e, errno, "close init's descriptors");
	/* occupy 0, 1 and 2, so that no descriptor for a command lands there by chance */
	for (int stream = 0; stream < 3; stream++)
		if (dup3(s->null_fd, stream, O_CLOEXEC) < 0)
			return err_sys(e, errno, "fill init's streams");
	return 0;
}

/* Opens everything before the first command can change where a path leads. */
static int prepare(struct server *s, struct err *e)
{
	sigset_t children;

	/*
	 * Only SIGCHLD is blocked: the kernel discards signals to a pid 1 without handlers, but
	 * queues blocked ones, charged to the caller's account.
	 */
	if (!s->options->has_waited)
		signals_reset();
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &children, NULL) < 0)
		return err_sys(e, errno, "block signals in init");
	s->pts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->pts_fd < 0 || s->null_fd < 0)
		return err_sys(e, errno, "open /dev");
	watch_open(&s->watch);
	if (keep_only(s, e) < 0)
		return -1;
	s->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_sys(e, errno, "wait for signals in init");
	if (privs_drop_init(PRIVS_SERVES | (s->watch.memory_bytes ? PRIVS_WATCHES : 0) |
				    (s->options->has_waited ? PRIVS_BOUNDED : 0),
			    e) < 0)
		return -1;
	if (s->template.has_landlock && landlock_restrict(NULL, LANDLOCK_SCOPES, e) < 0)
		return -1;
	if (privs_die_with_parent(e) < 0)
		return -1;
	s->template.installed_filter = (int)s->template.seccomp_variant;
	return s->options->has_waited ? seccomp_end_mounting(s->template.seccomp_variant, e)
				      : seccomp_install(s->template.seccomp_variant, e);
}

void serve_run(const struct init_options *o)
{
	struct server s = {
		.options = o,
		.template = *o->command,
		.orders_fd = o->orders_fd,
		.dial_fd = o->dial_fd,
		.lifeline_fd = o->lifeline_fd,
		.report_fd = o->report_fd,
		.signal_fd = -1,
		.pts_fd = -1,
		.null_fd = -1,
		.watch = o->watch,
		.limits = *o->limits,
	};
	struct pollfd *polled = NULL;
	unsigned capacity = 0;
	struct err e = { 0 };

	if (prepare(&s, &e) < 0) {
		report_failed(s.report_fd, &e);
		_exit(EXIT_SERVE_FAILED);
	}
	report_started(s.report_fd);
	for (;;) {
		if (SLOT_FIRST_OUTPUT + s.count * TASK_OUTPUTS > capacity) {
			capacity = SLOT_FIRST_OUTPUT + s.count * TASK_OUTPUTS * 2;
			polled = mem_grow(polled, capacity, sizeof(*polled));
		}
		assert(polled); /* there are slots even without a task */
		turn(&s, polled);
	}
}
