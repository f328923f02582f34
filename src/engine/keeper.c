/*
 * keeper - the supervisor of a named sandbox; see keeper.h.
 *
 * Theory of operation. keeper_start() forks; the child leaves the session, closes what it was
 * given, builds the sandbox and says so through a pipe. From then on it is one poll loop over
 * init's events, the control socket and its clients, the gate's sockets and the deadlines. A client
 * is a connection; what it started attached lives no longer than it does. Everything that can wait
 * is init's to do: no request makes this process wait for another.
 *
 * Hostile input: what clients send (they are of this user, but may be of another version, or
 * broken); what init says, should it ever be taken over from inside: sizes and ids are checked.
 */
#include "engine/keeper.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "engine/control.h"
#include "engine/images.h"
#include "engine/lifecycle.h"
#include "engine/named.h"
#include "engine/rootplan.h"
#include "engine/session.h"
#include "sandbox/order.h"
#include "sandbox/report.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_LOOK_MS 20 /* how often it is looked whether all processes have gone */
#define CPU_INTERVAL_MS 200
#define ORDER_WAIT_MS 2000u
#define ORDER_LOOK_MS 20
#define LOG_NAME_MAX_BYTES 24
#define EXIT_FAILED 125

struct client {
	int fd;
	uint32_t task_id;    /* the attached command that lives with it; 0: none */
	bool is_at_terminal; /* ... is a detached one, whose terminal it has */
	bool is_freezing;
	bool is_waiting_for_usage;
};

struct task {
	struct control_task shown;
	uint64_t kill_at_ms; /* 0: not to be killed */
	bool has_client;
};

struct keeper {
	struct keeper_options options;
	struct session session;
	struct rootplan root;
	struct named_run run;
	bool is_noted; /* the file that says what runs is this start's */
	int listen_fd, signal_fd;
	int spare_fd; /* given up for a moment when there are no more */
	int root_fd;  /* once it is over: see take_back() */
	struct client *clients;
	unsigned client_count;
	struct task *tasks;
	unsigned task_count;
	unsigned audited_denials;
	uint64_t oom_kill_count; /* that are known */
	unsigned freeze_count;   /* by clients, and one for a pause */
	bool is_paused, is_stopping, is_over, is_expired;
	uint64_t stop_at_ms;
	char *reason; /* why it ended; NULL: it was asked to */
};

static void save_run(struct keeper *k)
{
	struct err ignored;

	(void)!named_save_run(k->options.named, &k->run, &ignored);
}

static void set_state(struct keeper *k, enum named_state state)
{
	k->run.state = state;
	save_run(k);
}

static void end(struct keeper *k, const char *reason)
{
	if (!k->reason && reason)
		k->reason = mem_dup(reason);
	k->is_over = true;
}

/* ---- init ---- */

/*
 * An init that does not take orders is as good as dead. The socket does not block: what runs inside
 * can keep init from reading, and must not keep us from stopping it.
 */
static void order(struct keeper *k, uint32_t kind, const void *body, size_t len, const int *fds,
		  unsigned fd_count)
{
	struct pollfd polled = { .fd = k->session.sandbox.orders_fd, .events = POLLOUT };
	uint64_t give_up_ms = clock_now_ms() + ORDER_WAIT_MS;
	int r = k->is_over ? -EPIPE : frame_send(polled.fd, kind, body, len, fds, fd_count);

	while (frame_may_pass(r) && clock_now_ms() < give_up_ms) {
		(void)poll(&polled, 1, ORDER_LOOK_MS);
		r = frame_send(polled.fd, kind, body, len, fds, fd_count);
	}
	if (frame_may_pass(r))
		end(k, "init takes no orders");
	else if (r < 0)
		end(k, "init died");
}

static void order_signal(struct keeper *k, uint32_t id, int number, bool is_for_group)
{
	const struct order_signal body = { id, number, is_for_group };

	order(k, ORDER_SIGNAL, &body, sizeof(body), NULL, 0);
}

/* ---- tasks ---- */

static struct task *find_task(struct keeper *k, uint32_t id)
{
	for (unsigned i = 0; i < k->task_count; i++)
		if (k->tasks[i].shown.id == id)
			return &k->tasks[i];
	return NULL;
}

static bool is_alive(const struct task *t)
{
	return t->shown.ended_ms == 0;
}

static unsigned count_alive(const struct keeper *k)
{
	unsigned count = 0;

	for (unsigned i = 0; i < k->task_count; i++)
		count += is_alive(&k->tasks[i]);
	return count;
}

static void name_log(uint32_t id, unsigned half, char out[LOG_NAME_MAX_BYTES])
{
	(void)snprintf(out, LOG_NAME_MAX_BYTES, "log/%08" PRIx32 ".%u", id, half);
}

