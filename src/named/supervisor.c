/*
 * supervisor - the supervisor of a named sandbox; see supervisor.h.
 *
 * Theory of operation. supervisor_start() forks; the child leaves the session, closes inherited
 * descriptors, builds the sandbox and reports it through a pipe. From then on it is one poll loop
 * over init's events, the control socket and its clients, the gate's sockets and the deadlines. A
 * client is a connection; an attached command that it started ends with it (supervisorrequests
 * answers requests). init does everything that can block: no request makes this process wait for
 * another. A command that arrives while the sandbox is copied is held until the copy is done.
 * take_back() handles every end: it thaws a frozen sandbox and has a limit for every wait.
 *
 * Hostile input: messages of init, in case it is taken over from inside: sizes and ids are checked.
 */
#include "named/supervisor.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/closeothers.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "base/title.h"
#include "state/audit.h"
#include "named/control.h"
#include "engine/images.h"
#include "named/supervisorstate.h"
#include "named/supervisorrequests.h"
#include "named/supervisorsleep.h"
#include "named/portholder.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "named/namedfile.h"
#include "named/rootplan.h"
#include "engine/session.h"
#include "engine/turn.h"
#include "protocol/order.h"
#include "protocol/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_LOOK_MS 20 /* interval for checking whether all processes have ended */
#define CPU_INTERVAL_MS 200
#define DIRECTORY_LOOK_MS 2000u
#define EXIT_FAILED 125

/* ---- clients ---- */

/* Closes a client: ends its freeze, detaches its terminal or ends its attached command. */
static void drop_client(struct supervisorstate *k, unsigned index)
{
	struct supervisorstate_client gone = k->clients[index];
	struct task *t = gone.task_id ? tasktable_find(&k->tasks, gone.task_id) : NULL;
	struct err ignored;

	k->clients[index] = k->clients[--k->client_count];
	(void)close(gone.fd);
	frame_done(&gone.held);
	if (gone.forward_number)
		gatekeeper_unpublish(&k->session.gatekeeper, gone.forward_number);
	if (gone.is_freezing)
		(void)!supervisorstate_thaw(k, &ignored);
	if (!t || !tasktable_is_alive(t))
		return;
	if (gone.is_at_terminal) {
		const struct order_signal body = { .id = gone.task_id };

		supervisorstate_order(k, ORDER_DETACH, &body, sizeof(body), NULL, 0);
		return;
	}
	supervisorstate_signal(k, gone.task_id, SIGHUP, true);
	supervisorstate_signal(k, gone.task_id, SIGCONT, true);
	t->kill_at_ms = clock_now_ms() + SUPERVISOR_LOST_GRACE_MS;
}

static void answer(struct supervisorstate *k, struct supervisorstate_client *client,
		   struct frame *f)
{
	struct err e = { 0 };

	if (supervisorrequests_answer(k, client, f, &e) < 0)
		control_fail(client->fd, &e);
	frame_done(f);
}

/* False: drop the client. */
static bool on_client(struct supervisorstate *k, struct supervisorstate_client *client)
{
	struct frame f;
	struct err e = { 0 };
	int r = frame_receive(client->fd, FRAME_NO_WAIT, &f);

	if (frame_may_pass(r))
		return true;
	if (r <= 0) {
		if (r == -EPROTO || r == -EPROTONOSUPPORT) {
			(void)err_set(&e, ERR_INVALID,
				      r == -EPROTO ? "that was no request"
						   : "the supervisor of this sandbox is of another "
						     "version (restart the sandbox)");
			control_fail(client->fd, &e);
		}
		return false;
	}
	if (supervisorrequests_must_wait(k, f.kind) && !client->held.kind) {
		client->held = f;
		client->held_until_ms = clock_now_ms() + SUPERVISOR_COPY_WAIT_MS;
		return true;
	}
	answer(k, client, &f);
	return true;
}

/* Answers the requests held while the sandbox was copied. */
static void check_held(struct supervisorstate *k, uint64_t now_ms)
{
	for (unsigned i = 0; i < k->client_count; i++) {
		struct supervisorstate_client *client = &k->clients[i];
		struct frame f = client->held;
		struct err e = { 0 };

		if (!f.kind)
			continue;
		if (!supervisorrequests_must_wait(k, f.kind)) {
			client->held = (struct frame){ 0 };
			answer(k, client, &f);
		} else if (now_ms >= client->held_until_ms) {
			client->held = (struct frame){ 0 };
			frame_done(&f);
			(void)err_set(&e, ERR_BUSY,
				      "sandbox '%s' is still being copied: try again later",
				      k->options.named->name);
			control_fail(client->fd, &e);
		}
	}
}

