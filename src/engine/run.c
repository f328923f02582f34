/*
 * run - one command in a fresh sandbox; see run.h.
 *
 * Theory of operation. `struct session` owns all that a run makes; session_done() takes it back
 * in the one right order, on success and on every failure. Two things outlive a crash of this
 * process and have their own guard: the sandbox's processes (init dies with the lifeline) and
 * its cgroups (the janitor).
 */
#include "engine/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/gatekeeper.h"
#include "engine/hostfiles.h"
#include "engine/janitor.h"
#include "engine/supervise.h"
#include "net/netns.h"
#include "net/plan.h"
#include "policy/environment.h"
#include "sandbox/cpuset.h"
#include "sandbox/landlock.h"
#include "sandbox/mount.h"
#include "sandbox/native.h"
#include "sandbox/rlimits.h"
#include "sandbox/seccomp.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_TIMED_OUT 124
#define EXIT_SIGNAL_BASE 128
#define DRAIN_AFTER_DEADLINE_MS 1000
#define RUN_ID_MAX_BYTES 16

struct session {
	struct idmap idmap;
	struct hostfiles files;
	struct cgroup cgroup;
	struct janitor janitor;
	struct streams streams;
	struct native_sandbox sandbox;
	struct gatekeeper gatekeeper;
	char id[RUN_ID_MAX_BYTES]; /* "run-1a2b3c4d" */
	char **environment;
	int signal_fd;
	uint64_t started_us;
};

static void session_init(struct session *s)
{
	*s = (struct session){
		.idmap = { .lock_fd = -1 },
		.signal_fd = -1,
		.started_us = clock_now_us(),
	};
	native_init(&s->sandbox);
	gatekeeper_init(&s->gatekeeper);
	streams_init(&s->streams);
	cgroup_init(&s->cgroup);
}

/* Processes first, then the cgroups they were in, then the guard of the cgroups. */
static void session_done(struct session *s)
{
	native_end(&s->sandbox);
	gatekeeper_done(&s->gatekeeper);
	cgroup_remove(&s->cgroup);
	janitor_dismiss(&s->janitor);
	streams_done(&s->streams);
	hostfiles_done(&s->files);
	idmap_done(&s->idmap);
	environment_free(s->environment);
	cleanup_closep(&s->signal_fd);
}

/* Without cgroups some limits have a weaker form and the others are refused in words. */
static int check_without_cgroup(const struct policy *p, const char *why, struct err *e)
{
	if (p->io_read_bytes_per_s || p->io_write_bytes_per_s)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s: a rate for disks needs a cgroup, and %s ('agentkernel doctor' "
			       "shows what to change)",
			       p->origin[p->io_read_bytes_per_s ? POLICY_IO_READ : POLICY_IO_WRITE],
			       why);
	if (p->cpus_milli % 1000 != 0)
		return err_set(
			e, ERR_UNSUPPORTED,
			"%s: a fraction of a cpu needs a cgroup, and %s (use a whole number)",
			p->origin[POLICY_CPUS], why);
	return 0;
}

static int open_cgroup(struct session *s, const struct policy *p, struct err *e)
{
	const char *why = NULL;

	if (cgroup_plan(p, &s->cgroup, &why, e) < 0)
		return -1;
	if (s->cgroup.kind == CGROUP_NONE)
		return cgroup_needs(p) ? check_without_cgroup(p, why, e) : 0;
	if (janitor_start(&s->janitor, &s->cgroup, e) < 0)
		return -1;
	return cgroup_make(&s->cgroup, p, e);
}

static int prepare_network(struct session *s, const struct run_options *o, struct err *e)
{
	uint32_t number = 0;
	const struct gatekeeper_options options = {
		.policy = o->policy,
		.environ_list = o->caller->environ_list,
		.id = s->idmap.kind == IDMAP_PRIVATE ? idmap_helper_id(&s->idmap) : 0,
		.sandbox = s->id,
	};

	if (!o->policy->has_network)
		return 0;
	(void)getrandom(&number, sizeof(number), GRND_NONBLOCK); /* a name, not a secret */
	(void)snprintf(s->id, sizeof(s->id), "run-%08" PRIx32, number);
	return gatekeeper_prepare(&s->gatekeeper, &options, e);
}

static int check_landlock(const struct policy *p, bool *ret_has_landlock, struct err *e)
{
	*ret_has_landlock = landlock_abi() > 0;
	if (*ret_has_landlock || p->accepts_no_landlock)
		return 0;
	return err_set(e, ERR_UNSUPPORTED,
		       "this kernel has no Landlock, the second wall behind the mounts (add "
		       "--accept-missing landlock to run without it)");
}

