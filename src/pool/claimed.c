/*
 * claimed - runs a command in a sandbox from the pool; see claimed.h.
 *
 * Theory of operation. The daemon passes two sockets (pool/claim): the command goes directly to
 * init, signals and the query for how it ended go to the sandbox's process (pool/warm). If the
 * sandbox will show directories of the host, this process checks them and sends them first
 * (sandbox/placement), watches the workspace while the command runs, and inspects it at the end,
 * all as `run` does.
 */
#include "pool/claimed.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "pool/claim.h"
#include "named/control.h"
#include "named/execution.h"
#include "workspace/hostfiles.h"
#include "engine/session.h"
#include "host/idmap.h"
#include "protocol/places.h"
#include "protocol/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct claimed {
	struct execution base;
	const struct claim *claim;
	struct hostfiles files;
	int placed_fd; /* init reports here that its setup is complete; -1: nothing to send */
};

static void claimed_done(struct claimed *x)
{
	x->base.policy = (struct policy){ 0 }; /* borrowed */
	execution_done(&x->base);
	cleanup_closep(&x->placed_fd);
	hostfiles_done(&x->files);
}

/* Makes the choices that a named sandbox's supervisor would make. */
static void choose_for_init(const struct claimed *x, struct order_command *c)
{
	const struct claim_answer *answer = &x->claim->answer;
	struct stat st;

	c->id = CLAIM_COMMAND_ID;
	c->seccomp_variant = answer->filter;
	for (int i = 0; i < 3; i++)
		if (fstat(x->base.streams.command_fd[i], &st) == 0 && S_ISREG(st.st_mode))
			c->seccomp_variant = answer->filter_for_file_streams;
	if (!profile_get(x->base.policy.profile)->runs_as_root)
		c->flags &= ~(uint32_t)ORDER_CAPABILITIES;
}

static int send_command(struct claimed *x, struct err *e)
{
	struct order_command c;

	execution_describe(&x->base, x->base.streams.has_tty ? ORDER_TTY : 0, &c);
	choose_for_init(x, &c);
	return execution_send(&x->base, &c, x->claim->init_fd, ORDER_START, e);
}

/* ---- its end ---- */

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

/*
 * Wait for the end if the command failed, if usage is wanted, or if the workspace must be inspected
 * while other processes inside may still run.
 */
static bool has_to_await_end(const struct claimed *x, const struct supervise_outcome *outcome)
{
	bool is_well = outcome->has_status && WIFEXITED(outcome->wait_status) &&
		       WEXITSTATUS(outcome->wait_status) == 0;

	return !is_well || x->base.options->wants_figures ||
	       (x->base.names.workspace && !outcome->was_alone);
}

/* Asks the sandbox's process for the results. Skipped if has_to_await_end() is false. */
static void ask_end(struct claimed *x, struct supervise_outcome *outcome, struct run_result *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct claim_end end;
	struct err ignored;

	if (!has_to_await_end(x, outcome) || x->base.control_fd < 0 ||
	    control_ask(x->base.control_fd, CLAIM_END, NULL, 0, &answer, &ignored) < 0 ||
	    answer.len < sizeof(end))
		return;
	memcpy(&end, answer.bytes, sizeof(end));
	ret->cpu_ms = end.cpu_us / 1000;
	ret->peak_memory_bytes = end.peak_memory_bytes;
	ret->has_oom = end.oom_kill_count > 0;
	ret->reached_pids = end.pids_refused_count > 0 ? x->base.policy.pids_count : 0;
	ret->gate_deaths = end.gate_deaths;
	if (end.limit <= REPORT_LIMIT_PIDS)
		outcome->limit = end.limit;
	if (end.is_stuck)
		(void)keyrows_list_add(&x->base.names.notices, SESSION_STUCK_WORDS);
	take_denials(answer.bytes + sizeof(end), answer.bytes + answer.len, end.denial_count, ret);
}

/* Inspects the workspace, once nothing inside runs any more. */
static void take_notices(struct claimed *x, struct run_result *ret)
{
	newnames_conclude(&x->base.names);
	ret->notices = take_ptr(x->base.names.notices);
}

/* ---- directories of the host ---- */

/* Opens the host's directories, checked as at any start. */
static int open_places(struct claimed *x, struct err *e)
{
	const struct ak *ak = x->base.options->ak;
	const struct claim_answer *answer = &x->claim->answer;
	const struct idmap map = { .kind = answer->idmap_kind,
				   .uid = x->base.policy.uid,
				   .gid = x->base.policy.gid,
				   .host_uid = answer->host_uid,
				   .host_gid = answer->host_gid,
				   .lock_fd = -1,
				   .has_owner_ns = x->claim->owner_ns_fd >= 0,
				   .owner_ns_fd = x->claim->owner_ns_fd,
				   .owner_uid = geteuid(),
				   .owner_gid = getegid() };

	return hostfiles_open(&x->files, &x->base.policy, ak, &map, e);
}

