/* supervisorrequests - answers requests of a supervisor's clients; see supervisorrequests.h. */
#include "named/supervisorrequests.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/control.h"
#include "named/supervisorservices.h"
#include "named/supervisorsleep.h"
#include "named/supervisorstate.h"
#include "host/cpuset.h"
#include "protocol/order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void say_ok(const struct supervisorstate_client *client)
{
	control_answer(client->fd, NULL, 0);
}

/* ---- commands ---- */

static int check_command(const struct supervisorstate *k, const struct order_command *c,
			 struct err *e)
{
	const struct profile *profile = profile_get(k->options.policy->profile);

	if (k->is_stopping)
		return err_set(e, ERR_BUSY, "sandbox '%s' is stopping", k->options.named->name);
	if (k->freeze_count > 0)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused ('agentkernel resume %s')",
			       k->options.named->name, k->options.named->name);
	if (tasktable_count_alive(&k->tasks) >= CONTROL_TASKS_MAX)
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

static unsigned judge_streams(const struct frame *f)
{
	struct stat st;

	for (unsigned i = 1; i < f->fd_count; i++)
		if (fstat(f->fds[i], &st) < 0 || S_ISREG(st.st_mode))
			return SESSION_FILE_STREAM;
	return 0;
}

/* Adds /dev/null as stdin and the log files for the output. */
static int add_log(const struct supervisorstate *k, uint32_t id, struct frame *f, struct err *e)
{
	f->fds[f->fd_count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (f->fds[f->fd_count] < 0)
		return err_sys(e, errno, "open /dev/null");
	f->fd_count++;
	if (tasktable_open_log(&k->tasks, id, &f->fds[f->fd_count], e) < 0)
		return -1;
	f->fd_count += 2;
	return 0;
}

/* Remembers who started the command, because the client is gone when it ends. */
static void note_asker(struct supervisorstate *k, const struct supervisorstate_client *client,
		       uint32_t id)
{
	struct task *t = tasktable_find(&k->tasks, id);
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct audit_caller asker;

	if (!t || getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return;
	audit_find_caller_of(peer.uid, (uint32_t)peer.pid, &asker);
	t->asker_uid = asker.actor.uid;
	t->asker_pid = asker.actor.pid;
	(void)snprintf(t->asker_program, sizeof(t->asker_program), "%s", asker.actor.program);
}

static int start_command(struct supervisorstate *k, struct supervisorstate_client *client,
			 struct frame *f, struct err *e)
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
	c.id = tasktable_choose_id(&k->tasks);
	c.seccomp_variant = k->session.backend->choose_filter(&k->session, streams);
	if (c.uid != 0 || !profile_get(k->options.policy->profile)->runs_as_root)
		c.flags &= ~(uint32_t)ORDER_CAPABILITIES;
	if (c.flags & ORDER_DETACHED && add_log(k, c.id, f, e) < 0)
		return -1;
	memcpy(f->bytes, &c, sizeof(c));
	tasktable_add(&k->tasks, &c, texts.argv);
	if (!(c.flags & ORDER_DETACHED))
		client->task_id = c.id;
	supervisorstate_order(k, ORDER_START, f->bytes, f->len, f->fds, f->fd_count);
	if (c.flags & ORDER_DETACHED) {
		note_asker(k, client, c.id);
		control_answer(client->fd, &c.id, sizeof(c.id));
	}
	return 0;
}

static int signal_command(struct supervisorstate *k, const struct supervisorstate_client *client,
			  const struct frame *f, struct err *e)
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
	t = body.id ? tasktable_find(&k->tasks, body.id) : NULL;
	if (!t || !tasktable_is_alive(t))
		return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " runs in sandbox '%s'",
			       body.id, k->options.named->name);
	supervisorstate_order(k, ORDER_SIGNAL, &body, sizeof(body), NULL, 0);
	return 0;
}

/* Disconnects other clients from the terminal. */
static void take_terminal(struct supervisorstate *k,
			  const struct supervisorstate_client *from_others, uint32_t id)
{
	for (unsigned i = 0; i < k->client_count; i++)
		if (&k->clients[i] != from_others && k->clients[i].is_at_terminal &&
		    k->clients[i].task_id == id) {
			k->clients[i].task_id = 0;
			(void)shutdown(k->clients[i].fd, SHUT_RDWR);
		}
}