static void remove_logs(struct keeper *k, uint32_t id)
{
	char name[LOG_NAME_MAX_BYTES];

	for (unsigned half = 0; half < 2; half++) {
		name_log(id, half, name);
		(void)unlinkat(k->options.named->dir_fd, name, 0);
	}
}

static void drop_task(struct keeper *k, unsigned index)
{
	memmove(&k->tasks[index], &k->tasks[index + 1],
		(k->task_count - index - 1) * sizeof(*k->tasks));
	k->task_count--;
}

/* Attached ones are forgotten at once, of the others the oldest. */
static void forget_ended(struct keeper *k)
{
	unsigned ended = 0;

	for (unsigned i = k->task_count; i-- > 0;) {
		const struct task *t = &k->tasks[i];

		if (is_alive(t))
			continue;
		if (!(t->shown.flags & ORDER_DETACHED)) {
			drop_task(k, i);
		} else if (++ended > KEEPER_ENDED_TASKS_MAX) {
			remove_logs(k, t->shown.id);
			drop_task(k, i);
		}
	}
}

static void describe(char *const *argv, char out[CONTROL_TEXT_MAX_BYTES])
{
	size_t len = 0;

	out[0] = '\0';
	for (; *argv && len + 1 < CONTROL_TEXT_MAX_BYTES; argv++) {
		int n = snprintf(out + len, CONTROL_TEXT_MAX_BYTES - len, "%s%s", len ? " " : "",
				 *argv);

		len += n > 0 ? (size_t)n : 0;
	}
}

static uint32_t choose_id(struct keeper *k)
{
	uint32_t id = ORDER_ALL;

	while (id == ORDER_ALL || find_task(k, id))
		if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
			id++;
	return id;
}

static struct task *add_task(struct keeper *k, const struct order_command *c, char *const *argv)
{
	struct task *t;

	k->tasks = mem_grow(k->tasks, k->task_count + 1, sizeof(*k->tasks));
	t = &k->tasks[k->task_count++];
	*t = (struct task){ .shown = { .id = c->id,
				       .flags = c->flags,
				       .uid = c->uid,
				       .started_ms = timestamp_now_ms() },
			    .has_client = !(c->flags & ORDER_DETACHED) };
	describe(argv, t->shown.text);
	return t;
}

/* ---- commands ---- */

static int check_command(const struct keeper *k, const struct order_command *c, struct err *e)
{
	const struct profile *profile = profile_get(k->options.policy->profile);

	if (k->freeze_count > 0)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused ('agentkernel resume %s')",
			       k->options.named->name, k->options.named->name);
	if (k->is_stopping)
		return err_set(e, ERR_BUSY, "sandbox '%s' is stopping", k->options.named->name);
	if (count_alive(k) >= CONTROL_TASKS_MAX)
		return err_set(e, ERR_LIMIT, "sandbox '%s' runs %u commands already",
			       k->options.named->name, CONTROL_TASKS_MAX);
	if (c->uid == 0 && !profile->runs_as_root)
		return err_set(e, ERR_DENIED, "the %s profile has no root inside", profile->name);
	if (!k->run.switches_ids &&
	    (c->uid != k->options.policy->uid || c->gid != k->options.policy->gid))
		return err_set(
			e, ERR_UNSUPPORTED,
			"this sandbox has one user only, '%s': an ordinary user's sandbox has more "
			"with an image and a range in /etc/subuid",
			k->options.policy->user_name);
	return 0;
}