static bool has_file_stream(const struct session *s)
{
	struct stat st;

	for (int stream = 0; stream < 3; stream++)
		if (fstat(s->streams.command_fd[stream], &st) == 0 && S_ISREG(st.st_mode))
			return true;
	return false;
}

/*
 * Packages bring set-id files, which mean nothing inside. They would count outside where the
 * sandbox's owner is a user of this machine: in a writable directory of the host, or in a stream
 * that is a file. Nothing in the host image needs them.
 */
static bool may_set_ids(const struct session *s, const struct run_options *o)
{
	if (!o->image)
		return false;
	for (unsigned i = 0; i < s->files.count; i++)
		if (s->files.places[i].kind == ROOTFS_HOST && !s->files.places[i].is_read_only)
			return false;
	return s->idmap.kind == IDMAP_PRIVATE || !has_file_stream(s);
}

static unsigned choose_filter(const struct session *s, const struct run_options *o, bool is_pinned)
{
	unsigned variant = 0;

	if (!o->policy->may_trace)
		variant |= SECCOMP_STRICT;
	if (!may_set_ids(s, o))
		variant |= SECCOMP_NO_SET_ID;
	if (is_pinned)
		variant |= SECCOMP_PINNED;
	return variant;
}

/* A command that runs as the profile's own user changes no owners: one id is enough, and quicker.
 */
static unsigned choose_ids(const struct run_options *o)
{
	const struct policy *p = o->policy;
	bool is_profiles = strcmp(p->origin[POLICY_USER], p->origin[POLICY_PROFILE]) == 0;

	return o->image && (p->uid == 0 || !is_profiles) ? IDMAP_WANTS_MANY : 0;
}

static int open_layers(struct session *s, const struct run_options *o, struct err *e)
{
	struct imageroot *root = o->image ? &o->image->root : NULL;

	if (!root || s->idmap.kind != IDMAP_PRIVATE)
		return 0;
	return mount_open_tree(AT_FDCWD, root->layers_path, 0, &root->tree_fd, e);
}

static int prepare(struct session *s, const struct run_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	if (rlimits_check(p, e) < 0)
		return -1;
	/* first: a signal must not end us between making a thing and being able to unmake it */
	if (supervise_hold_signals(&s->signal_fd, e) < 0)
		return -1;
	if (idmap_init(&s->idmap, p->uid, p->gid, choose_ids(o), e) < 0)
		return -1;
	if (hostfiles_open(&s->files, p, &s->idmap, e) < 0 || open_layers(s, o, e) < 0)
		return -1;
	if (prepare_network(s, o, e) < 0)
		return -1;
	if (open_cgroup(s, p, e) < 0)
		return -1;
	if (streams_open(&s->streams, o->tty, o->is_captured ? STREAMS_CAPTURED : 0, e) < 0)
		return -1;
	if (s->idmap.kind == IDMAP_PRIVATE)
		streams_lend_pipes(&s->streams, s->idmap.host_gid + p->gid);
	return 0;
}

static int start(struct session *s, const struct run_options *o, struct err *e)
{
	const struct policy *p = o->policy;
	bool has_cgroup = s->cgroup.kind != CGROUP_NONE;
	bool is_pinned = p->cpus_milli && !has_cgroup;
	struct native_plan plan = {
		.command = {
			.policy = p,
			.argv = o->argv,
			.has_tty = s->streams.has_tty,
			.can_switch_ids = s->idmap.kind != IDMAP_ONE,
			.rlimit_flags = has_cgroup ? 0 : RLIMITS_MEMORY,
			.seccomp_variant = choose_filter(s, o, is_pinned),
		},
		.idmap = &s->idmap,
		.cgroup = &s->cgroup,
		.rootfs = { .policy = p,
			    .places = s->files.places,
			    .place_count = s->files.count,
			    .resolv_conf = p->has_network ? PLAN_RESOLV_CONF : NULL,
			    .image = o->image ? &o->image->root : NULL },
		.network = p->has_network ? netns_build : NULL,
		.watch = { .policy = p,
			   .memory_bytes = has_cgroup ? 0 : p->memory_bytes,
			   .cpu_ms = has_cgroup ? 0 : p->cpu_time_ms,
			   .pids_count = !has_cgroup && s->idmap.kind != IDMAP_ONE ? p->pids_count
										   : 0 },
	};
	const char *term = NULL;

	if (check_landlock(p, &plan.command.has_landlock, e) < 0)
		return -1;
	if (is_pinned && cpuset_pin((unsigned)(p->cpus_milli / 1000), e) < 0)
		return -1;
	if (s->streams.has_tty && o->caller->environ_list)
		term = environment_get(o->caller->environ_list, "TERM");
	s->environment = environment_build(p, o->caller, term);
	plan.command.envp = s->environment;
	memcpy(plan.command.stdio_fd, s->streams.command_fd, sizeof(plan.command.stdio_fd));
	if (native_start(&plan, &s->sandbox, e) < 0)
		return -1;
	gatekeeper_take_sockets(&s->gatekeeper, s->sandbox.sockets, s->sandbox.socket_count);
	streams_started(&s->streams, s->sandbox.tty_master_fd);
	return 0;
}

