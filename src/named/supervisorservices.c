/*
 * supervisorservices - the services of a running sandbox; see supervisorservices.h.
 *
 * Theory of operation. A service is a detached command of the supervisor's own (protocol/order.h),
 * with a log like any other. Its state changes in three places: a turn of the loop, in which a
 * start or a probe is due or a probe has an answer; the end of its command; a change of the file.
 * A probe is a connection to the port that is closed as soon as it is there.
 */
#include "named/supervisorservices.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dialin.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/turn.h"
#include "named/execution.h"
#include "named/supervisorstate.h"
#include "policy/environment.h"
#include "protocol/order.h"
#include "protocol/report.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections to its port go on: to the service, or to be refused. */
static void release(struct supervisorstate *k, struct supervisorservice *s)
{
	if (s->release_at_ms)
		gatekeeper_release(&k->session.gatekeeper, (uint16_t)s->spec.port);
	s->release_at_ms = 0;
}

static void end_probe(struct supervisorservice *s)
{
	cleanup_closep(&s->answer_fd);
	cleanup_closep(&s->probe_fd);
}

static void service_free(struct supervisorservice *s)
{
	end_probe(s);
	cleanup_closep(&s->report_fd);
	services_done_one(&s->spec);
}

void supervisorservices_done(struct supervisorservices *s)
{
	for (unsigned i = 0; i < s->count; i++)
		service_free(&s->list[i]);
	free(s->list);
	*s = (struct supervisorservices){ 0 };
}

static struct supervisorservice *find(const struct supervisorstate *k, const char *name)
{
	for (unsigned i = 0; i < k->services.count; i++)
		if (strcmp(k->services.list[i].spec.name, name) == 0)
			return &k->services.list[i];
	return NULL;
}

static bool is_running(const struct supervisorservice *s)
{
	return s->state == CONTROL_SERVICE_STARTING || s->state == CONTROL_SERVICE_READY;
}

/* ---- starting ---- */

static bool has_what_it_needs(const struct supervisorstate *k, const struct supervisorservice *s)
{
	for (char *const *need = s->spec.needs; need && *need; need++) {
		const struct supervisorservice *other = find(k, *need);

		if (other && other->state != CONTROL_SERVICE_READY)
			return false;
	}
	return true;
}

/* The policy's variables, then the service's own. */
static char **build_environment(const struct supervisorstate *k, const struct service *s)
{
	struct policy p = *k->options.policy; /* all but .env is borrowed */
	unsigned own = s->env ? (unsigned)keyrows_list_count(s->env) : 0;
	char **list;

	p.env = mem_alloc((p.env_count + own + 1) * sizeof(*p.env));
	memcpy(p.env, k->options.policy->env, p.env_count * sizeof(*p.env));
	for (unsigned i = 0; i < own && p.env_count < POLICY_ENV_MAX; i++)
		p.env[p.env_count++] = s->env[i];
	list = environment_build(&p, &k->options.ak->caller, NULL);
	free(p.env);
	return list;
}

static int send_start(struct supervisorstate *k, struct supervisorservice *s, int report_fd,
		      struct err *e)
{
	const struct service *spec = &s->spec;
	const char *workdir = spec->workdir ? spec->workdir : k->options.policy->workdir;
	int fds[4] = { report_fd, -1, -1, -1 };
	struct order_command c;
	cleanup_buf struct buf body;
	char **environment;

	buf_init(&body, FRAME_BODY_MAX_BYTES);
	execution_fill_order(k->options.policy, ORDER_DETACHED, &c);
	c.id = tasktable_choose_id(&k->tasks);
	c.seccomp_variant = k->session.backend->choose_filter(&k->session, 0);
	if (c.uid != 0 || !profile_get(k->options.policy->profile)->runs_as_root)
		c.flags &= ~(uint32_t)ORDER_CAPABILITIES;
	environment = build_environment(k, spec);
	order_format_command(&c, workdir, spec->words, environment, &body);
	environment_free(environment);
	if (body.is_cut)
		return err_set(e, ERR_LIMIT, "its command is longer than %u bytes",
			       FRAME_BODY_MAX_BYTES);
	fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fds[1] < 0)
		return err_sys(e, errno, "open /dev/null");
	if (tasktable_open_log(&k->tasks, c.id, &fds[2], e) == 0) {
		tasktable_add(&k->tasks, &c, spec->words);
		tasktable_find(&k->tasks, c.id)->is_service = true;
		s->task_id = c.id;
		supervisorstate_order(k, ORDER_START, body.bytes, body.len, fds, COUNT_OF(fds));
	}
	for (size_t i = 1; i < COUNT_OF(fds); i++)
		cleanup_closep(&fds[i]);
	return e->code == ERR_NONE ? 0 : -1;
}