static int open_log(struct keeper *k, uint32_t id, int ret_fds[2], struct err *e)
{
	char name[LOG_NAME_MAX_BYTES];

	ret_fds[0] = ret_fds[1] = -1;
	for (unsigned half = 0; half < 2; half++) {
		name_log(id, half, name);
		ret_fds[half] = openat(k->options.named->dir_fd, name,
				       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (ret_fds[half] < 0)
			return err_sys(e, errno, "create a log");
	}
	return 0;
}

static unsigned judge_streams(const struct frame *f)
{
	struct stat st;

	for (unsigned i = 1; i < f->fd_count; i++)
		if (fstat(f->fds[i], &st) < 0 || S_ISREG(st.st_mode))
			return SESSION_FILE_STREAM;
	return 0;
}

/* Nobody's stdin, and the files that take the output. */
static int add_log(struct keeper *k, uint32_t id, struct frame *f, struct err *e)
{
	int logs[2];
	int r;

	f->fds[f->fd_count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (f->fds[f->fd_count] < 0)
		return err_sys(e, errno, "open /dev/null");
	f->fd_count++;
	r = open_log(k, id, logs, e);
	for (unsigned half = 0; half < 2; half++)
		if (logs[half] >= 0)
			f->fds[f->fd_count++] = logs[half];
	if (r < 0)
		remove_logs(k, id);
	return r;
}

static int start_command(struct keeper *k, struct client *client, struct frame *f, struct err *e)
{
	CLEANUP(order_texts_done) struct order_texts texts = { 0 };
	struct order_command c;
	unsigned streams;

	if (order_parse_command(f->bytes, f->len, &c, &texts, e) < 0 || check_command(k, &c, e) < 0)
		return -1;
	if (f->fd_count != (c.flags & (ORDER_TTY | ORDER_DETACHED) ? 1u : 4u))
		return err_set(e, ERR_INVALID, "a command with %u descriptors", f->fd_count);
	if (client->task_id)
		return err_set(e, ERR_INVALID, "this connection has a command already");
	streams = judge_streams(f);
	c.id = choose_id(k);
	c.seccomp_variant = session_choose_filter(&k->session, streams);
	if (c.uid != 0 || !profile_get(k->options.policy->profile)->runs_as_root)
		c.flags &= ~(uint32_t)ORDER_CAPABILITIES;
	if (c.flags & ORDER_DETACHED && add_log(k, c.id, f, e) < 0)
		return -1;
	memcpy(f->bytes, &c, sizeof(c));
	(void)add_task(k, &c, texts.argv);
	if (!(c.flags & ORDER_DETACHED))
		client->task_id = c.id;
	order(k, ORDER_START, f->bytes, f->len, f->fds, f->fd_count);
	if (c.flags & ORDER_DETACHED)
		control_answer(client->fd, &c.id, sizeof(c.id));
	return 0;
}

static int signal_command(struct keeper *k, const struct client *client, const struct frame *f,
			  struct err *e)
{
	struct order_signal body;
	const struct task *t;

	if (f->len != sizeof(body))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&body, f->bytes, sizeof(body));
	if (body.number < 1 || body.number > SIGRTMAX)
		return err_set(e, ERR_INVALID, "no signal %d", body.number);
	if (body.id == ORDER_ALL)
		body.id = client->task_id;
	t = body.id ? find_task(k, body.id) : NULL;
	if (!t || !is_alive(t))
		return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " runs in sandbox '%s'",
			       body.id, k->options.named->name);
	order(k, ORDER_SIGNAL, &body, sizeof(body), NULL, 0);
	return 0;
}

/* The latest detached command with a terminal. */
static struct task *find_shell(struct keeper *k)
{
	for (unsigned i = k->task_count; i-- > 0;)
		if (is_alive(&k->tasks[i]) && k->tasks[i].shown.flags & ORDER_TTY &&
		    k->tasks[i].shown.flags & ORDER_DETACHED)
			return &k->tasks[i];
	return NULL;
}

/* Who had the terminal before loses it. */
static void take_terminal(struct keeper *k, const struct client *from_others, uint32_t id)
{
	for (unsigned i = 0; i < k->client_count; i++)
		if (&k->clients[i] != from_others && k->clients[i].is_at_terminal &&
		    k->clients[i].task_id == id) {
			k->clients[i].task_id = 0;
			(void)shutdown(k->clients[i].fd, SHUT_RDWR);
		}
}

static int attach(struct keeper *k, struct client *client, struct frame *f, struct err *e)
{
	struct order_signal body;
	struct task *t;

	if (f->len != sizeof(body) || f->fd_count != 1)
		return err_set(e, ERR_INVALID, "half a request");
	if (k->freeze_count > 0)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused", k->options.named->name);
	memcpy(&body, f->bytes, sizeof(body));
	t = body.id == ORDER_ALL ? find_shell(k) : find_task(k, body.id);
	if (!t || !is_alive(t) || !(t->shown.flags & ORDER_TTY) ||
	    !(t->shown.flags & ORDER_DETACHED))
		return err_set(e, ERR_NOT_FOUND, "no such terminal in sandbox '%s'",
			       k->options.named->name);
	body.id = t->shown.id;
	take_terminal(k, client, body.id);
	client->task_id = body.id;
	client->is_at_terminal = true;
	order(k, ORDER_ATTACH, &body, sizeof(body), f->fds, 1);
	control_answer(client->fd, &body.id, sizeof(body.id));
	return 0;
}

static void answer_ps(struct keeper *k, const struct client *client)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_BODY_MAX_BYTES);
	for (unsigned i = 0; i < k->task_count; i++)
		buf_add(&out, &k->tasks[i].shown, sizeof(k->tasks[i].shown));
	control_answer(client->fd, out.bytes, out.len);
}

/* ---- freezing ---- */

static int freeze(struct keeper *k, struct err *e)
{
	if (k->freeze_count == 0) {
		if (!cgroup_can_freeze(&k->session.cgroup))
			order(k, ORDER_FREEZE, NULL, 0, NULL, 0);
		else if (cgroup_freeze(&k->session.cgroup, e) < 0)
			return -1;
	}
	k->freeze_count++;
	return 0;
}

