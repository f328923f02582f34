/*
 * warm - the process of one pooled sandbox; see warm.h.
 *
 * Theory of operation. One socket leads outside. The daemon holds its other end until the sandbox
 * is claimed, then the client does: when it is closed, the sandbox ends. The command does not come
 * this way: the client sends it to init directly. The loop also polls init's events, init's report
 * and the gate.
 */
#include "pool/warm.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/frame.h"
#include "base/title.h"
#include "pool/claim.h"
#include "engine/images.h"
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
#include <unistd.h>

#define CPU_LOOK_MS 50 /* interval for checking a cpu-time limit */

struct warm {
	const struct warm_options *options;
	struct images image;
	struct session session;
	int client_fd;
	int owner_ns_fd; /* for the directories that the client will show; -1: none */
	bool has_ended, is_over;
	enum report_limit limit;
	uint64_t waited_cpu_us; /* used while building: not the command's */
};

/* ---- the client ---- */

static int send_signal(struct warm *w, const struct frame *f, struct err *e)
{
	struct order_signal body;

	if (f->len != sizeof(body))
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&body, f->bytes, sizeof(body));
	body.id = CLAIM_COMMAND_ID;
	(void)frame_send(w->session.sandbox.orders_fd, ORDER_SIGNAL, &body, sizeof(body), NULL, 0);
	return 0;
}

static void add_denials(const struct gatekeeper *g, struct buf *out)
{
	for (unsigned i = 0; i < g->denial_count; i++) {
		char port[8];

		(void)snprintf(port, sizeof(port), "%u", g->denials[i].port);
		buf_add(out, g->denials[i].host, strlen(g->denials[i].host) + 1);
		buf_add(out, port, strlen(port) + 1);
		buf_add(out, g->denials[i].reason, strlen(g->denials[i].reason) + 1);
		buf_add(out, g->denials[i].fix, strlen(g->denials[i].fix) + 1);
	}
}

/* Stops the sandbox first and the gate last, whose final denials belong to the answer. */
static void tell_end(struct warm *w)
{
	struct cgroup_usage usage;
	struct claim_end end = { 0 };
	cleanup_buf struct buf out;

	buf_init(&out, CLAIM_DENIALS_MAX_BYTES);
	session_stop(&w->session);
	gatekeeper_stop(&w->session.gatekeeper);
	cgroup_get_usage(&w->session.cgroup, &usage);
	end = (struct claim_end){
		.cpu_us = w->session.sandbox.cpu_us,
		.peak_memory_bytes = usage.has_memory ? usage.peak_memory_bytes
						      : w->session.sandbox.peak_process_bytes,
		.oom_kill_count = usage.oom_kill_count,
		.pids_refused_count = usage.pids_refused_count,
		.has_memory = usage.has_memory,
		.limit = w->limit,
		.gate_deaths = w->session.gatekeeper.deaths,
		.denial_count = w->session.gatekeeper.denial_count,
		.is_stuck = w->session.sandbox.is_stuck,
	};
	buf_add(&out, &end, sizeof(end));
	add_denials(&w->session.gatekeeper, &out);
	control_answer(w->client_fd, out.bytes, out.len);
	w->is_over = true;
}

static void on_client(struct warm *w)
{
	CLEANUP(frame_done) struct frame f = { 0 };
	int r = frame_receive(w->client_fd, FRAME_NO_WAIT, &f);
	struct err e = { 0 };
	int ok = 0;

	if (frame_may_pass(r))
		return;
	if (r <= 0) {
		w->is_over = true;
		return;
	}
	if (f.kind == CONTROL_SIGNAL)
		ok = send_signal(w, &f, &e);
	else if (f.kind == CLAIM_END)
		tell_end(w);
	else
		ok = err_set(&e, ERR_UNSUPPORTED, "not a request for such a sandbox");
	if (ok < 0)
		control_fail(w->client_fd, &e);
}

/* ---- the sandbox ---- */

static void on_events(struct warm *w)
{
	struct frame f;

	while (frame_receive(w->session.sandbox.orders_fd, FRAME_NO_WAIT, &f) == 1) {
		w->has_ended = w->has_ended || f.kind == EVENT_ENDED;
		frame_done(&f);
	}
}

/* Handles init's last report, or its first after a claim. */
static void on_report(struct warm *w)
{
	struct report report;
	struct err ignored = { 0 };
	int r = report_read(w->session.sandbox.report_fd, &report, &ignored);

	if (r == 1 &&
	    report.kind ==
		    REPORT_STARTED) /* its directories are mounted and its setup is complete */
		return;
	if (r == 1 && report.kind == REPORT_LIMIT)
		w->limit = report.limit;
	w->has_ended = true;
	cleanup_closep(&w->session.sandbox.report_fd);
}