static void judge(const struct supervise_outcome *outcome, struct run_result *r)
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
		r->exit_code = EXIT_SIGNAL_BASE + r->signal_number;
	}
	if (outcome->limit == REPORT_LIMIT_MEMORY) {
		r->end = RUN_OUT_OF_MEMORY;
		r->has_oom = true;
	}
	if (outcome->limit == REPORT_LIMIT_CPU_TIME) {
		r->end = RUN_OUT_OF_CPU;
		r->signal_number = SIGXCPU;
		r->exit_code = EXIT_SIGNAL_BASE + SIGXCPU;
	}
	if (outcome->limit == REPORT_LIMIT_PIDS)
		r->end = RUN_OUT_OF_PIDS;
	if (outcome->has_timed_out) {
		r->end = RUN_TIMED_OUT;
		r->exit_code = EXIT_TIMED_OUT;
	}
}

static void drain(struct session *s, const struct supervise_outcome *outcome)
{
	cleanup_fd int end_fd = s->streams.pump_count ? supervise_open_end_signals() : -1;
	int wait_ms = outcome->has_timed_out ? DRAIN_AFTER_DEADLINE_MS : -1;

	for (unsigned i = 0; i < s->streams.pump_count; i++)
		pump_drain(&s->streams.pumps[i], end_fd, wait_ms);
}

/* After the end: what was used, and the last bytes of output. */
static void finish(struct session *s, const struct supervise_outcome *outcome, struct run_result *r)
{
	struct cgroup_usage usage;

	native_stop(&s->sandbox);
	gatekeeper_stop(&s->gatekeeper);
	drain(s, outcome);
	cgroup_get_usage(&s->cgroup, &usage);
	r->duration_ms = (clock_now_us() - s->started_us) / 1000;
	r->cpu_ms = s->sandbox.cpu_us / 1000;
	r->peak_memory_bytes =
		usage.has_memory ? usage.peak_memory_bytes : s->sandbox.peak_process_bytes;
	r->has_oom = usage.oom_kill_count > 0;
	judge(outcome, r);
	r->denials = take_ptr(s->gatekeeper.denials);
	r->denial_count = s->gatekeeper.denial_count;
	s->gatekeeper.denial_count = 0;
	r->gate_deaths = s->gatekeeper.deaths;
	r->gate_trouble = take_ptr(s->gatekeeper.trouble);
	for (int i = 0; i < 2; i++) {
		r->output[i] = s->streams.captured[i];
		buf_init(&s->streams.captured[i], STREAMS_CAPTURE_MAX_BYTES);
	}
}

static int supervise(struct session *s, const struct policy *p, struct supervise_outcome *ret,
		     struct err *e)
{
	const struct supervise_options options = {
		.sandbox = &s->sandbox,
		.streams = &s->streams,
		.gatekeeper = &s->gatekeeper,
		.signal_fd = s->signal_fd,
		.timeout_ms = p->timeout_ms,
		.cpu_ms = s->cgroup.kind == CGROUP_NONE ? 0 : p->cpu_time_ms,
		.cgroup = &s->cgroup,
	};

	return supervise_wait(&options, ret, e);
}

int run_command(const struct run_options *o, struct run_result *ret, struct err *e)
{
	CLEANUP(session_done) struct session s;
	struct supervise_outcome outcome = { 0 };

	session_init(&s);
	if (prepare(&s, o, e) < 0 || start(&s, o, e) < 0 ||
	    supervise(&s, o->policy, &outcome, e) < 0)
		return -1;
	*ret = (struct run_result){ 0 };
	finish(&s, &outcome, ret);
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
}

const char *run_limits_by(const struct policy *p)
{
	const char *why = NULL;
	struct cgroup c;
	struct err ignored;
	enum cgroup_kind kind;

	if (cgroup_needs(p) == 0)
		return "nothing to limit";
	if (cgroup_plan(p, &c, &why, &ignored) < 0)
		return "nothing: this host's cgroups cannot be read";
	kind = c.kind;
	cgroup_release(&c);
	return kind == CGROUP_V2   ? "cgroup v2"
	       : kind == CGROUP_V1 ? "cgroup v1"
				   : "rlimits and watching (no cgroup may be created)";
}