static int thaw(struct keeper *k, struct err *e)
{
	if (k->freeze_count > 1 || k->freeze_count == 0) {
		k->freeze_count -= k->freeze_count > 0;
		return 0;
	}
	if (!cgroup_can_freeze(&k->session.cgroup))
		order(k, ORDER_THAW, NULL, 0, NULL, 0);
	else if (cgroup_thaw(&k->session.cgroup, e) < 0)
		return -1;
	k->freeze_count = 0;
	return 0;
}

static int pause_all(struct keeper *k, struct err *e)
{
	if (k->is_paused)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused already",
			       k->options.named->name);
	if (freeze(k, e) < 0)
		return -1;
	k->is_paused = true;
	set_state(k, NAMED_PAUSED);
	return 0;
}

static int resume_all(struct keeper *k, struct err *e)
{
	if (!k->is_paused)
		return err_set(e, ERR_BUSY, "sandbox '%s' is not paused", k->options.named->name);
	if (thaw(k, e) < 0)
		return -1;
	k->is_paused = false;
	set_state(k, NAMED_RUNNING);
	return 0;
}

static int freeze_for(struct keeper *k, struct client *client, struct err *e)
{
	if (client->is_freezing)
		return err_set(e, ERR_INVALID, "this connection freezes already");
	if (freeze(k, e) < 0)
		return -1;
	client->is_freezing = true;
	return 0;
}

/* ---- stopping ---- */

static void begin_stop(struct keeper *k, uint64_t timeout_ms)
{
	struct err ignored;

	if (k->is_stopping)
		return;
	k->is_stopping = true;
	k->stop_at_ms = clock_now_ms() + timeout_ms;
	for (unsigned i = k->freeze_count; i > 0; i--)
		(void)!thaw(k, &ignored);
	order_signal(k, ORDER_ALL, SIGTERM, false);
	order_signal(k, ORDER_ALL, SIGCONT, false);
}

/* Processes that no command of ours is, such as daemons; 0 where nobody counts. */
static uint64_t count_others(const struct keeper *k)
{
	struct cgroup_usage usage;

	cgroup_get_usage(&k->session.cgroup, &usage);
	return usage.has_pids && usage.pids_count > 0 ? usage.pids_count - 1 : 0;
}

static void check_stop(struct keeper *k)
{
	if (!k->is_stopping)
		return;
	if (clock_now_ms() >= k->stop_at_ms || (count_alive(k) == 0 && count_others(k) == 0))
		end(k, NULL);
}

/* ---- figures ---- */

static void answer_stats(struct keeper *k, struct client *client, const struct order_usage *usage)
{
	const struct policy *p = k->options.policy;
	struct cgroup_usage u;
	struct control_stats stats = { 0 };

	cgroup_get_usage(&k->session.cgroup, &u);
	stats = (struct control_stats){
		.has_memory = u.has_memory || usage,
		.has_cpu = u.has_cpu || usage,
		.has_pids = u.has_pids || usage,
		.has_io = u.has_io,
		.memory_bytes = u.has_memory ? u.memory_bytes
				: usage      ? usage->memory_bytes
					     : 0,
		.peak_memory_bytes = u.peak_memory_bytes,
		.memory_limit_bytes = p->memory_bytes,
		.oom_kill_count = u.oom_kill_count,
		.cpu_us = u.has_cpu ? u.cpu_us
			  : usage   ? usage->cpu_us
				    : 0,
		.pids_count = u.has_pids ? u.pids_count
			      : usage    ? usage->pids_count
					 : 0,
		.pids_limit = p->pids_count,
		.read_bytes = u.read_bytes,
		.written_bytes = u.written_bytes,
		.sent_bytes = k->session.gatekeeper.sent_bytes,
		.received_bytes = k->session.gatekeeper.received_bytes,
		.time_us = clock_now_us(),
	};
	control_answer(client->fd, &stats, sizeof(stats));
}

/* Where there is no cgroup to ask, init counts; a frozen one would not answer. */
static void ask_stats(struct keeper *k, struct client *client)
{
	struct cgroup_usage u;

	cgroup_get_usage(&k->session.cgroup, &u);
	if ((u.has_memory && u.has_cpu && u.has_pids) || k->freeze_count > 0) {
		answer_stats(k, client, NULL);
		return;
	}
	client->is_waiting_for_usage = true;
	order(k, ORDER_USAGE, NULL, 0, NULL, 0);
}

static void answer_info(struct keeper *k, const struct client *client)
{
	const struct control_info info = {
		.host_gid = k->run.host_gid,
		.switches_ids = k->run.switches_ids,
		.is_paused = k->is_paused,
		.task_count = count_alive(k),
	};

	control_answer(client->fd, &info, sizeof(info));
}

/* ---- a policy that changes ---- */

static void reload_expiry(struct keeper *k)
{
	CLEANUP(named_done) struct named fresh;
	struct err ignored;

	named_init(&fresh);
	if (named_open(k->options.environ_list, k->options.named->name, &fresh, &ignored) == 0)
		k->options.named->expires_s = fresh.expires_s;
}