static int attach(struct supervisorstate *k, struct supervisorstate_client *client, struct frame *f,
		  struct err *e)
{
	struct order_signal body;
	struct task *t;

	if (f->len != sizeof(body) || f->fd_count != 1)
		return err_set(e, ERR_INVALID, "half a request");
	if (k->freeze_count > 0)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused", k->options.named->name);
	memcpy(&body, f->bytes, sizeof(body));
	t = body.id == ORDER_ALL ? tasktable_find_shell(&k->tasks)
				 : tasktable_find(&k->tasks, body.id);
	if (!t || !tasktable_is_alive(t) || !(t->shown.flags & ORDER_TTY) ||
	    !(t->shown.flags & ORDER_DETACHED))
		return err_set(e, ERR_NOT_FOUND, "no such terminal in sandbox '%s'",
			       k->options.named->name);
	body.id = t->shown.id;
	take_terminal(k, client, body.id);
	client->task_id = body.id;
	client->is_at_terminal = true;
	supervisorstate_order(k, ORDER_ATTACH, &body, sizeof(body), f->fds, 1);
	control_answer(client->fd, &body.id, sizeof(body.id));
	return 0;
}

/* Who types into a detached command: any number of clients, while its output goes to its log. */
static int give_input(struct supervisorstate *k, const struct supervisorstate_client *client,
		      struct frame *f, struct err *e)
{
	struct order_signal body;
	const struct task *t;

	if (f->len != sizeof(body) || f->fd_count != (f->kind == CONTROL_INPUT ? 1 : 0))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&body, f->bytes, sizeof(body));
	t = tasktable_find(&k->tasks, body.id);
	if (!t || !tasktable_is_alive(t) || !(t->shown.flags & ORDER_DETACHED))
		return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " runs in sandbox '%s'",
			       body.id, k->options.named->name);
	supervisorstate_order(k, f->kind == CONTROL_INPUT ? ORDER_INPUT : ORDER_END_INPUT, &body,
			      sizeof(body), f->fds, f->fd_count);
	say_ok(client);
	return 0;
}

static void answer_ps(struct supervisorstate *k, const struct supervisorstate_client *client)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_BODY_MAX_BYTES);
	for (unsigned i = 0; i < k->tasks.count; i++)
		buf_add(&out, &k->tasks.rows[i].shown, sizeof(k->tasks.rows[i].shown));
	control_answer(client->fd, out.bytes, out.len);
}

/* Also works for an ended command that is still in the table. */
static int answer_command(struct supervisorstate *k, const struct supervisorstate_client *client,
			  const struct frame *f, struct err *e)
{
	const struct task *t;
	cleanup_buf struct buf out;
	uint32_t id;

	buf_init(&out, FRAME_BODY_MAX_BYTES);
	if (f->len != sizeof(id))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&id, f->bytes, sizeof(id));
	t = tasktable_find(&k->tasks, id);
	if (!t)
		return err_set(e, ERR_NOT_FOUND, "no command %08" PRIx32 " in sandbox '%s'", id,
			       k->options.named->name);
	buf_add(&out, &t->command, sizeof(t->command));
	buf_add(&out, t->words.bytes, t->words.len);
	control_answer(client->fd, out.bytes, out.len);
	return 0;
}

/* ---- freezing ---- */

/* A dozing sandbox is frozen already: the pause takes that freeze over. */
static int pause_all(struct supervisorstate *k, struct err *e)
{
	if (k->is_paused)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused already",
			       k->options.named->name);
	if (!k->is_dozing && supervisorstate_freeze(k, e) < 0)
		return -1;
	k->is_dozing = false;
	k->is_paused = true;
	supervisorstate_set_state(k, NAMED_PAUSED);
	return 0;
}

static int resume_all(struct supervisorstate *k, struct err *e)
{
	if (k->is_dozing)
		return supervisorsleep_wake(k, e);
	if (!k->is_paused)
		return err_set(e, ERR_BUSY, "sandbox '%s' is not paused", k->options.named->name);
	if (supervisorstate_thaw(k, e) < 0)
		return -1;
	k->is_paused = false;
	supervisorstate_set_state(k, NAMED_RUNNING);
	return 0;
}