static void on_connection(struct supervisorstate *k)
{
	int fd = control_accept(k->listen_fd);
	struct err e = { 0 };

	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		/* EMFILE: accept with the spare descriptor and close, else poll() spins */
		cleanup_closep(&k->spare_fd);
		fd = control_accept(k->listen_fd);
		cleanup_closep(&fd);
		k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return;
	if (k->client_count == SUPERVISOR_CLIENTS_MAX) {
		(void)err_set(&e, ERR_LIMIT, "sandbox '%s' has %u clients already",
			      k->options.named->name, SUPERVISOR_CLIENTS_MAX);
		control_fail(fd, &e);
		(void)close(fd);
		return;
	}
	k->clients = mem_grow(k->clients, k->client_count + 1, sizeof(*k->clients));
	k->clients[k->client_count++] = (struct supervisorstate_client){
		.fd = fd,
		.pids_refused_count = cgroup_get_pids_refused(&k->session.cgroup),
		.notice_count =
			k->told_notices, /* others were told these; all later ones are new */
	};
}

/* ---- messages of init ---- */

/* The kernel's out-of-memory killer in a cgroup is visible only in a counter. */
static void check_memory(struct supervisorstate *k, int status)
{
	struct cgroup_usage usage;

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return;
	cgroup_get_usage(&k->session.cgroup, &usage);
	if (usage.oom_kill_count > k->oom_kill_count)
		lifecycle_audit_limit(k->options.ak, k->options.named->name, "memory limit");
	k->oom_kill_count = usage.oom_kill_count;
}

/* Logs the end of a detached command as an act of the process that started it. */
static void audit_detached(const struct supervisorstate *k, const struct task *t,
			   bool was_out_of_memory)
{
	const struct audit_actor asker = { t->asker_uid, t->asker_pid, t->asker_program };
	char words[AUDIT_END_MAX_BYTES];
	cleanup_free char *what = mem_format("%08x: %s", t->shown.id, t->shown.text);
	const struct audit_event event = {
		.type = AUDITLINE_END,
		.actor = t->asker_pid ? &asker : NULL,
		.sandbox = k->options.named->name,
		.what = what,
		.result = t->shown.has_timed_out ? "ended by its deadline"
			  : was_out_of_memory    ? "killed: out of memory"
						 : audit_format_end(t->shown.wait_status, words),
	};

	(void)audit_write(k->options.ak, &event);
}

static void on_task_event(struct supervisorstate *k, const struct frame *f)
{
	uint64_t oom_kill_count = k->oom_kill_count;
	struct order_event event;
	struct task *t;

	if (f->len != sizeof(event))
		return;
	memcpy(&event, f->bytes, sizeof(event));
	t = tasktable_find(&k->tasks, event.id);
	if (!t)
		return;
	if (f->kind == EVENT_STARTED) {
		t->shown.pid = t->command.pid = event.pid;
		return;
	}
	t->shown.pid = 0;
	t->shown.wait_status = event.wait_status;
	t->shown.has_timed_out = event.has_timed_out;
	t->shown.ended_ms = timestamp_now_ms();
	check_memory(k, event.wait_status);
	if (t->shown.flags & ORDER_DETACHED)
		audit_detached(k, t, k->oom_kill_count > oom_kill_count);
	t->kill_at_ms = 0;
	if (t->is_service)
		supervisorservices_on_end(k, event.id);
	tasktable_forget_ended(&k->tasks);
}

static void on_usage(struct supervisorstate *k, const struct frame *f)
{
	struct order_usage usage;

	if (f->len != sizeof(usage))
		return;
	memcpy(&usage, f->bytes, sizeof(usage));
	for (unsigned i = 0; i < k->client_count; i++) {
		if (!k->clients[i].is_waiting_for_usage)
			continue;
		k->clients[i].is_waiting_for_usage = false;
		supervisorrequests_answer_stats(k, &k->clients[i], &usage);
	}
}

static void on_frozen(struct supervisorstate *k, const struct frame *f)
{
	struct order_frozen frozen;

	if (f->len != sizeof(frozen))
		return;
	memcpy(&frozen, f->bytes, sizeof(frozen));
	supervisorrequests_answer_frozen(k, &frozen);
}

