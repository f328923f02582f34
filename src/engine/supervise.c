/* supervise - waits for a running sandbox until it ends; see supervise.h. */
#include "engine/supervise.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/gatekeeper.h"
#include "workspace/newnames.h"
#include "engine/streams.h"
#include "engine/turn.h"
#include "host/cgroup.h"
#include "host/tty.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CPU_INTERVAL_MS 50

static const int passed_on[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH,
};

struct loop {
	const struct supervise_options *options;
	struct streams *streams;
	uint64_t deadline_ms; /* 0: none; after it, the end of the grace time */
	uint64_t end_at_ms;   /* after SIGTERM: when to end everything; 0: no SIGTERM yet */
	uint64_t probe_at_ms; /* 0: no probe */
	bool has_hung_up;     /* the caller's terminal is gone, and the command got SIGHUP */
	struct supervise_outcome outcome;
	bool is_over;
	struct turn turn;
};

int supervise_hold_signals(int *ret_signal_fd, struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "hold back signals");
	/* writing without a reader is an error that we handle */
	(void)signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, errno, "wait for signals");
	*ret_signal_fd = fd;
	return 0;
}

int supervise_open_end_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void send_signal(const struct loop *l, int number)
{
	l->options->send_signal(l->options->context, number, 0);
}

static void send_to_group(const struct loop *l, int number)
{
	l->options->send_signal(l->options->context, number, SUPERVISE_TO_GROUP);
}

/* Ctrl-Z: stops the command, restores the terminal, stops itself, and continues on SIGCONT. */
static void stop_and_go_on(struct loop *l)
{
	struct tty_mode *mode = &l->streams->mode;
	bool was_raw = mode->is_raw;

	send_to_group(l, SIGTSTP);
	tty_restore(mode);
	(void)raise(SIGSTOP);
	if (was_raw)
		tty_set_raw(mode, STDIN_FILENO);
	send_to_group(l, SIGCONT);
}

static bool should_end(int number)
{
	return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void on_signal(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->options->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* end even if the command ignores it, so that nobody must use SIGKILL on us */
		if (info.ssi_signo == SIGTERM && l->options->ends_on_term)
			l->end_at_ms =
				l->end_at_ms ? clock_now_ms() : clock_now_ms() + SUPERVISE_TERM_MS;
		if (l->options->probe && should_end((int)info.ssi_signo))
			l->probe_at_ms = clock_now_ms() + SUPERVISE_PROBE_SIGNAL_MS;
		if (info.ssi_signo == SIGTSTP)
			stop_and_go_on(l);
		else if (info.ssi_signo == SIGWINCH && l->streams->has_tty)
			tty_copy_size(STDIN_FILENO, l->options->tty_master_fd);
		else if (info.ssi_code == SI_KERNEL) /* a key of the terminal */
			send_to_group(l, (int)info.ssi_signo);
		else
			send_signal(l, (int)info.ssi_signo);
	}
}

static int on_report(struct loop *l, struct err *e)
{
	struct report report;
	int r = report_read(l->options->report_fd, &report, e);

	if (r < 0)
		return -1;
	l->is_over = true;
	if (r == 0)
		return 0; /* init was killed; the outcome has no status */
	if (report.kind == REPORT_FAILED) {
		*e = report.error;
		return -1;
	}
	l->outcome.limit = report.limit;
	l->outcome.has_status = report.kind == REPORT_ENDED;
	l->outcome.wait_status = report.wait_status;
	l->outcome.has_timed_out |= report.flags & REPORT_TIMED_OUT;
	l->outcome.is_disk_full = report.flags & REPORT_DISK_FULL;
	l->outcome.was_alone = report.flags & REPORT_ALONE;
	return 0;
}

static void on_deadline(struct loop *l)
{
	if (l->outcome.has_timed_out) {
		send_signal(l, SIGKILL);
		l->is_over = true;
		return;
	}
	l->outcome.has_timed_out = true;
	l->deadline_ms = clock_now_ms() + SUPERVISE_GRACE_MS;
	send_to_group(l, SIGTERM);
	send_to_group(l, SIGCONT); /* a stopped process acts on SIGTERM only when it runs again */
}

/* Ends the command at the limit, also if the cpu time can no longer be read. */
static void check_cpu(struct loop *l)
{
	uint64_t used_us = 0;

	if (!l->options->cpu_ms || (cgroup_get_cpu_us(l->options->cgroup, &used_us) &&
				    used_us / 1000 <= l->options->cpu_ms))
		return;
	l->outcome.limit = REPORT_LIMIT_CPU_TIME;
	send_signal(l, SIGKILL);
	l->is_over = true;
}