static int freeze_for(struct supervisorstate *k, struct supervisorstate_client *client,
		      struct err *e)
{
	if (client->is_freezing)
		return err_set(e, ERR_INVALID, "this connection freezes already");
	if (supervisorstate_freeze(k, e) < 0)
		return -1;
	client->is_freezing = true;
	return 0;
}

/* Before a checkpoint, removes from the workspace what git outside would run. */
static void say_still(struct supervisorstate *k, const struct supervisorstate_client *client,
		      uint32_t request)
{
	if (request == CONTROL_FREEZE)
		session_inspect(&k->session);
	say_ok(client);
}

/* Without a cgroup freezer, init needs a while to stop all processes: answer later. */
static int answer_when_still(struct supervisorstate *k, struct supervisorstate_client *client,
			     uint32_t request, int r)
{
	if (r < 0)
		return r;
	if (k->is_still)
		say_still(k, client, request);
	else
		client->awaited_request = request;
	return 0;
}

static void undo_freeze(struct supervisorstate *k, struct supervisorstate_client *client,
			uint32_t request)
{
	struct err ignored;

	if (request == CONTROL_PAUSE) {
		(void)!resume_all(k, &ignored);
		return;
	}
	client->is_freezing = false;
	(void)!supervisorstate_thaw(k, &ignored);
}

void supervisorrequests_answer_frozen(struct supervisorstate *k, const struct order_frozen *frozen)
{
	struct err e = { 0 };

	if (k->freeze_count == 0 || frozen->number != k->freeze_number)
		return; /* thawed meanwhile */
	k->is_still = frozen->is_still;
	if (k->is_dozing && !frozen->is_still)
		(void)!supervisorsleep_wake(k, &e); /* it tries again after the idle time */
	(void)err_set(&e, ERR_TIMEOUT,
		      "the sandbox did not freeze: a process inside does not stop");
	for (unsigned i = 0; i < k->client_count; i++) {
		struct supervisorstate_client *client = &k->clients[i];
		uint32_t request = client->awaited_request;

		client->awaited_request = 0;
		if (request && frozen->is_still)
			say_still(k, client, request);
		if (!request || frozen->is_still)
			continue;
		undo_freeze(k, client, request);
		control_fail(client->fd, &e);
	}
}

/* ---- statistics ---- */

void supervisorrequests_answer_stats(struct supervisorstate *k,
				     struct supervisorstate_client *client,
				     const struct order_usage *usage)
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
		.pids_refused_count = u.pids_refused_count - client->pids_refused_count,
		.read_bytes = u.read_bytes,
		.written_bytes = u.written_bytes,
		.sent_bytes = k->session.gatekeeper.sent_bytes,
		.received_bytes = k->session.gatekeeper.received_bytes,
		.time_us = clock_now_us(),
	};
	control_answer(client->fd, &stats, sizeof(stats));
}

/* Without a cgroup, init counts; but a frozen init would not answer. */
static void ask_stats(struct supervisorstate *k, struct supervisorstate_client *client)
{
	struct cgroup_usage u;

	cgroup_get_usage(&k->session.cgroup, &u);
	if ((u.has_memory && u.has_cpu && u.has_pids) || k->freeze_count > 0) {
		supervisorrequests_answer_stats(k, client, NULL);
		return;
	}
	client->is_waiting_for_usage = true;
	supervisorstate_order(k, ORDER_USAGE, NULL, 0, NULL, 0);
}

static void answer_info(struct supervisorstate *k, const struct supervisorstate_client *client)
{
	const struct control_info info = {
		.host_gid = k->run.host_gid,
		.switches_ids = k->run.switches_ids,
		.is_paused = k->is_paused,
		.task_count = tasktable_count_alive(&k->tasks),
	};

	control_answer(client->fd, &info, sizeof(info));
}