static int reload(struct keeper *k, struct err *e)
{
	struct policy *p = mem_alloc(sizeof(*p));
	struct order_limits limits;
	bool has_cgroup = k->session.cgroup.kind != CGROUP_NONE;

	reload_expiry(k);
	if (named_load_policy(k->options.named, p, e) < 0) {
		free(p);
		return -1;
	}
	if (has_cgroup && cgroup_set_limits(&k->session.cgroup, p, e) < 0) {
		policy_done(p);
		free(p);
		return -1;
	}
	limits = (struct order_limits){
		.memory_bytes = has_cgroup ? 0 : p->memory_bytes,
		.cpu_ms = has_cgroup ? 0 : p->cpu_time_ms,
		.pids_count = !has_cgroup && k->run.switches_ids ? p->pids_count : 0,
	};
	order(k, ORDER_LIMITS, &limits, sizeof(limits), NULL, 0);
	/* the walls that were built stay those of the old one; what can change is taken over */
	policy_done(k->options.policy);
	*k->options.policy = *p;
	free(p);
	return k->options.policy->has_network
		       ? gatekeeper_set_rules(&k->session.gatekeeper, k->options.policy, e)
		       : 0;
}

/* ---- clients ---- */

static int hand_files(struct keeper *k, const struct client *client, struct err *e)
{
	const int fds[] = { k->session.sandbox.root_fd, k->session.sandbox.userns_fd };
	int r = frame_send(client->fd, CONTROL_OK, NULL, 0, fds, 2);

	return r < 0 ? err_sys(e, -r, "hand the root out") : 0;
}

static int hand_disk(struct keeper *k, const struct client *client, struct err *e)
{
	int r = frame_send(client->fd, CONTROL_OK, NULL, 0, &k->root.disk_fd, 1);

	return r < 0 ? err_sys(e, -r, "hand the disk out") : 0;
}

static int stop(struct keeper *k, const struct frame *f, struct err *e)
{
	struct control_stop body;

	if (f->len != sizeof(body))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&body, f->bytes, sizeof(body));
	begin_stop(k, body.timeout_ms < KEEPER_STOP_MAX_MS ? body.timeout_ms : KEEPER_STOP_MAX_MS);
	return 0;
}

static void say_ok(const struct client *client)
{
	control_answer(client->fd, NULL, 0);
}

static int say_ok_after(const struct client *client, int r)
{
	if (r == 0)
		say_ok(client);
	return r;
}

static int answer(struct keeper *k, struct client *client, struct frame *f, struct err *e)
{
	switch (f->kind) {
	case CONTROL_EXEC:
		return start_command(k, client, f, e);
	case CONTROL_SIGNAL:
		return say_ok_after(client, signal_command(k, client, f, e));
	case CONTROL_ATTACH:
		return attach(k, client, f, e);
	case CONTROL_PS:
		answer_ps(k, client);
		return 0;
	case CONTROL_STOP:
		return stop(k, f, e);
	case CONTROL_PAUSE:
		return say_ok_after(client, pause_all(k, e));
	case CONTROL_RESUME:
		return say_ok_after(client, resume_all(k, e));
	case CONTROL_FREEZE:
		return say_ok_after(client, freeze_for(k, client, e));
	case CONTROL_STATS:
		ask_stats(k, client);
		return 0;
	case CONTROL_FILES:
		return hand_files(k, client, e);
	case CONTROL_RELOAD:
		return say_ok_after(client, reload(k, e));
	case CONTROL_INFO:
		answer_info(k, client);
		return 0;
	case CONTROL_DISK:
		return hand_disk(k, client, e);
	}
	return err_set(e, ERR_UNSUPPORTED, "the supervisor knows no request %u", f->kind);
}

/* What it held goes with it. */
static void drop_client(struct keeper *k, unsigned index)
{
	struct client gone = k->clients[index];
	struct task *t = gone.task_id ? find_task(k, gone.task_id) : NULL;
	struct err ignored;

	k->clients[index] = k->clients[--k->client_count];
	(void)close(gone.fd);
	if (gone.is_freezing)
		(void)!thaw(k, &ignored);
	if (!t || !is_alive(t))
		return;
	if (gone.is_at_terminal) {
		const struct order_signal body = { .id = gone.task_id };

		order(k, ORDER_DETACH, &body, sizeof(body), NULL, 0);
		return;
	}
	order_signal(k, gone.task_id, SIGHUP, true);
	order_signal(k, gone.task_id, SIGCONT, true);
	t->kill_at_ms = clock_now_ms() + KEEPER_LOST_GRACE_MS;
}

/* False: it is to be dropped. */
static bool on_client(struct keeper *k, struct client *client)
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
	if (answer(k, client, &f, &e) < 0)
		control_fail(client->fd, &e);
	frame_done(&f);
	return true;
}