static void on_events(struct supervisorstate *k)
{
	struct frame f;
	int r;

	while ((r = frame_receive(k->session.sandbox.orders_fd, FRAME_NO_WAIT, &f)) == 1) {
		if (f.kind == EVENT_STARTED || f.kind == EVENT_ENDED)
			on_task_event(k, &f);
		else if (f.kind == EVENT_USAGE)
			on_usage(k, &f);
		else if (f.kind == EVENT_FROZEN)
			on_frozen(k, &f);
		frame_done(&f);
	}
	if (!frame_may_pass(r) && !k->is_over) /* the report has the reason */
		k->is_over = true;
}

static const char *limit_words(enum report_limit limit)
{
	switch (limit) {
	case REPORT_LIMIT_MEMORY:
		return "memory limit";
	case REPORT_LIMIT_CPU_TIME:
		return "cpu-time limit";
	case REPORT_LIMIT_PIDS:
		return "pids limit";
	case REPORT_LIMIT_NONE:
		break;
	}
	return "init ended";
}

/* After the start, a report is init's last message. */
static void on_report(struct supervisorstate *k)
{
	struct report report;
	struct err e = { 0 };
	int r = report_read(k->session.sandbox.report_fd, &report, &e);

	if (r == 1 && report.kind == REPORT_LIMIT)
		lifecycle_audit_limit(k->options.ak, k->options.named->name,
				      limit_words(report.limit));
	supervisorstate_end(k, r == 1 && report.kind == REPORT_LIMIT ? limit_words(report.limit)
								     : "init died");
}

/* ---- time ---- */

/* When this turn has to end at the latest. */
static void set_deadlines(const struct supervisorstate *k, struct turn *t)
{
	uint64_t now_ms = clock_now_ms(), wall_ms = timestamp_now_ms();

	if (k->is_stopping)
		turn_wake_in(t, STOP_LOOK_MS);
	if (k->options.policy->cpu_time_ms && k->session.cgroup.kind != CGROUP_NONE)
		turn_wake_in(t, CPU_INTERVAL_MS);
	if (k->options.named->expires_s)
		turn_wake_at(t, k->options.named->expires_s * 1000 + 1, wall_ms);
	for (unsigned i = 0; i < k->tasks.count; i++)
		turn_wake_at(t, k->tasks.rows[i].kill_at_ms, now_ms);
	for (unsigned i = 0; i < k->client_count; i++)
		if (k->clients[i].held.kind)
			turn_wake_at(t, k->clients[i].held_until_ms, now_ms);
	if (k->checkpoints.pid == 0)
		turn_wake_at(t, k->checkpoints.at_ms, now_ms);
	turn_wake_at(t, k->look_at_ms, now_ms);
	supervisorsleep_set_deadline(k, t);
}

static void check_cpu(struct supervisorstate *k)
{
	uint64_t limit_ms = k->options.policy->cpu_time_ms, used_us = 0;

	if (!limit_ms || k->session.cgroup.kind == CGROUP_NONE)
		return;
	if (cgroup_get_cpu_us(&k->session.cgroup, &used_us) && used_us / 1000 <= limit_ms)
		return;
	lifecycle_audit_limit(k->options.ak, k->options.named->name, "cpu-time limit");
	supervisorstate_end(k, "cpu-time limit");
}

/* Counts processes besides init, such as daemons; 0 without a pids cgroup. */
static uint64_t count_others(const struct supervisorstate *k)
{
	struct cgroup_usage usage;

	cgroup_get_usage(&k->session.cgroup, &usage);
	return usage.has_pids && usage.pids_count > 0 ? usage.pids_count - 1 : 0;
}

static void check_stop(struct supervisorstate *k)
{
	if (!k->is_stopping)
		return;
	if (clock_now_ms() >= k->stop_at_ms ||
	    (tasktable_count_alive(&k->tasks) == 0 && count_others(k) == 0))
		supervisorstate_end(k, NULL);
}

static void tell_gate(struct supervisorstate *k)
{
	const struct gatekeeper *g = &k->session.gatekeeper;

	if (g->deaths == k->told_gate_deaths)
		return;
	k->told_gate_deaths = g->deaths;
	logfile_say(&k->log, "the gate has died %u time%s and is started again: %s", g->deaths,
		    g->deaths == 1 ? "" : "s", g->trouble ? g->trouble : "it gave no reason");
}