/* Without a cgroup, init counts (sandbox/watch). Cpu time used while building does not count. */
static bool watches_cpu(const struct warm *w)
{
	return w->options->policy->cpu_time_ms && w->session.cgroup.kind != CGROUP_NONE &&
	       !w->has_ended;
}

static void check_cpu(struct warm *w)
{
	uint64_t used_us = 0;

	if (!watches_cpu(w) || !cgroup_get_cpu_us(&w->session.cgroup, &used_us) ||
	    (used_us - w->waited_cpu_us) / 1000 <= w->options->policy->cpu_time_ms)
		return;
	w->limit = REPORT_LIMIT_CPU_TIME;
	w->has_ended = true;
	session_stop(&w->session); /* the report socket closes without a report: the client
					     asks why */
}

static void serve(struct warm *w)
{
	struct handle *s = &w->session.sandbox;
	CLEANUP(turn_done) struct turn t;
	struct err ignored;

	turn_init(&t);
	while (!w->is_over) {
		unsigned client, orders, report;

		turn_begin(&t);
		client = turn_watch(&t, w->client_fd, POLLIN);
		orders = turn_watch(&t, w->has_ended ? -1 : s->orders_fd, POLLIN);
		report = turn_watch(&t, s->report_fd, POLLIN);
		turn_watch_gate(&t, &w->session.gatekeeper);
		if (watches_cpu(w))
			turn_wake_in(&t, CPU_LOOK_MS);
		if (turn_wait(&t, &ignored) <= 0)
			continue;
		check_cpu(w);
		if (turn_is_ready(&t, orders))
			on_events(w);
		if (turn_is_ready(&t, report))
			on_report(w);
		if (turn_is_ready(&t, client))
			on_client(w);
	}
}

static int open_image(struct warm *w, struct err *e)
{
	const struct images_request q = {
		.reference = w->options->policy->image,
		.pull = IMAGES_PULL_NEVER,
		.flags = IMAGES_QUIET,
		.ak = w->options->ak,
	};

	if (!w->options->layers[0])
		return 0;
	if (images_open(&q, &w->image, e) < 0)
		return -1;
	if (!w->image.root.layers || strcmp(w->image.root.layers, w->options->layers) != 0)
		return err_set(e, ERR_NOT_FOUND, "the image is another one now");
	return 0;
}

/* Most directories belong to the caller: prepares the id map for these in advance. */
static int prepare_owner_ns(struct warm *w, struct err *e)
{
	const struct idmap *map = &w->session.idmap;

	if (!w->options->awaits_places || map->kind != IDMAP_PRIVATE)
		return 0;
	return idmap_open_owner_ns(map, geteuid(), getegid(), &w->owner_ns_fd, e);
}

static int build(struct warm *w, struct err *e)
{
	struct session_options options = {
		.policy = w->options->policy,
		.ak = w->options->ak,
		.serves = true,
		.awaits_places = w->options->awaits_places,
	};
	const struct backend_command none = { 0 };

	if (open_image(w, e) < 0)
		return -1;
	options.root = w->image.lock_fd >= 0 ? &w->image.root : NULL;
	if (session_prepare(&w->session, &options, e) < 0)
		return -1;
	if (session_start(&w->session, &none, 0, e) < 0 || session_await_init(&w->session, e) < 0)
		return -1;
	if (fcntl(w->session.sandbox.orders_fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return err_sys(e, errno, "prepare the socket for orders");
	return prepare_owner_ns(w, e);
}

/* Reports that the sandbox can be claimed. */
static bool say_ready(struct warm *w)
{
	struct session *s = &w->session;
	const struct claim_answer answer = {
		.idmap_kind = s->idmap.kind,
		.host_uid = s->idmap.host_uid,
		.host_gid = s->idmap.host_gid,
		.filter = s->backend->choose_filter(s, 0),
		.filter_for_file_streams = s->backend->choose_filter(s, SESSION_FILE_STREAM),
	};

	(void)cgroup_get_cpu_us(&s->cgroup, &w->waited_cpu_us);
	return frame_send(w->client_fd, CLAIM_READY, &answer, sizeof(answer),
			  (const int[]){ s->sandbox.orders_fd, w->owner_ns_fd },
			  w->owner_ns_fd >= 0 ? 2 : 1) == 0;
}

void warm_main(const struct warm_options *o)
{
	struct warm w = { .options = o, .client_fd = o->channel_fd, .owner_ns_fd = -1 };
	struct err e = { 0 };

	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	title_set(TITLE_WARM, NULL);
	images_init(&w.image);
	session_init(&w.session);
	if (build(&w, &e) < 0)
		control_fail(o->channel_fd, &e);
	else if (say_ready(&w))
		serve(&w);
	session_done(&w.session);
	images_done(&w.image);
	_exit(0);
}