/* Reads pending events first, so that the answer includes the latest changes. */
static void answer_notices(struct supervisorstate *k, struct supervisorstate_client *client)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_BODY_MAX_BYTES);
	supervisorstate_look_at_names(k);
	supervisorstate_take_notices(k, client->notice_count, &out);
	client->notice_count = (unsigned)keyrows_list_count(k->session.names.notices);
	k->told_notices = client->notice_count;
	control_answer(client->fd, out.bytes, out.len);
}

/* ---- ways in ---- */

static struct control_port show_port(const struct published_port *p)
{
	struct control_port shown = { .inner = p->spec.inner, .is_kept = p->is_kept };

	_Static_assert(CONTROL_PORT_MAX_BYTES >= PUBLISH_TEXT_MAX_BYTES, "too short");
	(void)published_format(p, shown.at);
	(void)publish_format(&p->spec, shown.spec);
	return shown;
}

static void answer_ports(const struct supervisorstate *k,
			 const struct supervisorstate_client *client)
{
	const struct published *ports = &k->session.gatekeeper.published;
	struct control_port shown[PUBLISHED_MAX];

	for (unsigned i = 0; i < ports->count; i++)
		shown[i] = show_port(&ports->ports[i]);
	control_answer(client->fd, shown, ports->count * sizeof(shown[0]));
}

static int reach(struct supervisorstate *k, struct supervisorstate_client *client,
		 const struct frame *f, struct err *e)
{
	const struct published *ports = &k->session.gatekeeper.published;
	struct control_reach body;
	struct control_reached answer = { 0 };
	int r;

	if (f->len != sizeof(body))
		return err_set(e, ERR_INVALID, "half a request");
	if (k->session.sandbox.dial_fd < 0)
		return err_set(e, ERR_UNSUPPORTED, "this sandbox takes no connections");
	memcpy(&body, f->bytes, sizeof(body));
	answer.port = body.port ? body.port : supervisorservices_main_port(k);
	if (!answer.port && ports->count > 0)
		answer.port = ports->ports[0].spec.inner;
	answer.readiness = supervisorservices_readiness(k, answer.port);
	client->is_door = true;
	r = frame_send(client->fd, CONTROL_OK, &answer, sizeof(answer), &k->session.sandbox.dial_fd,
		       1);
	return r < 0 ? err_sys(e, -r, "hand the way in out") : 0;
}

static int hold(struct supervisorstate *k, struct supervisorstate_client *client, struct err *e)
{
	if (k->is_paused)
		return err_set(e, ERR_BUSY, "sandbox '%s' is paused", k->options.named->name);
	client->is_holding = true;
	say_ok(client);
	return 0;
}

static void answer_services(const struct supervisorstate *k,
			    const struct supervisorstate_client *client)
{
	struct control_service shown[SERVICES_MAX];

	control_answer(client->fd, shown, supervisorservices_show(k, shown) * sizeof(shown[0]));
}

static int forward(struct supervisorstate *k, struct supervisorstate_client *client,
		   const struct frame *f, struct err *e)
{
	const struct published_port *port;
	struct control_port shown;
	struct publish spec;

	if (client->forward_number)
		return err_set(e, ERR_INVALID, "this connection forwards a port already");
	if (publish_parse(f->bytes, &spec, e) < 0 ||
	    gatekeeper_publish(&k->session.gatekeeper, &spec, false, &port, e) < 0)
		return -1;
	client->forward_number = port->number;
	shown = show_port(port);
	control_answer(client->fd, &shown, sizeof(shown));
	return 0;
}

/* Opens the ports that are new in the policy; on failure none. */
static int open_new_ports(struct supervisorstate *k, const struct policy *p, struct err *e)
{
	struct gatekeeper *g = &k->session.gatekeeper;
	uint32_t before = g->published.last_number;
	const struct published_port *port;
	struct publish spec;

	for (char *const *text = p->publish; text && *text; text++) {
		if (published_find(&g->published, *text))
			continue;
		if (publish_parse(*text, &spec, e) == 0 &&
		    gatekeeper_publish(g, &spec, true, &port, e) == 0)
			continue;
		for (uint32_t number = before + 1; number <= g->published.last_number; number++)
			gatekeeper_unpublish(g, number);
		return -1;
	}
	return 0;
}