/* If its directory was deleted, nobody can stop, find or start the sandbox: end it. */
static void check_directory(struct supervisorstate *k, uint64_t now_ms)
{
	if (now_ms < k->look_at_ms)
		return;
	k->look_at_ms = now_ms + DIRECTORY_LOOK_MS;
	tell_gate(k);
	if (!named_is_there(k->options.named))
		supervisorstate_end(k, "its directory is gone");
}

/* ---- checkpoints ---- */

static void on_checkpoint(struct supervisorstate *k)
{
	struct checkpointinterval_report r;

	checkpointinterval_on_readable(&k->checkpoints, k->options.named, &r);
	if (r.id[0])
		logfile_say(&k->log, "checkpoint %s", r.id);
	if (!r.wait_ms)
		supervisorstate_note_trouble(k, r.failure.code != ERR_NONE ? r.failure.msg : "");
}

static void check_checkpoints(struct supervisorstate *k)
{
	struct err e = { 0 };

	if (k->is_stopping || k->is_over || !checkpointinterval_is_due(&k->checkpoints))
		return;
	if (checkpointinterval_start(&k->checkpoints, k->options.ak, k->options.named, &e) < 0)
		supervisorstate_note_trouble(k, e.msg);
}

static void check_time(struct supervisorstate *k)
{
	uint64_t now_ms = clock_now_ms();

	for (unsigned i = 0; i < k->tasks.count; i++) {
		if (!k->tasks.rows[i].kill_at_ms || now_ms < k->tasks.rows[i].kill_at_ms)
			continue;
		k->tasks.rows[i].kill_at_ms = 0;
		supervisorstate_signal(k, k->tasks.rows[i].shown.id, SIGKILL, true);
	}
	if (k->options.named->expires_s &&
	    timestamp_now_ms() >= k->options.named->expires_s * 1000) {
		k->is_expired = true;
		supervisorstate_end(k, "expired");
	}
	check_cpu(k);
	check_stop(k);
	check_directory(k, now_ms);
	check_held(k, now_ms);
	check_checkpoints(k);
	supervisorsleep_check(k);
}

/* ---- the loop ---- */

static void on_signal(struct supervisorstate *k)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM)
			supervisorstate_begin_stop(k, SUPERVISOR_STOP_DEFAULT_MS);
}

/* What this turn waits for. */
struct slots {
	unsigned report, events, signal, listen, names, checkpoint, first_client;
};

static struct slots watch(struct supervisorstate *k, struct turn *t)
{
	const struct handle *h = &k->session.sandbox;
	struct slots s;

	turn_begin(t);
	s.report = turn_watch(t, h->report_fd, POLLIN);
	s.events = turn_watch(t, h->orders_fd, POLLIN);
	s.signal = turn_watch(t, k->signal_fd, POLLIN);
	s.listen = turn_watch(t, k->listen_fd, POLLIN);
	s.names = turn_watch_names(t, &k->session.names);
	s.checkpoint = turn_watch(t, k->checkpoints.report_fd, POLLIN);
	turn_watch_gate(t, &k->session.gatekeeper);
	s.first_client = t->count;
	for (unsigned i = 0; i < k->client_count; i++)
		(void)turn_watch(t, k->clients[i].fd, POLLIN);
	supervisorservices_watch(k, t);
	set_deadlines(k, t);
	return s;
}

static void go_round(struct supervisorstate *k, struct turn *t)
{
	unsigned clients = k->client_count;
	const struct slots s = watch(k, t);
	struct err e;

	if (turn_wait(t, &e) < 0) {
		supervisorstate_end(k, "the supervisor failed");
		return;
	}
	if (turn_is_ready(t, s.names) || newnames_wait_ms(&k->session.names) >= 0)
		supervisorstate_look_at_names(k);
	if (turn_is_ready(t, s.signal))
		on_signal(k);
	if (turn_is_ready(t, s.events))
		on_events(k);
	if (turn_is_ready(t, s.report))
		on_report(k);
	if (turn_is_ready(t, s.checkpoint))
		on_checkpoint(k);
	/* backwards, because dropping a client moves the last one into its place */
	for (unsigned i = clients; i-- > 0 && !k->is_over;)
		if (turn_is_ready(t, s.first_client + i) && !on_client(k, &k->clients[i]))
			drop_client(k, i);
	if (turn_is_ready(t, s.listen))
		on_connection(k);
	supervisorservices_on_turn(k, t);
	check_time(k);
	lifecycle_audit_denials(k->options.ak, k->options.named->name, &k->session.gatekeeper,
				&k->audited_denials);
}