static void plan_restart(struct supervisorservice *s, uint64_t now_ms)
{
	uint64_t wait_ms = SERVICES_DELAY_FIRST_MS;

	if (now_ms - s->started_ms >= SERVICES_STEADY_MS)
		s->quick_ends = 0;
	for (unsigned i = 0; i < s->quick_ends && wait_ms < SERVICES_DELAY_MAX_MS; i++)
		wait_ms *= 2;
	if (wait_ms > SERVICES_DELAY_MAX_MS)
		wait_ms = SERVICES_DELAY_MAX_MS;
	s->quick_ends++;
	s->restarts++;
	s->state = CONTROL_SERVICE_WAITING;
	s->at_ms = now_ms + wait_ms;
}

static void start(struct supervisorstate *k, struct supervisorservice *s, uint64_t now_ms)
{
	struct err e = { 0 };
	int ends[2];

	s->started_ms = now_ms;
	cleanup_closep(&s->report_fd);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		(void)err_sys(&e, errno, "create a pipe");
	} else {
		s->report_fd = ends[0];
		(void)!send_start(k, s, ends[1], &e);
		(void)close(ends[1]);
	}
	if (e.code != ERR_NONE) {
		logfile_say(&k->log, "cannot start service %s: %s", s->spec.name, e.msg);
		plan_restart(s, now_ms);
		return;
	}
	s->state = s->spec.port ? CONTROL_SERVICE_STARTING : CONTROL_SERVICE_READY;
	s->probe_ms = SERVICES_PROBE_FIRST_MS;
	s->at_ms = s->spec.port ? now_ms + s->probe_ms : 0;
}

/* ---- is its port open? ---- */

static void probe_again_later(struct supervisorservice *s)
{
	end_probe(s);
	s->at_ms = clock_now_ms() + s->probe_ms;
	s->probe_ms =
		s->probe_ms * 2 < SERVICES_PROBE_MAX_MS ? s->probe_ms * 2 : SERVICES_PROBE_MAX_MS;
}

static void probe(const struct supervisorstate *k, struct supervisorservice *s, unsigned family)
{
	const struct dialin_target target = { .family = (uint16_t)family,
					      .port = (uint16_t)s->spec.port };

	s->family = family;
	s->at_ms = 0;
	if (dialin_ask(k->session.sandbox.dial_fd, &target, &s->answer_fd) < 0)
		probe_again_later(s);
}

static void on_refused(const struct supervisorstate *k, struct supervisorservice *s)
{
	end_probe(s);
	if (s->family == DIALIN_IPV4)
		probe(k, s, DIALIN_IPV6);
	else
		probe_again_later(s);
}

static void on_answer(const struct supervisorstate *k, struct supervisorservice *s)
{
	int r = dialin_take(s->answer_fd, &s->probe_fd);

	if (r == -EAGAIN)
		return;
	cleanup_closep(&s->answer_fd);
	if (r < 0)
		on_refused(k, s);
}

static void on_connected(struct supervisorstate *k, struct supervisorservice *s)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(s->probe_fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
		on_refused(k, s);
		return;
	}
	end_probe(s);
	s->state = CONTROL_SERVICE_READY;
	release(k, s);
}

/* ---- in the loop ---- */

void supervisorservices_watch(struct supervisorstate *k, struct turn *t)
{
	uint64_t now_ms = clock_now_ms();

	for (unsigned i = 0; i < k->services.count; i++) {
		struct supervisorservice *s = &k->services.list[i];

		s->answer_slot = turn_watch(t, s->answer_fd, POLLIN);
		s->probe_slot = turn_watch(t, s->probe_fd, POLLOUT);
		if (k->freeze_count == 0 && !k->is_stopping &&
		    (is_running(s) || has_what_it_needs(k, s)))
			turn_wake_at(t, s->at_ms, now_ms);
		turn_wake_at(t, s->release_at_ms, now_ms);
	}
}