static void close_old_ports(struct supervisorstate *k, const struct policy *p)
{
	struct gatekeeper *g = &k->session.gatekeeper;
	char text[PUBLISH_TEXT_MAX_BYTES];

	for (unsigned i = g->published.count; i-- > 0;) {
		const struct published_port *port = &g->published.ports[i];

		if (port->is_kept &&
		    !keyrows_list_has(p->publish, publish_format(&port->spec, text)))
			gatekeeper_unpublish(g, port->number);
	}
}

/* ---- reloading the policy ---- */

/* Servers that relay connections look again who may. */
static void close_doors(struct supervisorstate *k)
{
	for (unsigned i = 0; i < k->client_count; i++)
		if (k->clients[i].is_door)
			(void)shutdown(k->clients[i].fd, SHUT_RDWR);
}

static bool is_same_list(char *const *a, char *const *b)
{
	size_t count = a ? keyrows_list_count(a) : 0;

	for (size_t i = 0; i < count; i++)
		if (!b || !keyrows_list_has(b, a[i]))
			return false;
	return count == (b ? keyrows_list_count(b) : 0);
}

static void reload_record(struct supervisorstate *k)
{
	CLEANUP(named_done) struct named fresh;
	struct named *n = k->options.named;
	struct err ignored;
	bool is_other;

	named_init(&fresh);
	if (named_open(k->options.ak, n->name, &fresh, &ignored) < 0)
		return;
	n->expires_s = fresh.expires_s;
	if (!is_same_list(n->public_ports, fresh.public_ports)) {
		char **old = n->public_ports;

		n->public_ports = fresh.public_ports;
		fresh.public_ports = old;
		close_doors(k);
	}
	is_other = n->checkpoint_every_ms != fresh.checkpoint_every_ms;
	n->checkpoint_every_ms = fresh.checkpoint_every_ms;
	n->checkpoint_keep = fresh.checkpoint_keep;
	if (is_other)
		checkpointinterval_change(&k->checkpoints, n);
	if (!n->checkpoint_every_ms)
		supervisorstate_note_trouble(k, "");
}

/* Changes the cpu affinity of running threads, else they could not use additional cpus. */
static int move_to_cpus(const struct supervisorstate *k, const struct policy *p, struct err *e)
{
	cpu_set_t set;

	if (k->session.cgroup.kind == CGROUP_NONE || p->cpus_milli == 0 ||
	    p->cpus_milli == k->options.policy->cpus_milli)
		return 0;
	if (cpuset_choose(session_count_cpus(p), 0, &set, e) < 0)
		return -1;
	cgroup_set_affinity(&k->session.cgroup, &set);
	return 0;
}

static int reload(struct supervisorstate *k, struct err *e)
{
	struct policy *p = mem_alloc(sizeof(*p));
	struct order_limits limits;
	bool has_cgroup = k->session.cgroup.kind != CGROUP_NONE;

	reload_record(k);
	if (supervisorservices_load(k, e) < 0) {
		free(p);
		return -1;
	}
	if (named_load_policy(k->options.named, p, e) < 0) {
		free(p);
		return -1;
	}
	if (open_new_ports(k, p, e) < 0 ||
	    (has_cgroup &&
	     (cgroup_set_limits(&k->session.cgroup, p, e) < 0 || move_to_cpus(k, p, e) < 0))) {
		policy_done(p);
		free(p);
		return -1;
	}
	limits = (struct order_limits){
		.memory_bytes = has_cgroup ? 0 : p->memory_bytes,
		.cpu_ms = has_cgroup ? 0 : p->cpu_time_ms,
		.pids_count = !has_cgroup && k->run.switches_ids ? p->pids_count : 0,
		.shown = { p->memory_bytes, p->cpus_milli, p->pids_count },
	};
	supervisorstate_order(k, ORDER_LIMITS, &limits, sizeof(limits), NULL, 0);
	/* protections already built stay; only fields that can change take effect */
	policy_done(k->options.policy);
	*k->options.policy = *p;
	free(p);
	close_old_ports(k, k->options.policy);
	return k->options.policy->has_network
		       ? gatekeeper_set_rules(&k->session.gatekeeper, k->options.policy, e)
		       : 0;
}

/* ---- the table of requests ---- */

