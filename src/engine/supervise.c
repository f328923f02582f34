/* supervise - waits for a running sandbox until it ends; see supervise.h. */
#include "engine/supervise.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/gatekeeper.h"
#include "workspace/newnames.h"
#include "engine/streams.h"
#include "host/cgroup.h"
#include "host/tty.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CPU_INTERVAL_MS 50

static const int passed_on[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH,
};

enum {
	SLOT_REPORT,
	SLOT_SIGNAL,
	SLOT_CONTROL,
	SLOT_LIFELINE,
	SLOT_NAMES,
	SLOT_FIRST_PUMP,
	SLOT_COUNT = SLOT_FIRST_PUMP + STREAMS_PUMPS_MAX + GATEKEEPER_POLL_MAX
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

/* The shorter of two waits; -1 means no limit. */
static int shorter(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_ms(const struct loop *l)
{
	uint64_t now = clock_now_ms();
	const struct gatekeeper *gatekeeper = l->options->gatekeeper;
	const struct newnames *names = l->options->names;
	int longest = shorter(l->options->cpu_ms ? CPU_INTERVAL_MS : -1,
			      gatekeeper ? gatekeeper_wait_ms(gatekeeper) : -1);

	longest = shorter(longest, names ? newnames_wait_ms(names) : -1);
	if (l->end_at_ms)
		longest = shorter(longest, l->end_at_ms > now ? (int)(l->end_at_ms - now) : 0);
	if (l->probe_at_ms)
		longest = shorter(longest, l->probe_at_ms > now ? (int)(l->probe_at_ms - now) : 0);

	if (l->deadline_ms == 0)
		return longest;
	if (l->deadline_ms <= now)
		return 0;
	if (longest < 0 || l->deadline_ms - now < (uint64_t)longest)
		return l->deadline_ms - now > INT_MAX ? INT_MAX : (int)(l->deadline_ms - now);
	return longest;
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

static int turn(struct loop *l, struct err *e)
{
	struct pollfd polled[SLOT_COUNT] = {
		[SLOT_REPORT] = { .fd = l->options->report_fd, .events = POLLIN },
		[SLOT_SIGNAL] = { .fd = l->options->signal_fd, .events = POLLIN },
		[SLOT_CONTROL] = { .fd = l->options->on_other ? l->options->other_fd : -1,
				   .events = POLLIN },
		[SLOT_LIFELINE] = { .fd = l->options->lifeline_fd ? l->options->lifeline_fd : -1,
				    .events = POLLIN },
		[SLOT_NAMES] = { .fd = l->options->names ? newnames_poll_fd(l->options->names) : -1,
				 .events = POLLIN },
	};
	unsigned pumps = l->streams->pump_count, gates = 0;

	for (unsigned i = 0; i < pumps; i++)
		polled[SLOT_FIRST_PUMP + i] = pump_poll(&l->streams->pumps[i]);
	if (l->options->gatekeeper)
		gates = gatekeeper_poll(l->options->gatekeeper, polled + SLOT_FIRST_PUMP + pumps);
	if (poll(polled, SLOT_FIRST_PUMP + pumps + gates, wait_ms(l)) < 0)
		return errno == EINTR ? 0 : err_sys(e, errno, "wait for the sandbox");
	for (unsigned i = 0; i < gates; i++) {
		if (!polled[SLOT_FIRST_PUMP + pumps + i].revents)
			continue;
		gatekeeper_on_ready(l->options->gatekeeper);
		break;
	}
	for (unsigned i = 0; i < pumps; i++)
		if (polled[SLOT_FIRST_PUMP + i].revents)
			pump_on_ready(&l->streams->pumps[i]);
	hang_up_if_lost(l);
	if (l->options->names &&
	    (polled[SLOT_NAMES].revents || newnames_wait_ms(l->options->names) >= 0) &&
	    newnames_look(l->options->names, e) < 0)
		return -1;
	if (polled[SLOT_SIGNAL].revents)
		on_signal(l);
	if (polled[SLOT_REPORT].revents)
		return on_report(l, e);
	if (polled[SLOT_LIFELINE].revents)
		return err_set(e, ERR_BUSY, "the call was cancelled");
	/* without on_other the descriptor is -1: no events; NOLINTNEXTLINE(*CallAndMessage) */
	if (polled[SLOT_CONTROL].revents && l->options->on_other(l->options->context, e) < 0)
		return -1;
	leave_if_asked(l);
	if (l->end_at_ms && clock_now_ms() >= l->end_at_ms) {
		send_signal(l, SIGKILL);
		l->is_over = true;
	}
	if (l->probe_at_ms && clock_now_ms() >= l->probe_at_ms) {
		l->probe_at_ms = 0;
		if (l->options->probe(l->options->context, e) < 0)
			return -1;
	}
	if (l->deadline_ms && clock_now_ms() >= l->deadline_ms)
		on_deadline(l);
	check_cpu(l);
	return 0;
}

int supervise_wait(const struct supervise_options *o, struct supervise_outcome *ret, struct err *e)
{
	struct loop l = { .options = o, .streams = o->streams };

	if (o->timeout_ms)
		l.deadline_ms = clock_now_ms() + o->timeout_ms;
	if (o->probe)
		l.probe_at_ms = clock_now_ms() + SUPERVISE_PROBE_FIRST_MS;
	while (!l.is_over)
		if (turn(&l, e) < 0)
			return -1;
	*ret = l.outcome;
	return 0;
}