static void on_connection(struct keeper *k)
{
	int fd = control_accept(k->listen_fd);
	struct err e = { 0 };

	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		/* it would knock for ever: take it in, and send it away */
		cleanup_closep(&k->spare_fd);
		fd = control_accept(k->listen_fd);
		cleanup_closep(&fd);
		k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return;
	if (k->client_count == KEEPER_CLIENTS_MAX) {
		(void)err_set(&e, ERR_LIMIT, "sandbox '%s' has %u clients already",
			      k->options.named->name, KEEPER_CLIENTS_MAX);
		control_fail(fd, &e);
		(void)close(fd);
		return;
	}
	k->clients = mem_grow(k->clients, k->client_count + 1, sizeof(*k->clients));
	k->clients[k->client_count++] = (struct client){ .fd = fd };
}

/* ---- what init says ---- */

/* The kernel kills inside a group that is at its memory limit, and tells only by a count. */
static void check_memory(struct keeper *k, int status)
{
	struct cgroup_usage usage;

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return;
	cgroup_get_usage(&k->session.cgroup, &usage);
	if (usage.oom_kill_count > k->oom_kill_count)
		lifecycle_audit_limit(k->options.environ_list, k->options.named->name,
				      "memory limit");
	k->oom_kill_count = usage.oom_kill_count;
}

static void on_task_event(struct keeper *k, const struct frame *f)
{
	struct order_event event;
	struct task *t;

	if (f->len != sizeof(event))
		return;
	memcpy(&event, f->bytes, sizeof(event));
	t = find_task(k, event.id);
	if (!t)
		return;
	if (f->kind == EVENT_STARTED) {
		t->shown.pid = event.pid;
		return;
	}
	t->shown.pid = 0;
	t->shown.wait_status = event.wait_status;
	t->shown.has_timed_out = event.has_timed_out;
	t->shown.ended_ms = timestamp_now_ms();
	check_memory(k, event.wait_status);
	t->kill_at_ms = 0;
	forget_ended(k);
}

static void on_usage(struct keeper *k, const struct frame *f)
{
	struct order_usage usage;

	if (f->len != sizeof(usage))
		return;
	memcpy(&usage, f->bytes, sizeof(usage));
	for (unsigned i = 0; i < k->client_count; i++) {
		if (!k->clients[i].is_waiting_for_usage)
			continue;
		k->clients[i].is_waiting_for_usage = false;
		answer_stats(k, &k->clients[i], &usage);
	}
}

static void on_events(struct keeper *k)
{
	struct frame f;
	int r;

	while ((r = frame_receive(k->session.sandbox.orders_fd, FRAME_NO_WAIT, &f)) == 1) {
		if (f.kind == EVENT_STARTED || f.kind == EVENT_ENDED)
			on_task_event(k, &f);
		else if (f.kind == EVENT_USAGE)
			on_usage(k, &f);
		frame_done(&f);
	}
	if (!frame_may_pass(r) && !k->is_over) /* the report says more */
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

/* Once it runs, a report is init's last word. */
static void on_report(struct keeper *k)
{
	struct report report;
	struct err e = { 0 };
	int r = report_read(k->session.sandbox.report_fd, &report, &e);

	if (r == 1 && report.kind == REPORT_LIMIT)
		lifecycle_audit_limit(k->options.environ_list, k->options.named->name,
				      limit_words(report.limit));
	end(k, r == 1 && report.kind == REPORT_LIMIT ? limit_words(report.limit) : "init died");
}

/* ---- time ---- */

static int shorter(int a, uint64_t ms)
{
	int b = ms > INT_MAX ? INT_MAX : (int)ms;

	return a < 0 || b < a ? b : a;
}

static uint64_t until(uint64_t then_ms, uint64_t now_ms)
{
	return then_ms > now_ms ? then_ms - now_ms : 0;
}

static int wait_ms(const struct keeper *k)
{
	uint64_t now_ms = clock_now_ms();
	int wait = gatekeeper_wait_ms(&k->session.gatekeeper);

	if (k->is_stopping)
		wait = shorter(wait, STOP_LOOK_MS);
	if (k->options.policy->cpu_time_ms && k->session.cgroup.kind != CGROUP_NONE)
		wait = shorter(wait, CPU_INTERVAL_MS);
	if (k->options.named->expires_s)
		wait = shorter(wait,
			       until(k->options.named->expires_s * 1000, timestamp_now_ms()) + 1);
	for (unsigned i = 0; i < k->task_count; i++)
		if (k->tasks[i].kill_at_ms)
			wait = shorter(wait, until(k->tasks[i].kill_at_ms, now_ms));
	return wait;
}

static void check_cpu(struct keeper *k)
{
	uint64_t limit_ms = k->options.policy->cpu_time_ms, used_us = 0;

	if (!limit_ms || k->session.cgroup.kind == CGROUP_NONE)
		return;
	if (cgroup_get_cpu_us(&k->session.cgroup, &used_us) && used_us / 1000 <= limit_ms)
		return;
	lifecycle_audit_limit(k->options.environ_list, k->options.named->name, "cpu-time limit");
	end(k, "cpu-time limit");
}

static void check_time(struct keeper *k)
{
	uint64_t now_ms = clock_now_ms();

	for (unsigned i = 0; i < k->task_count; i++) {
		if (!k->tasks[i].kill_at_ms || now_ms < k->tasks[i].kill_at_ms)
			continue;
		k->tasks[i].kill_at_ms = 0;
		order_signal(k, k->tasks[i].shown.id, SIGKILL, true);
	}
	if (k->options.named->expires_s &&
	    timestamp_now_ms() >= k->options.named->expires_s * 1000) {
		k->is_expired = true;
		end(k, "expired");
	}
	check_cpu(k);
	check_stop(k);
}

/* ---- the loop ---- */

enum { SLOT_REPORT, SLOT_EVENTS, SLOT_SIGNAL, SLOT_LISTEN, SLOT_FIRST_GATE };

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM)
			begin_stop(k, KEEPER_STOP_DEFAULT_MS);
}