void supervisorservices_on_turn(struct supervisorstate *k, const struct turn *t)
{
	uint64_t now_ms = clock_now_ms();

	for (unsigned i = 0; i < k->services.count; i++) {
		struct supervisorservice *s = &k->services.list[i];

		if (s->answer_fd >= 0 && turn_is_ready(t, s->answer_slot))
			on_answer(k, s);
		else if (s->probe_fd >= 0 && turn_is_ready(t, s->probe_slot))
			on_connected(k, s);
		if (s->release_at_ms && now_ms >= s->release_at_ms)
			release(k, s);
	}
	if (k->freeze_count > 0 || k->is_stopping || k->is_over)
		return;
	for (unsigned i = 0; i < k->services.count; i++) {
		struct supervisorservice *s = &k->services.list[i];

		if (!s->at_ms || now_ms < s->at_ms)
			continue;
		if (s->state == CONTROL_SERVICE_STARTING)
			probe(k, s, DIALIN_IPV4);
		else if (!is_running(s) && has_what_it_needs(k, s))
			start(k, s, now_ms);
	}
}

static void tell_why(struct supervisorstate *k, struct supervisorservice *s)
{
	struct report report;
	struct err e = { 0 };

	if (s->report_fd >= 0 && report_read(s->report_fd, &report, &e) == 1 &&
	    report.kind == REPORT_FAILED) {
		err_sanitize(&report.error);
		logfile_say(&k->log, "service %s: %s", s->spec.name, report.error.msg);
	}
	cleanup_closep(&s->report_fd);
}

static void forget(struct supervisorstate *k, struct supervisorservice *s)
{
	unsigned at = (unsigned)(s - k->services.list);

	service_free(s);
	memmove(s, s + 1, (k->services.count - at - 1) * sizeof(*s));
	k->services.count--;
}

void supervisorservices_on_end(struct supervisorstate *k, uint32_t task_id)
{
	for (unsigned i = 0; i < k->services.count; i++) {
		struct supervisorservice *s = &k->services.list[i];

		if (s->task_id != task_id || !is_running(s))
			continue;
		end_probe(s);
		release(k, s);
		tell_why(k, s);
		if (s->is_removed) {
			forget(k, s);
			return;
		}
		plan_restart(s, clock_now_ms());
		if (s->is_restarted) {
			s->quick_ends = 0;
			s->at_ms = clock_now_ms();
		} else if (s->spec.is_once) {
			s->state = CONTROL_SERVICE_OVER;
			s->restarts--;
			s->at_ms = 0;
		}
		s->is_restarted = false;
		return;
	}
}

/* ---- changes ---- */

/* SIGTERM now; SIGKILL after the grace time (supervisor.c's deadlines). */
static void end(struct supervisorstate *k, const struct supervisorservice *s)
{
	struct task *t = tasktable_find(&k->tasks, s->task_id);

	supervisorstate_signal(k, s->task_id, SIGTERM, true);
	supervisorstate_signal(k, s->task_id, SIGCONT, true);
	if (t)
		t->kill_at_ms = clock_now_ms() + SUPERVISOR_STOP_DEFAULT_MS;
}

/* The command of `run -d` runs before it becomes a service. */
static void adopt(struct supervisorstate *k, struct supervisorservice *s)
{
	struct task *t = s->spec.task_id ? tasktable_find(&k->tasks, s->spec.task_id) : NULL;

	if (!t)
		return;
	t->is_service = true;
	s->task_id = t->shown.id;
	s->started_ms = clock_now_ms();
	s->at_ms = 0;
	s->state = tasktable_is_alive(t) ? CONTROL_SERVICE_READY : CONTROL_SERVICE_OVER;
}

static void add(struct supervisorstate *k, const struct service *spec)
{
	struct supervisorservices *all = &k->services;

	all->list = mem_grow(all->list, all->count + 1, sizeof(*all->list));
	all->list[all->count] = (struct supervisorservice){
		.report_fd = -1,
		.answer_fd = -1,
		.probe_fd = -1,
		.at_ms = clock_now_ms(),
	};
	services_copy_one(spec, &all->list[all->count].spec);
	adopt(k, &all->list[all->count++]);
}

