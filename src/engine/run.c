/* run - runs one command in a new sandbox; see run.h. */
#include "engine/run.h"

#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/clock.h"
#include "base/keyrows.h"
#include "engine/session.h"
#include "engine/supervise.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EXIT_TIMED_OUT 124
#define DRAIN_AFTER_DEADLINE_MS 1000

/* A session, and what a single command needs besides it. */
struct run_state {
	struct session session;
	struct streams streams;
	char **environment;
	int signal_fd;
	uint64_t started_us;
};

static void run_state_init(struct run_state *r)
{
	*r = (struct run_state){ .signal_fd = -1, .started_us = clock_now_us() };
	session_init(&r->session);
	streams_init(&r->streams);
}

static void run_state_done(struct run_state *r)
{
	session_done(&r->session);
	streams_done(&r->streams);
	environment_free(r->environment);
	cleanup_closep(&r->signal_fd);
}

static bool has_file_stream(const struct run_state *r)
{
	struct stat st;

	for (int stream = 0; stream < 3; stream++)
		if (fstat(r->streams.command_fd[stream], &st) == 0 ? S_ISREG(st.st_mode)
								   : errno != EBADF)
			return true; /* also if fstat() fails */
	return false;
}

static int prepare(struct run_state *r, const struct run_options *o, struct err *e)
{
	const struct policy *p = o->policy;
	const struct session_options options = {
		.policy = p,
		.ak = o->ak,
		.root = o->root ? o->root : o->image ? &o->image->root : NULL,
		.disk_path = o->root ? o->root->dirs[ROOTSPEC_DISK].path : NULL,
	};

	/* first, so that no signal ends us between creating a thing and being able to remove it */
	if (supervise_hold_signals(&r->signal_fd, e) < 0)
		return -1;
	if (session_prepare(&r->session, &options, e) < 0)
		return -1;
	if (streams_open(&r->streams, o->tty, o->is_captured ? STREAMS_CAPTURED : 0, e) < 0)
		return -1;
	if (r->session.idmap.kind == IDMAP_PRIVATE)
		streams_lend_pipes(&r->streams, r->session.idmap.host_gid + p->gid);
	return 0;
}

static int start(struct run_state *r, const struct run_options *o, struct err *e)
{
	const char *term = NULL;
	struct backend_command command = { .argv = o->argv, .has_tty = r->streams.has_tty };

	if (r->streams.has_tty && o->ak)
		term = environment_get(o->ak->caller.environ_list, "TERM");
	r->environment = environment_build(o->policy, &o->ak->caller, term);
	command.envp = r->environment;
	memcpy(command.stdio_fd, r->streams.command_fd, sizeof(command.stdio_fd));
	if (session_start(&r->session, &command, has_file_stream(r) ? SESSION_FILE_STREAM : 0, e) <
	    0)
		return -1;
	streams_started(&r->streams, r->session.sandbox.tty_master_fd);
	if (o->on_published)
		o->on_published(o->context, &r->session.gatekeeper.published);
	return 0;
}

void run_judge(const struct supervise_outcome *outcome, struct run_result *r)
{
	int status = outcome->wait_status;

	if (outcome->has_status && WIFEXITED(status)) {
		r->end = RUN_EXITED;
		r->exit_code = WEXITSTATUS(status);
	} else {
		r->end = RUN_SIGNALLED;
		r->signal_number = outcome->has_status ? WTERMSIG(status) : SIGKILL;
		if (r->has_oom && r->signal_number == SIGKILL)
			r->end = RUN_OUT_OF_MEMORY;
		if (r->signal_number == SIGXCPU)
			r->end = RUN_OUT_OF_CPU;
		r->exit_code = ERRCODE_EXIT_SIGNALLED + r->signal_number;
	}
	if (!outcome->has_status && !outcome->was_left && r->end == RUN_SIGNALLED)
		r->end = RUN_SANDBOX_ENDED;
	if (outcome->limit == REPORT_LIMIT_MEMORY) {
		r->end = RUN_OUT_OF_MEMORY;
		r->has_oom = true;
	}
	if (outcome->limit == REPORT_LIMIT_CPU_TIME) {
		r->end = RUN_OUT_OF_CPU;
		r->signal_number = SIGXCPU;
		r->exit_code = ERRCODE_EXIT_SIGNALLED + SIGXCPU;
	}
	if (outcome->limit == REPORT_LIMIT_PIDS)
		r->end = RUN_OUT_OF_PIDS;
	if (outcome->has_timed_out) {
		r->end = RUN_TIMED_OUT;
		r->exit_code = EXIT_TIMED_OUT;
	}
}