static void serve_clients(struct keeper *k, const struct pollfd *polled, unsigned count)
{
	/* from the last: dropping one moves the last into its place */
	for (unsigned i = count; i-- > 0;)
		if (polled[i].revents && !on_client(k, &k->clients[i]))
			drop_client(k, i);
}

static void turn(struct keeper *k, struct pollfd *polled)
{
	unsigned gates, first_client, clients = k->client_count;
	struct native_sandbox *s = &k->session.sandbox;

	polled[SLOT_REPORT] = (struct pollfd){ .fd = s->report_fd, .events = POLLIN };
	polled[SLOT_EVENTS] = (struct pollfd){ .fd = s->orders_fd, .events = POLLIN };
	polled[SLOT_SIGNAL] = (struct pollfd){ .fd = k->signal_fd, .events = POLLIN };
	polled[SLOT_LISTEN] = (struct pollfd){ .fd = k->listen_fd, .events = POLLIN };
	gates = gatekeeper_poll(&k->session.gatekeeper, polled + SLOT_FIRST_GATE);
	first_client = SLOT_FIRST_GATE + gates;
	for (unsigned i = 0; i < clients; i++)
		polled[first_client + i] =
			(struct pollfd){ .fd = k->clients[i].fd, .events = POLLIN };
	if (poll(polled, first_client + clients, wait_ms(k)) < 0 && errno != EINTR) {
		end(k, "the supervisor failed");
		return;
	}
	for (unsigned i = 0; i < gates; i++) {
		if (!polled[SLOT_FIRST_GATE + i].revents)
			continue;
		gatekeeper_on_ready(&k->session.gatekeeper);
		break;
	}
	if (polled[SLOT_SIGNAL].revents)
		on_signal(k);
	if (polled[SLOT_EVENTS].revents)
		on_events(k);
	if (polled[SLOT_REPORT].revents)
		on_report(k);
	if (!k->is_over)
		serve_clients(k, polled + first_client, clients);
	if (polled[SLOT_LISTEN].revents)
		on_connection(k);
	check_time(k);
	lifecycle_audit_denials(k->options.environ_list, k->options.named->name,
				&k->session.gatekeeper, &k->audited_denials);
}

static void serve(struct keeper *k)
{
	struct pollfd *polled = NULL;
	unsigned capacity = 0;

	while (!k->is_over) {
		unsigned needed = SLOT_FIRST_GATE + GATEKEEPER_POLL_MAX + k->client_count;

		if (needed > capacity) {
			capacity = needed + 8;
			polled = mem_grow(polled, capacity, sizeof(*polled));
		}
		assert(polled); /* there are slots before the first client */
		turn(k, polled);
	}
	free(polled);
}

/* ---- beginning and end ---- */

static int note_cgroup(void *context, const char *paths, struct err *e)
{
	struct keeper *k = context;
	cleanup_free char *copy = mem_dup(paths);
	char *rest = copy, *path;

	while ((path = strsep(&rest, "\n")))
		if (*path)
			(void)keyrows_list_add(&k->run.cgroups, path);
	k->is_noted = true;
	return named_save_run(k->options.named, &k->run, e);
}

static int hold_signals(struct keeper *k, struct err *e)
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