/* Sends SIGHUP, like a terminal that hangs up. */
static void hang_up_if_lost(struct loop *l)
{
	for (unsigned i = 0; i < l->streams->pump_count && !l->has_hung_up; i++) {
		if (!l->streams->has_tty || !pump_has_lost_reader(&l->streams->pumps[i]))
			continue;
		l->has_hung_up = true;
		send_to_group(l, SIGHUP);
		send_to_group(l, SIGCONT);
	}
}

/* Handles the key that detaches from a terminal. */
static void leave_if_asked(struct loop *l)
{
	for (unsigned i = 0; i < l->streams->pump_count; i++) {
		if (!pump_has_met_stop(&l->streams->pumps[i]))
			continue;
		l->outcome.was_left = true;
		l->is_over = true;
	}
}

/* What this turn waits for. */
struct slots {
	unsigned report, signal, other, lifeline, names, first_pump;
};

static struct slots watch(struct loop *l)
{
	const struct supervise_options *o = l->options;
	struct turn *t = &l->turn;
	uint64_t now_ms = clock_now_ms();
	struct slots s;

	turn_begin(t);
	s.report = turn_watch(t, o->report_fd, POLLIN);
	s.signal = turn_watch(t, o->signal_fd, POLLIN);
	s.other = turn_watch(t, o->on_other ? o->other_fd : -1, POLLIN);
	s.lifeline = turn_watch(t, o->lifeline_fd ? o->lifeline_fd : -1, POLLIN);
	s.names = turn_watch_names(t, o->names);
	s.first_pump = t->count;
	for (unsigned i = 0; i < l->streams->pump_count; i++) {
		const struct pollfd p = pump_poll(&l->streams->pumps[i]);

		(void)turn_watch(t, p.fd, p.events);
	}
	turn_watch_gate(t, o->gatekeeper);
	if (o->cpu_ms)
		turn_wake_in(t, CPU_INTERVAL_MS);
	turn_wake_at(t, l->end_at_ms, now_ms);
	turn_wake_at(t, l->probe_at_ms, now_ms);
	turn_wake_at(t, l->deadline_ms, now_ms);
	return s;
}

static int check_time(struct loop *l, struct err *e)
{
	uint64_t now_ms = clock_now_ms();

	if (l->end_at_ms && now_ms >= l->end_at_ms) {
		send_signal(l, SIGKILL);
		l->is_over = true;
	}
	if (l->probe_at_ms && now_ms >= l->probe_at_ms) {
		l->probe_at_ms = 0;
		if (l->options->probe(l->options->context, e) < 0)
			return -1;
	}
	if (l->deadline_ms && clock_now_ms() >= l->deadline_ms)
		on_deadline(l);
	check_cpu(l);
	return 0;
}

static int go_round(struct loop *l, struct err *e)
{
	const struct supervise_options *o = l->options;
	const struct slots s = watch(l);
	int r = turn_wait(&l->turn, e);

	if (r <= 0)
		return r;
	for (unsigned i = 0; i < l->streams->pump_count; i++)
		if (turn_is_ready(&l->turn, s.first_pump + i))
			pump_on_ready(&l->streams->pumps[i]);
	hang_up_if_lost(l);
	if (o->names && (turn_is_ready(&l->turn, s.names) || newnames_wait_ms(o->names) >= 0) &&
	    newnames_look(o->names, e) < 0)
		return -1;
	if (turn_is_ready(&l->turn, s.signal))
		on_signal(l);
	if (turn_is_ready(&l->turn, s.report))
		return on_report(l, e);
	if (turn_is_ready(&l->turn, s.lifeline))
		return err_set(e, ERR_BUSY, "the call was cancelled");
	/* without on_other the descriptor is -1: no events; NOLINTNEXTLINE(*CallAndMessage) */
	if (turn_is_ready(&l->turn, s.other) && o->on_other(o->context, e) < 0)
		return -1;
	leave_if_asked(l);
	return check_time(l, e);
}

static void loop_done(struct loop *l)
{
	turn_done(&l->turn);
}

int supervise_wait(const struct supervise_options *o, struct supervise_outcome *ret, struct err *e)
{
	CLEANUP(loop_done) struct loop l = { .options = o, .streams = o->streams };

	turn_init(&l.turn);
	if (o->timeout_ms)
		l.deadline_ms = clock_now_ms() + o->timeout_ms;
	if (o->probe)
		l.probe_at_ms = clock_now_ms() + SUPERVISE_PROBE_FIRST_MS;
	while (!l.is_over)
		if (go_round(&l, e) < 0)
			return -1;
	*ret = l.outcome;
	return 0;
}