static void serve(struct supervisorstate *k)
{
	CLEANUP(turn_done) struct turn t;

	turn_init(&t);
	while (!k->is_over)
		go_round(k, &t);
}

/* ---- start and end ---- */

static int note_cgroup(void *context, const char *paths, struct err *e)
{
	struct supervisorstate *k = context;
	cleanup_free char *copy = mem_dup(paths);
	char *rest = copy, *path;

	while ((path = strsep(&rest, "\n")))
		if (*path)
			(void)keyrows_list_add(&k->run.cgroups, path);
	k->is_noted = true;
	return namedrun_save(k->options.named, &k->run, e);
}

static int hold_signals(struct supervisorstate *k, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "hold back signals");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signal_fd < 0)
		return err_sys(e, errno, "wait for signals");
	return 0;
}

static int build(struct supervisorstate *k, struct err *e)
{
	struct named *n = k->options.named;
	struct session_options options = {
		.policy = k->options.policy,
		.ak = k->options.ak,
		.root = &k->root.root,
		.serves = true,
		.is_changeable = true,
		.name = n->name,
		.machine_id = n->id,
		.before_cgroup = note_cgroup,
		.context = k,
	};
	const struct backend_command none = { 0 };

	k->run = (struct namedrun){
		.state = NAMED_RUNNING,
		.supervisor_pid = (uint64_t)getpid(),
		.started_s = (uint64_t)time(NULL),
	};
	if (hold_signals(k, e) < 0 ||
	    rootplan_open(&k->root, k->options.ak, n, k->options.policy, k->options.image, e) < 0)
		return -1;
	if (k->options.policy->publish) /* it may have slept */
		portholder_take(k->options.ak, n, &k->session.gatekeeper.published);
	options.disk_path = k->root.disk_path;
	if (session_prepare(&k->session, &options, e) < 0)
		return -1;
	if (session_start(&k->session, &none, 0, e) < 0 || session_await_init(&k->session, e) < 0)
		return -1;
	if (fcntl(k->session.sandbox.orders_fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return err_sys(e, errno, "prepare the socket for orders");
	k->run.init_pid = (uint64_t)k->session.sandbox.pid;
	k->run.switches_ids = k->session.idmap.kind != IDMAP_ONE;
	k->run.host_gid = k->session.idmap.kind == IDMAP_PRIVATE ? k->session.idmap.host_gid : 0;
	named_note_build(n);
	if (control_listen(n->dir_fd, &k->listen_fd, e) < 0)
		return -1;
	/* without a cgroup, nothing was saved yet for this start */
	return k->is_noted ? namedrun_add_processes(n, &k->run, e) : namedrun_save(n, &k->run, e);
}

/* Saves notices that no client has seen, for the command that stops the sandbox. */
static void save_notices(const struct supervisorstate *k)
{
	cleanup_buf struct buf out;
	struct err ignored;

	buf_init(&out, NAMEDFILE_NOTICES_MAX_BYTES);
	supervisorstate_take_notices(k, k->told_notices, &out);
	if (out.len > 0)
		(void)!namedfile_save_notices(k->options.named, &out, &ignored);
}

static void audit_end(const struct supervisorstate *k)
{
	const struct audit_event event = {
		.type = AUDITLINE_END,
		.sandbox = k->options.named->name,
		.what = "sandbox",
		.result = k->reason,
	};

	(void)audit_write(k->options.ak, &event);
}

/*
 * Ends the processes, the gate and the cgroups, then saves the state, then removes the socket.
 *
 * The last descriptor of the root keeps it mounted, and closing it makes the kernel flush the whole
 * file system below. If the disk is a directory, nobody has to wait for that: root_fd stays open
 * until we exit. A disk of its own must be unmounted before it can be mounted again.
 */
static void take_back(struct supervisorstate *k)
{
	bool is_stuck;

	supervisorservices_done(&k->services);
	supervisorstate_hang_up_freezers(k);
	if (k->falls_asleep)
		supervisorsleep_hand_over(k);
	session_stop(&k->session);
	is_stuck = k->session.sandbox.is_stuck;
	session_inspect(&k->session);
	save_notices(k);
	if (!k->options.named->has_disk_limit)
		k->root_fd = take_fd(&k->session.sandbox.root_fd);
	session_done(&k->session);
	rootplan_done(&k->root);
	k->run.state = k->falls_asleep && !is_stuck ? NAMED_ASLEEP : NAMED_STOPPED;
	k->run.ended_s = (uint64_t)time(NULL);
	k->run.supervisor_pid = k->run.init_pid = 0;
	if (is_stuck && !k->reason)
		k->reason = mem_dup(SESSION_STUCK_WORDS);
	if (!is_stuck) /* else the next start must check that they have ended */
		keyrows_list_free(&k->run.cgroups);
	free(k->run.reason);
	k->run.reason = k->reason;
	supervisorstate_save_run(k);
	logfile_say(&k->log, "ended: %s", k->reason ? k->reason : "it was asked to");
	audit_end(k);
	(void)unlinkat(k->options.named->dir_fd, CONTROL_SOCKET, 0);
}

/* Frees the lock, then closes the connections of clients that wait for the end. */
static void let_go(struct supervisorstate *k)
{
	named_unlock(k->options.named);
	while (k->client_count > 0)
		(void)close(k->clients[--k->client_count].fd);
}

/* Closes descriptors inherited from the caller, except those that we need. */
static void close_others(const struct supervisorstate *k, int ready_fd)
{
	const struct named *n = k->options.named;
	int kept[] = { 0,
		       1,
		       2,
		       n->dir_fd,
		       n->lock_fd,
		       ready_fd,
		       k->options.image ? k->options.image->lock_fd : -1 };

	(void)closeothers_but(kept, COUNT_OF(kept));
}

static int detach(struct supervisorstate *k, int ready_fd, struct err *e)
{
	int r;

	(void)setsid();
	(void)!chdir("/");
	(void)umask(077);
	r = file_leave_streams();
	if (r < 0)
		return err_sys(e, -r, "let go of the caller's streams");
	title_set(TITLE_SUPERVISOR, k->options.named->name);
	close_others(k, ready_fd);
	return 0;
}

static _Noreturn void child_main(const struct supervisor_options *o, int ready_fd)
{
	struct supervisorstate k = {
		.options = *o,
		.tasks.dir_fd = o->named->dir_fd,
		.listen_fd = -1,
		.signal_fd = -1,
		.spare_fd = -1,
		.root_fd = -1,
	};
	struct err e = { 0 };

	session_init(&k.session);
	checkpointinterval_init(&k.checkpoints);
	rootplan_init(&k.root);
	logfile_init(&k.log, o->named->dir_fd, NAMED_SYSTEM_LOG);
	if (detach(&k, ready_fd, &e) < 0 || build(&k, &e) < 0) {
		logfile_say(&k.log, "cannot start: %s", e.msg);
		k.reason = mem_dup("start failed");
		take_back(&k);
		report_failed(ready_fd, &e);
		_exit(EXIT_FAILED);
	}
	logfile_say(&k.log, "started: build %s, init is process %d, image %s", buildid_get(),
		    (int)k.session.sandbox.pid, o->policy->image);
	report_started(ready_fd);
	(void)close(ready_fd);
	checkpointinterval_resume(&k.checkpoints, o->named);
	if (supervisorservices_begin(&k, &e) < 0)
		logfile_say(&k.log, "no services: %s", e.msg);
	serve(&k);
	take_back(&k);
	if (k.is_expired)
		lifecycle_remove_expired(o->ak, o->named);
	let_go(&k);
	_exit(0);
}

int supervisor_start(const struct supervisor_options *o, struct err *e)
{
	cleanup_fd int ready_fd = -1;
	struct report report;
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	ready_fd = ends[0];
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		child_main(o, ends[1]);
	}
	(void)close(ends[1]);
	if (pid < 0)
		return err_sys(e, errno, "start a supervisor");
	cleanup_closep(&o->named->lock_fd);
	o->named->has_lock = false;
	r = report_read(ready_fd, &report, e);
	if (r == 1 && report.kind == REPORT_STARTED)
		return 0;
	if (r < 0)
		(void)kill(pid, SIGTERM); /* it may be running: end it, since its report could not
					     be read */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (r < 0)
		return -1;
	if (r == 1) {
		*e = report.error;
		return -1;
	}
	return err_set(e, ERR_SYSTEM, "the supervisor died while the sandbox started");
}