static int build(struct keeper *k, struct err *e)
{
	struct named *n = k->options.named;
	struct session_options options = {
		.policy = k->options.policy,
		.environ_list = k->options.environ_list,
		.root = &k->root.root,
		.serves = true,
		.is_changeable = true,
		.name = n->name,
		.machine_id = n->id,
		.before_cgroup = note_cgroup,
		.context = k,
	};
	struct command none;

	k->run = (struct named_run){
		.state = NAMED_RUNNING,
		.supervisor_pid = (uint64_t)getpid(),
		.started_s = (uint64_t)time(NULL),
	};
	if (hold_signals(k, e) < 0 || rootplan_open(&k->root, k->options.environ_list, n,
						    k->options.policy, k->options.image, e) < 0)
		return -1;
	options.disk_path = k->root.disk_path;
	if (session_prepare(&k->session, &options, e) < 0)
		return -1;
	command_init(&none, k->options.policy);
	if (session_start(&k->session, &none, 0, e) < 0 || session_await_init(&k->session, e) < 0)
		return -1;
	if (fcntl(k->session.sandbox.orders_fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return err_sys(e, errno, "prepare the socket for orders");
	k->run.init_pid = (uint64_t)k->session.sandbox.pid;
	k->run.switches_ids = k->session.idmap.kind != IDMAP_ONE;
	k->run.host_gid = k->session.idmap.kind == IDMAP_PRIVATE ? k->session.idmap.host_gid : 0;
	if (control_listen(n->dir_fd, &k->listen_fd, e) < 0)
		return -1;
	/* without a cgroup nothing was written yet, or only about an earlier start */
	return k->is_noted ? named_add_processes(n, &k->run, e) : named_save_run(n, &k->run, e);
}

/*
 * Processes, gate, cgroups; then the file says so, then nobody can connect any more.
 *
 * The last descriptor of the root is what keeps it mounted, and the kernel writes out the whole
 * file system below when that is closed. Where the disk is a directory nobody has to wait for it:
 * it stays open until we exit. A disk of its own has to be free before it can be mounted again.
 */
static void take_back(struct keeper *k)
{
	if (!k->options.named->has_disk_limit)
		k->root_fd = take_fd(&k->session.sandbox.root_fd);
	session_done(&k->session);
	rootplan_done(&k->root);
	k->run.state = NAMED_STOPPED;
	k->run.ended_s = (uint64_t)time(NULL);
	k->run.supervisor_pid = k->run.init_pid = 0;
	keyrows_list_free(&k->run.cgroups);
	free(k->run.reason);
	k->run.reason = k->reason;
	save_run(k);
	(void)unlinkat(k->options.named->dir_fd, CONTROL_SOCKET, 0);
}

/* Clients that wait for the end see it now; the lock is free by then. */
static void let_go(struct keeper *k)
{
	named_unlock(k->options.named);
	while (k->client_count > 0)
		(void)close(k->clients[--k->client_count].fd);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* What our caller left open in us is not ours to hold for days. */
static void close_others(const struct keeper *k, int ready_fd)
{
	const struct named *n = k->options.named;
	int kept[] = { 2, n->dir_fd, n->lock_fd, ready_fd,
		       k->options.image ? k->options.image->lock_fd : 2 };

	qsort(kept, COUNT_OF(kept), sizeof(kept[0]), by_number);
	for (size_t i = 0; i < COUNT_OF(kept); i++) {
		unsigned first = (unsigned)kept[i] + 1;
		unsigned last = i + 1 < COUNT_OF(kept) ? (unsigned)kept[i + 1] : 0;

		if (last == 0)
			(void)syscall(SYS_close_range, first, ~0u, 0);
		else if (first < last)
			(void)syscall(SYS_close_range, first, last - 1, 0);
	}
}

static int detach(struct keeper *k, int ready_fd, struct err *e)
{
	struct named *n = k->options.named;
	char title[16];
	int r;

	(void)setsid();
	(void)!chdir("/");
	(void)umask(077);
	r = file_leave_streams();
	if (r < 0)
		return err_sys(e, -r, "let go of the caller's streams");
	(void)snprintf(title, sizeof(title), "ak:%s", n->name);
	(void)prctl(PR_SET_NAME, title, 0, 0, 0);
	close_others(k, ready_fd);
	return 0;
}

static _Noreturn void child_main(const struct keeper_options *o, int ready_fd)
{
	struct keeper k = {
		.options = *o,
		.listen_fd = -1,
		.signal_fd = -1,
		.spare_fd = -1,
		.root_fd = -1,
	};
	struct err e = { 0 };

	session_init(&k.session);
	rootplan_init(&k.root);
	if (detach(&k, ready_fd, &e) < 0 || build(&k, &e) < 0) {
		k.reason = mem_dup("start failed");
		take_back(&k);
		report_failed(ready_fd, &e);
		_exit(EXIT_FAILED);
	}
	report_started(ready_fd);
	(void)close(ready_fd);
	serve(&k);
	take_back(&k);
	if (k.is_expired)
		lifecycle_remove_expired(o->environ_list, o->named);
	let_go(&k);
	_exit(0);
}

int keeper_start(const struct keeper_options *o, struct err *e)
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
		(void)kill(pid, SIGTERM); /* it may well run: what was not heard of has to end */
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