static void change(struct supervisorstate *k, struct supervisorservice *s, const struct service *to)
{
	s->is_removed = false;
	if (services_is_equal(&s->spec, to))
		return;
	services_done_one(&s->spec);
	services_copy_one(to, &s->spec);
	s->quick_ends = 0;
	s->at_ms = s->at_ms ? clock_now_ms() : 0;
	if (!is_running(s))
		return;
	s->is_restarted = true;
	end(k, s);
}

int supervisorservices_load(struct supervisorstate *k, struct err *e)
{
	CLEANUP(services_done) struct services wanted = { 0 };

	if (services_load(k->options.named, &wanted, e) < 0)
		return -1;
	for (unsigned i = k->services.count; i-- > 0;) {
		struct supervisorservice *s = &k->services.list[i];

		if (services_find(&wanted, s->spec.name))
			continue;
		if (is_running(s)) {
			s->is_removed = true;
			end(k, s);
		} else {
			forget(k, s);
		}
	}
	for (unsigned i = 0; i < wanted.count; i++) {
		struct supervisorservice *s = find(k, wanted.list[i].name);

		if (s)
			change(k, s, &wanted.list[i]);
		else
			add(k, &wanted.list[i]);
	}
	return 0;
}

int supervisorservices_begin(struct supervisorstate *k, struct err *e)
{
	if (supervisorservices_load(k, e) < 0)
		return -1;
	for (unsigned i = 0; i < k->services.count; i++) {
		struct supervisorservice *s = &k->services.list[i];

		if (!s->spec.port)
			continue;
		s->release_at_ms = clock_now_ms() + SERVICES_HOLD_MS;
		gatekeeper_hold(&k->session.gatekeeper, (uint16_t)s->spec.port);
	}
	return 0;
}

int supervisorservices_restart(struct supervisorstate *k, const char *name, struct err *e)
{
	struct supervisorservice *s = find(k, name);

	if (!s || s->is_removed)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no service named '%.40s'",
			       k->options.named->name, name);
	s->quick_ends = 0;
	if (is_running(s)) {
		s->is_restarted = true;
		end(k, s);
	} else {
		s->at_ms = clock_now_ms();
	}
	return 0;
}

/* ---- what others want to know ---- */

bool supervisorservices_are_awaited(const struct supervisorstate *k)
{
	for (unsigned i = 0; i < k->services.count; i++)
		if (k->services.list[i].release_at_ms)
			return true;
	return false;
}

unsigned supervisorservices_show(const struct supervisorstate *k,
				 struct control_service out[SERVICES_MAX])
{
	unsigned count = 0;

	for (unsigned i = 0; i < k->services.count && count < SERVICES_MAX; i++) {
		const struct supervisorservice *s = &k->services.list[i];

		_Static_assert(CONTROL_SERVICE_NAME_BYTES > SERVICE_NAME_MAX_BYTES, "too short");
		out[count] = (struct control_service){ .state = s->state,
						       .task_id = s->task_id,
						       .port = s->spec.port,
						       .restarts = s->restarts };
		(void)snprintf(out[count].name, sizeof(out[count].name), "%s", s->spec.name);
		count++;
	}
	return count;
}

uint32_t supervisorservices_main_port(const struct supervisorstate *k)
{
	for (unsigned i = 0; i < k->services.count; i++)
		if (k->services.list[i].spec.port)
			return k->services.list[i].spec.port;
	return 0;
}

enum control_readiness supervisorservices_readiness(const struct supervisorstate *k, uint32_t port)
{
	bool has_starting = false;

	for (unsigned i = 0; i < k->services.count; i++) {
		const struct supervisorservice *s = &k->services.list[i];

		if (s->spec.port == port)
			return s->state == CONTROL_SERVICE_READY ? CONTROL_PORT_READY
			       : s->quick_ends == 0              ? CONTROL_PORT_STARTING
								 : CONTROL_PORT_UNKNOWN;
		has_starting |= !s->spec.port && s->restarts == 0 &&
				clock_now_ms() - s->started_ms < SERVICES_FRESH_MS;
	}
	return has_starting ? CONTROL_PORT_STARTING : CONTROL_PORT_UNKNOWN;
}