/* Starts watching before anything runs inside. */
static int watch_places(struct claimed *x, struct err *e)
{
	return newnames_open(&x->base.names, &x->base.policy, &x->files.workspace,
			     x->base.options->ak, NULL, e);
}

/* Returns -errno. The command may follow at once: init reads it when its setup is complete. */
static int send_places(struct claimed *x)
{
	const struct rootspec_shown shown = { .places = x->files.places,
					      .place_count = x->files.count,
					      .guards = x->files.workspace.guards,
					      .guard_count = x->files.workspace.guard_count };
	int fds[1 + PLACES_TREES_MAX];
	cleanup_buf struct buf body;
	unsigned tree_count = 0;
	int ends[2], r;

	buf_init(&body, FRAME_BODY_MAX_BYTES);
	if (!places_format(&shown, &body, fds + 1, &tree_count))
		return -E2BIG;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	x->placed_fd = ends[0];
	fds[0] = ends[1];
	r = frame_send(x->claim->init_fd, ORDER_PLACES, body.bytes, body.len, fds, 1 + tree_count);
	(void)close(ends[1]);
	return r;
}

/* No end of the command was reported: was the sandbox's setup completed? If not, nothing ran. */
static bool was_placed(const struct claimed *x)
{
	struct report report;
	struct err ignored;

	return x->placed_fd < 0 || report_read(x->placed_fd, &report, &ignored) == 1;
}

/* ---- the whole run ---- */

/* 1: the command was sent; 0: the sandbox could not be used, and nothing was started. */
static int start_claimed(struct claimed *x, struct err *e)
{
	const struct execute_options *o = x->base.options;
	struct err why = { 0 };

	/* directories first: init mounts them while we prepare the rest */
	if (x->claim->awaits_places && open_places(x, e) < 0)
		return -1;
	if (x->claim->awaits_places && send_places(x) < 0)
		return 0;
	if (watch_places(x, e) < 0 || supervise_hold_signals(&x->base.signal_fd, e) < 0 ||
	    execution_open_reports(&x->base, e) < 0 ||
	    streams_open(&x->base.streams, o->tty, o->is_captured ? STREAMS_CAPTURED : 0, e) < 0)
		return -1;
	if (x->claim->answer.idmap_kind == IDMAP_PRIVATE)
		streams_lend_pipes(&x->base.streams,
				   x->claim->answer.host_gid + x->base.policy.gid);
	if (send_command(x, &why) < 0) {
		if (why.sys == EPIPE)
			return 0;
		*e = why;
		return -1;
	}
	if (x->base.streams.has_tty && execution_await_terminal(&x->base, &why) < 0) {
		if (!was_placed(x))
			return 0;
		*e = why;
		return -1;
	}
	streams_started(&x->base.streams, x->base.master_fd);
	return 1;
}

/* 1: it ran; 0: the sandbox ended before it received the command. */
static int run_claimed(struct claimed *x, struct run_result *ret, struct err *e)
{
	struct supervise_outcome outcome = { 0 };
	uint64_t started_us = clock_now_us();
	int r = start_claimed(x, e);

	if (r <= 0)
		return r;
	*ret = (struct run_result){ .was_warm = true };
	if (execution_wait(&x->base, &outcome, e) < 0) {
		ask_end(x, &outcome, ret);
		take_notices(x, ret);
		return -1;
	}
	if (!outcome.has_status && outcome.limit == REPORT_LIMIT_NONE && !was_placed(x))
		return 0;
	ask_end(x, &outcome, ret);
	take_notices(x, ret);
	execution_drain(&x->base);
	ret->reached_disk_bytes = outcome.is_disk_full ? x->base.policy.disk_bytes : 0;
	ret->duration_ms = (clock_now_us() - started_us) / 1000;
	run_judge(&outcome, ret);
	execution_take_output(&x->base, ret);
	return 1;
}

/* 1: it ran; 0: no sandbox was available. */
static int try(const struct run_options *o, struct run_result *ret, struct err *e)
{
	const struct execute_options command = {
		.ak = o->ak,
		.argv = o->argv,
		.tty = o->tty,
		.is_captured = o->is_captured,
		.wants_figures = o->is_captured,
		.lifeline_fd = o->lifeline_fd,
	};
	CLEANUP(claim_done)
	struct claim claim = { .process_fd = -1, .init_fd = -1, .owner_ns_fd = -1 };
	CLEANUP(claimed_done) struct claimed x = { .claim = &claim, .placed_fd = -1 };

	execution_init(&x.base, &command);
	hostfiles_init(&x.files);
	if (!claim_take(o->ak, o->policy, o->image, &claim)) {
		ret->has_outdated_daemon = claim.is_other_build;
		return 0;
	}
	x.base.control_fd = take_fd(&claim.process_fd);
	x.base.policy = *o->policy;
	return run_claimed(&x, ret, e);
}

int claimed_run(const struct run_options *o, struct run_result *ret, struct err *e)
{
	int r = try(o, ret, e);

	if (r != 0)
		return r < 0 ? -1 : 0;
	return run_command(o, ret, e);
}