static int hand_files(struct supervisorstate *k, struct supervisorstate_client *client,
		      struct err *e)
{
	const struct handle *s = &k->session.sandbox;
	const int fds[] = { s->root_fd, s->userns_fd, s->mntns_fd };
	int r = frame_send(client->fd, CONTROL_OK, NULL, 0, fds, COUNT_OF(fds));

	client->is_holding = true; /* as long as it works on files */
	return r < 0 ? err_sys(e, -r, "hand the root out") : 0;
}

static int hand_disk(struct supervisorstate *k, const struct supervisorstate_client *client,
		     struct err *e)
{
	int r = frame_send(client->fd, CONTROL_OK, NULL, 0, &k->root.disk_fd, 1);

	return r < 0 ? err_sys(e, -r, "hand the disk out") : 0;
}

static int stop(struct supervisorstate *k, const struct frame *f, struct err *e)
{
	struct control_stop body;

	if (f->len != sizeof(body))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&body, f->bytes, sizeof(body));
	supervisorstate_begin_stop(k, body.timeout_ms < SUPERVISOR_STOP_MAX_MS
					      ? body.timeout_ms
					      : SUPERVISOR_STOP_MAX_MS);
	return 0;
}

static int say_ok_after(const struct supervisorstate_client *client, int r)
{
	if (r == 0)
		say_ok(client);
	return r;
}

bool supervisorrequests_must_wait(const struct supervisorstate *k, uint32_t kind)
{
	return (kind == CONTROL_EXEC || kind == CONTROL_ATTACH) && k->freeze_count > k->is_dozing &&
	       !k->is_paused && !k->is_stopping && !k->is_over;
}

/* Requests that use the sandbox wake it; those that look at it, or end it, do not. */
static bool is_use(uint32_t kind)
{
	return kind == CONTROL_EXEC || kind == CONTROL_SIGNAL || kind == CONTROL_ATTACH ||
	       kind == CONTROL_FILES || kind == CONTROL_FORWARD || kind == CONTROL_REACH ||
	       kind == CONTROL_HOLD || kind == CONTROL_WAKE || kind == CONTROL_INPUT ||
	       kind == CONTROL_SERVICE_RESTART;
}

int supervisorrequests_answer(struct supervisorstate *k, struct supervisorstate_client *client,
			      struct frame *f, struct err *e)
{
	if (is_use(f->kind) && supervisorsleep_wake(k, e) < 0)
		return -1;
	switch (f->kind) {
	case CONTROL_EXEC:
		return start_command(k, client, f, e);
	case CONTROL_SIGNAL:
		return say_ok_after(client, signal_command(k, client, f, e));
	case CONTROL_ATTACH:
		return attach(k, client, f, e);
	case CONTROL_INPUT:
	case CONTROL_END_INPUT:
		return give_input(k, client, f, e);
	case CONTROL_PS:
		answer_ps(k, client);
		return 0;
	case CONTROL_COMMAND:
		return answer_command(k, client, f, e);
	case CONTROL_STOP:
		return stop(k, f, e);
	case CONTROL_PAUSE:
		return answer_when_still(k, client, f->kind, pause_all(k, e));
	case CONTROL_RESUME:
		return say_ok_after(client, resume_all(k, e));
	case CONTROL_FREEZE:
		return answer_when_still(k, client, f->kind, freeze_for(k, client, e));
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
	case CONTROL_PORTS:
		answer_ports(k, client);
		return 0;
	case CONTROL_FORWARD:
		return forward(k, client, f, e);
	case CONTROL_NOTICES:
		answer_notices(k, client);
		return 0;
	case CONTROL_REACH:
		return reach(k, client, f, e);
	case CONTROL_HOLD:
		return hold(k, client, e);
	case CONTROL_RELEASE:
		client->is_holding = false;
		return 0;
	case CONTROL_WAKE:
		say_ok(client);
		return 0;
	case CONTROL_SERVICES:
		answer_services(k, client);
		return 0;
	case CONTROL_SERVICE_RESTART:
		return say_ok_after(client, supervisorservices_restart(k, f->bytes, e));
	}
	return err_set(e, ERR_UNSUPPORTED, "the supervisor knows no request %u", f->kind);
}