static void drain(struct run_state *r, const struct supervise_outcome *outcome)
{
	cleanup_fd int end_fd = r->streams.pump_count ? supervise_open_end_signals() : -1;
	int wait_ms = outcome->has_timed_out ? DRAIN_AFTER_DEADLINE_MS : -1;

	for (unsigned i = 0; i < r->streams.pump_count; i++)
		pump_drain(&r->streams.pumps[i], end_fd, wait_ms);
}

static void take_network(struct gatekeeper *k, struct run_result *ret)
{
	ret->denials = take_ptr(k->denials);
	ret->denial_count = k->denial_count;
	k->denial_count = 0;
	ret->gate_deaths = k->deaths;
	ret->gate_trouble = take_ptr(k->trouble);
}

static void take_notices(struct session *s, struct run_result *ret)
{
	session_inspect(s);
	ret->notices = take_ptr(s->names.notices);
}

/* After the end: collects usage and the last output. */
static void finish(struct run_state *r, const struct supervise_outcome *outcome,
		   struct run_result *ret)
{
	struct session *s = &r->session;
	struct cgroup_usage usage;

	/* after the command's own end nothing of interest is added, and init takes its time to end
	 */
	if (!outcome->has_status)
		session_stop(s);
	cgroup_get_usage(&s->cgroup, &usage);
	session_stop(s);
	gatekeeper_stop(&s->gatekeeper);
	drain(r, outcome);
	take_notices(s, ret);
	ret->duration_ms = (clock_now_us() - r->started_us) / 1000;
	ret->cpu_ms = s->sandbox.cpu_us / 1000;
	ret->peak_memory_bytes =
		usage.has_memory ? usage.peak_memory_bytes : s->sandbox.peak_process_bytes;
	ret->has_oom = usage.oom_kill_count > 0;
	ret->reached_pids = usage.pids_refused_count > 0 ? s->options.policy->pids_count : 0;
	ret->reached_disk_bytes = outcome->is_disk_full ? s->options.policy->disk_bytes : 0;
	run_judge(outcome, ret);
	take_network(&s->gatekeeper, ret);
	for (int i = 0; i < 2; i++) {
		ret->output[i] = r->streams.captured[i];
		buf_init(&r->streams.captured[i], STREAMS_CAPTURE_MAX_BYTES);
	}
}

static void send_signal(void *context, int number, unsigned flags)
{
	const struct run_state *r = context;

	r->session.backend->signal(&r->session.sandbox, number, flags & SUPERVISE_TO_GROUP);
}

static int supervise(struct run_state *r, const struct run_options *o,
		     struct supervise_outcome *ret, struct err *e)
{
	const struct policy *p = o->policy;
	struct session *s = &r->session;
	const struct supervise_options options = {
		.report_fd = s->sandbox.report_fd,
		.tty_master_fd = s->sandbox.tty_master_fd,
		.send_signal = send_signal,
		.context = r,
		.streams = &r->streams,
		.gatekeeper = &s->gatekeeper,
		.names = &s->names,
		.ends_on_term = true,
		.signal_fd = r->signal_fd,
		.timeout_ms = p->timeout_ms,
		.cpu_ms = s->cgroup.kind == CGROUP_NONE ? 0 : p->cpu_time_ms,
		.cgroup = &s->cgroup,
		.lifeline_fd = o->lifeline_fd,
	};

	return supervise_wait(&options, ret, e);
}

int run_command(const struct run_options *o, struct run_result *ret, struct err *e)
{
	CLEANUP(run_state_done) struct run_state r;
	struct supervise_outcome outcome = { 0 };

	run_state_init(&r);
	if (prepare(&r, o, e) < 0 || start(&r, o, e) < 0)
		return -1;
	if (supervise(&r, o, &outcome, e) < 0) {
		session_stop(&r.session);
		take_notices(&r.session, ret);
		return -1;
	}
	finish(&r, &outcome, ret);
	return 0;
}

void run_result_done(struct run_result *r)
{
	for (int i = 0; i < 2; i++)
		buf_done(&r->output[i]);
	gatekeeper_free_denials(r->denials, r->denial_count);
	r->denials = NULL;
	r->denial_count = 0;
	free(r->gate_trouble);
	r->gate_trouble = NULL;
	keyrows_list_free(&r->notices);
}

const char *run_limits_by(const struct policy *p)
{
	const char *why = NULL;
	struct cgroup c;
	struct err ignored;
	enum cgroup_kind kind;

	if (cgroup_needs(p) == 0)
		return "nothing to limit";
	if (cgroup_plan(p, 0, &c, &why, &ignored) < 0)
		return "nothing: this host's cgroups cannot be read";
	kind = c.kind;
	cgroup_release(&c);
	return kind == CGROUP_V2   ? "cgroup v2"
	       : kind == CGROUP_V1 ? "cgroup v1"
				   : "rlimits and watching (no cgroup may be created)";
}
