/*
 * lifecycle - operations on a named sandbox as a whole; see lifecycle.h.
 *
 * Removal is also the recovery from a crash: it works only from the files on disk and can be
 * repeated. A start also begins with cleaning up what the last supervisor may have left.
 */
#include "named/lifecycle.h"

#include "named/rootplan.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "state/audit.h"
#include "named/checkpoint.h"
#include "named/control.h"
#include "engine/gatekeeper.h"
#include "workspace/hostfiles.h"
#include "engine/images.h"
#include "named/execute.h"
#include "named/supervisor.h"
#include "named/layerstore.h"
#include "workspace/quarantine.h"
#include "policy/clone.h"
#include "host/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_MS 15000u  /* for another command that is changing the sandbox */
#define LOCK_LOOK_MS 50u     /* interval for checking its state meanwhile */
#define INIT_SAID_BYTES 300u /* of init's output, in an error message */
#define STOP_AGAIN_MS 500u
#define STOP_SLACK_MS 20000u /* for the supervisor to clean up */

enum act { ACT_START, ACT_STOP, ACT_PAUSE, ACT_RESUME, ACT_REMOVE };

/* The states from which each act is allowed, and its word in the error. */
static const struct {
	const char *word;
	unsigned from; /* bit mask of states */
} moves[] = {
	[ACT_START] = { "start", 1u << NAMED_CREATED | 1u << NAMED_STOPPED },
	[ACT_STOP] = { "stop", 1u << NAMED_RUNNING | 1u << NAMED_PAUSED },
	[ACT_PAUSE] = { "pause", 1u << NAMED_RUNNING },
	[ACT_RESUME] = { "resume", 1u << NAMED_PAUSED },
	[ACT_REMOVE] = { "be removed", 1u << NAMED_CREATED | 1u << NAMED_STOPPED },
};

static const char *const hint[] = {
	[NAMED_CREATED] = "start it first",
	[NAMED_RUNNING] = "stop it first",
	[NAMED_PAUSED] = "resume it first",
	[NAMED_STOPPED] = "start it first",
};

/* ---- audit ---- */

void lifecycle_audit(const struct ak *ak, enum auditline_type type, const char *name,
		     const char *what, const struct err *why)
{
	lifecycle_audit_of(ak, NULL, type, name, what, why);
}

void lifecycle_audit_of(const struct ak *ak, const struct audit_identity *who,
			enum auditline_type type, const char *name, const char *what,
			const struct err *why)
{
	const struct audit_event event = {
		.type = type,
		.sandbox = name,
		.who = who,
		.what = what,
		.result = why ? why->msg : NULL,
	};

	(void)audit_write(ak, &event);
}

void lifecycle_audit_limit(const struct ak *ak, const char *name, const char *limit)
{
	lifecycle_audit(ak, AUDITLINE_LIMIT, name, limit, NULL);
}

void lifecycle_audit_denials(const struct ak *ak, const char *name, const struct gatekeeper *k,
			     unsigned *seen)
{
	for (; *seen < k->denial_count; (*seen)++) {
		const struct gatekeeper_denial *d = &k->denials[*seen];
		cleanup_free char *what =
			d->port ? mem_format("%s:%u", d->host, d->port) : mem_dup(d->host);
		const struct audit_event event = {
			.type = AUDITLINE_DENIED,
			.sandbox = name,
			.what = what,
			.result = "denied",
			.detail = d->reason,
		};

		(void)audit_write(ak, &event);
	}
}

/* Writes the result of an act to the audit log and returns it. */
static int noted(int r, const struct ak *ak, enum auditline_type type, const char *name,
		 const struct err *e)
{
	lifecycle_audit(ak, type, name, NULL, r < 0 ? e : NULL);
	return r;
}

/* ---- states ---- */

static int load_state(const struct named *n, struct named_run *run, enum named_state *ret,
		      struct err *e)
{
	const char *reason;

	*ret = NAMED_CREATED;
	if (named_load_run(n, run, e) < 0) {
		*run = (struct named_run){ 0 };
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	}
	*ret = named_judge(n, run, &reason);
	return 0;
}

static int check_move(const struct named *n, enum act act, struct err *e)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	enum named_state state;

	if (load_state(n, &run, &state, e) < 0)
		return -1;
	if (moves[act].from & 1u << state)
		return 0;
	return err_set(e, ERR_BUSY, "sandbox '%s' is %s, so it cannot %s (%s)", n->name,
		       named_state_word(state), moves[act].word,
		       act == ACT_REMOVE && state != NAMED_CREATED ? "add -f, or stop it first"
								   : hint[state]);
}

/*
 * Cleans up after a killed supervisor. The caller holds the lock, so nobody runs the sandbox.
 * False: processes of the last run still exist, and the kernel does not end them.
 */
static bool clean_up(const struct ak *ak, const struct named *n)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	struct err ignored;
	bool is_clean = true;

	(void)unlinkat(n->dir_fd, CONTROL_SOCKET, 0);
	if (named_load_run(n, &run, &ignored) < 0)
		return true;
	if (run.state == NAMED_RUNNING || run.state == NAMED_PAUSED) {
		struct err died = { 0 };

		(void)err_set(&died, ERR_SYSTEM, "supervisor died");
		lifecycle_audit(ak, AUDITLINE_END, n->name, "sandbox", &died);
	}
	/* a frozen init did not notice that its supervisor died */
	for (char **path = run.cgroups; path && *path; path++)
		cgroup_end_path(*path);
	for (char **path = run.cgroups; path && *path; path++)
		is_clean = cgroup_remove_path(*path) && is_clean;
	return is_clean;
}

/* ---- creating and starting ---- */

static int check_request(const struct lifecycle_request *q, struct err *e)
{
	unsigned count = 0;

	if (named_check_name(q->name, e) < 0)
		return -1;
	for (char *const *label = q->labels; label && *label; label++, count++)
		if (named_check_label(*label, e) < 0)
			return -1;
	if (count > NAMED_LABELS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u labels", NAMED_LABELS_MAX);
	return 0;
}

static void copy_list(char *const *from, char ***to)
{
	for (; from && *from; from++)
		(void)keyrows_list_add(to, *from);
}

/* Records where host paths lead, unless the policy, copied from another sandbox, has them. */
static int create_noted(const struct lifecycle_request *q, struct named *n, struct err *e)
{
	struct policy policy = *q->policy; /* all but the list is borrowed */
	int r;

	policy.places = NULL;
	copy_list(q->policy->places, &policy.places);
	r = hostfiles_note(&policy, &policy.places, e);
	if (r == 0)
		r = named_create(q->ak, n, &policy, e);
	keyrows_list_free(&policy.places);
	return r;
}

/* Composes the commands of the first start: the git clone, then the configured [sandbox] init. */
static char *compose_init(const struct lifecycle_request *q)
{
	cleanup_buf struct buf text;

	buf_init(&text, NAMED_RECORD_MAX_BYTES);
	if (q->policy->is_clone)
		clone_format_init(q->policy, &text);
	if (q->init)
		buf_add_text(&text, q->init);
	return text.len ? mem_dup(buf_text(&text)) : NULL;
}

static int make(const struct lifecycle_request *q, struct named *n, struct err *e)
{
	const char *owner = q->owner ? q->owner : named_owner(q->ak);

	if (check_request(q, e) < 0)
		return -1;
	(void)snprintf(n->name, sizeof(n->name), "%s", q->name);
	named_random_id(n->id);
	copy_list(q->labels, &n->labels);
	copy_list(q->layers, &n->layers);
	n->origin = q->origin ? mem_dup(q->origin) : NULL;
	n->owner = owner ? mem_dup(owner) : NULL;
	n->creator = named_creator(q->ak) ? mem_dup(named_creator(q->ak)) : NULL;
	n->init = compose_init(q);
	n->image = mem_dup(q->policy->image);
	n->backend = q->policy->backend ? mem_dup(policy_backends[q->policy->backend]) : NULL;
	n->has_disk_limit = policy_is_asked(q->policy, POLICY_DISK);
	if (n->has_disk_limit && geteuid() != 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "--disk: only the host's root can limit the disk of a sandbox that "
			       "stays (leave it out, or use run, whose disk is memory)");
	if (q->ttl_ms)
		n->expires_s = (uint64_t)time(NULL) + (q->ttl_ms + 999) / 1000;
	if (q->image) {
		n->image_pin = mem_dup(n->id);
		if (images_pin(q->ak, q->image, n->image_pin, e) < 0)
			return -1;
	}
	if (create_noted(q, n, e) == 0)
		return 0;
	if (q->image)
		images_unpin(q->ak, n->image_pin);
	return -1;
}

int lifecycle_create(const struct lifecycle_request *q, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (noted(make(q, &n, e), q->ak, AUDITLINE_CREATE, q->name, e) < 0)
		return -1;
	*ret = n;
	named_init(&n);
	return 0;
}

static int start_locked(const struct ak *ak, struct named *n, struct err *e)
{
	CLEANUP(images_done) struct images image;
	struct policy *policy = mem_alloc(sizeof(*policy));
	struct audit_caller starter;
	const struct supervisor_options options = {
		.ak = ak,
		.named = n,
		.policy = policy,
		/* cppcheck-suppress uninitvar ; its address alone */
		.image = n->image_pin ? &image : NULL,
	};
	int r = -1;

	images_init(&image);
	audit_find_caller(&starter);
	audit_work_for(&starter); /* the supervisor, which is forked from here, inherits it */
	named_sweep_disks(n);
	if (!clean_up(ak, n)) /* two mounted roots on one disk would corrupt it */
		(void)err_set(e, ERR_BUSY, "processes of its last run do not end");
	else if (named_load_policy(n, policy, e) == 0 &&
		 (!n->image_pin ||
		  images_open_pinned(ak, n->image_pin, policy->image, &image, e) == 0))
		r = supervisor_start(&options, e);
	policy_done(policy);
	free(policy);
	return r < 0 ? err_wrap(e, "start sandbox '%s'", n->name) : 0;
}

/* Runs [sandbox] init after the first start. It stays in the record until it succeeds. */
static int run_init(const struct ak *ak, struct named *n, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	cleanup_free char *text = mem_format("(\n%s\n) </dev/null 2>&1", n->init);
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", text, NULL };
	const struct execute_options o = {
		.name = n->name,
		.ak = ak,
		.argv = argv,
		.tty = STREAMS_TTY_OFF,
		.is_captured = true,
		.lifeline_fd = ak->lifeline_fd,
	};
	const char *said;
	size_t len, start;
	int r;

	if (execute_command(&o, &result, e) < 0)
		return -1;
	if (result.exit_code != 0) {
		said = buf_text(&result.output[0]);
		len = strlen(said);
		while (len > 0 && said[len - 1] == '\n')
			len--;
		start = len > INIT_SAID_BYTES ? len - INIT_SAID_BYTES : 0;
		return err_set(e, ERR_INVALID, "[sandbox] init ended with %d: %.*s",
			       result.exit_code, (int)(len - start), said + start);
	}
	if (named_begin_change(n, e) < 0)
		return -1;
	free(n->init);
	n->init = NULL;
	r = named_save(n, e);
	named_end_change(n);
	return r;
}

static int start_and_init(const struct ak *ak, struct named *n, struct err *e)
{
	struct err ignored;

	if (start_locked(ak, n, e) < 0)
		return -1;
	if (!n->init || run_init(ak, n, e) == 0)
		return 0;
	(void)!lifecycle_stop(ak, n->name, 0, 0, &ignored);
	return err_wrap(e, "start sandbox '%s'", n->name);
}

int lifecycle_start_locked(const struct ak *ak, struct named *n, struct err *e)
{
	return noted(start_and_init(ak, n, e), ak, AUDITLINE_START, n->name, e);
}

static bool is_expired(const struct named *n)
{
	return n->expires_s && (uint64_t)time(NULL) >= n->expires_s;
}

/* If the lock is free, removes the expired sandbox; else its holder, the supervisor, will. */
int lifecycle_check_expiry(const struct ak *ak, struct named *n, struct err *e)
{
	struct err ignored;

	if (!is_expired(n))
		return 0;
	if (n->has_lock || named_lock(n, &ignored) == 0)
		lifecycle_remove_expired(ak, n);
	return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has expired (--ttl) and is removed",
		       n->name);
}

/* Does not wait for a lock whose holder has started the sandbox meanwhile. */
static int lock_to_start(struct named *n, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LOCK_WAIT_MS;

	for (;;) {
		if (check_move(n, ACT_START, e) < 0)
			return -1;
		if (named_lock_within(n, LOCK_LOOK_MS, e) == 0)
			return 0;
		if (e->code != ERR_BUSY || clock_now_ms() >= end_ms)
			return -1;
	}
}

static int start(const struct ak *ak, const char *name, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || lock_to_start(&n, e) < 0)
		return -1;
	/* check again with the lock: the state may have changed */
	if (lifecycle_check_expiry(ak, &n, e) < 0 || check_move(&n, ACT_START, e) < 0)
		return -1;
	return start_and_init(ak, &n, e);
}

int lifecycle_start(const struct ak *ak, const char *name, struct err *e)
{
	return noted(start(ak, name, e), ak, AUDITLINE_START, name, e);
}

/* ---- asking the supervisor ---- */

static int ask(const struct ak *ak, const char *name, enum act act, uint32_t kind, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || check_move(&n, act, e) < 0 ||
	    control_connect(n.dir_fd, name, &fd, e) < 0)
		return -1;
	return control_do(fd, kind, NULL, 0, e);
}

int lifecycle_pause(const struct ak *ak, const char *name, struct err *e)
{
	return noted(ask(ak, name, ACT_PAUSE, CONTROL_PAUSE, e), ak, AUDITLINE_PAUSE, name, e);
}

int lifecycle_resume(const struct ak *ak, const char *name, struct err *e)
{
	return noted(ask(ak, name, ACT_RESUME, CONTROL_RESUME, e), ak, AUDITLINE_RESUME, name, e);
}

static bool wait_until(int fd, uint64_t end_ms)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < end_ms) {
		uint64_t left_ms = end_ms - now_ms;

		if (poll(&polled, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX) > 0)
			return true;
	}
	return false;
}

static int ask_to_stop(struct named *n, uint64_t timeout_ms, struct err *e)
{
	const struct control_stop body = {
		.timeout_ms = timeout_ms == LIFECYCLE_STOP_DEFAULT_MS ? SUPERVISOR_STOP_DEFAULT_MS
								      : timeout_ms,
	};
	CLEANUP(frame_done) struct frame answer = { 0 };
	uint64_t end_ms = clock_now_ms() + body.timeout_ms + STOP_SLACK_MS;
	cleanup_fd int fd = -1;
	int r;

	if (control_connect(n->dir_fd, n->name, &fd, e) < 0)
		return -1;
	r = frame_send(fd, CONTROL_STOP, &body, sizeof(body), NULL, 0);
	if (r < 0 && r != -EPIPE) /* EPIPE: another command has ended it already */
		return err_sys(e, -r, "ask the supervisor");
	while (wait_until(fd, end_ms)) {
		r = frame_receive(fd, FRAME_WAIT, &answer);
		if (r == -EPROTONOSUPPORT) {
			if (control_terminate(fd, e) < 0)
				return -1;
			return named_lock_within(n, end_ms - clock_now_ms(), e);
		}
		if (r != 1)
			return 0;
		frame_done(&answer);
	}
	return err_set(e, ERR_TIMEOUT, "the supervisor of sandbox '%s' does not end", n->name);
}

/*
 * Waits until the supervisor has cleaned up, which frees the lock. A supervisor without a free
 * descriptor closes our connection without reading the request: ask again.
 */
static int stop_open(struct named *n, uint64_t timeout_ms, struct err *e)
{
	if (ask_to_stop(n, timeout_ms, e) < 0)
		return -1;
	if (n->has_lock || named_lock_within(n, STOP_AGAIN_MS, e) == 0 || e->code != ERR_BUSY)
		return n->has_lock ? 0 : -1;
	if (ask_to_stop(n, timeout_ms, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	return named_lock_within(n, STOP_SLACK_MS, e);
}

/* Kills all processes in the cgroups of the last start, also frozen ones. */
static void kill_processes(const struct named *n)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	struct err ignored;

	if (named_load_run(n, &run, &ignored) < 0)
		return;
	for (char **path = run.cgroups; path && *path; path++)
		cgroup_end_path(*path);
}

/*
 * Ends a sandbox through its supervisor if that answers within CONTROL_PROBE_MS; else kills the
 * supervisor and the processes in the sandbox's cgroups. Processes that have not ended when this
 * returns still hold the lock. ERR_NOT_FOUND: it is not running.
 */
static int stop_hard(struct named *n, struct err *e)
{
	if ((control_probe(n->dir_fd, n->name, e) == 0 || e->code == ERR_UNSUPPORTED) &&
	    stop_open(n, 0, e) == 0)
		return 0;
	if (e->code == ERR_NOT_FOUND && !named_is_locked(n))
		return -1;
	/* no answer: kill the supervisor, which ends the sandbox and frees the lock */
	if (control_kill(n->dir_fd, n->name, e) < 0 && named_kill_supervisor(n, e) < 0)
		return -1;
	kill_processes(n);
	return 0;
}

/* Records the end of a killed sandbox in its run file. The caller holds the lock. */
static void note_killed(const struct ak *ak, const struct named *n)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	struct err ignored;

	if (!clean_up(ak, n) || named_load_run(n, &run, &ignored) < 0 || run.state == NAMED_STOPPED)
		return;
	run.state = NAMED_STOPPED;
	run.ended_s = (uint64_t)time(NULL);
	run.supervisor_pid = run.init_pid = 0;
	keyrows_list_free(&run.cgroups);
	free(run.reason);
	run.reason = mem_dup("killed, its supervisor did not answer");
	(void)!named_save_run(n, &run, &ignored);
}

static int stop_forced(const struct ak *ak, struct named *n, struct err *e)
{
	if (stop_hard(n, e) < 0)
		return -1;
	if (!n->has_lock && named_lock_within(n, STOP_SLACK_MS, e) < 0)
		return -1;
	note_killed(ak, n);
	return 0;
}

static int stop(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		struct named *n, struct err *e)
{
	if (named_open(ak, name, n, e) < 0 || check_move(n, ACT_STOP, e) < 0)
		return -1;
	return flags & LIFECYCLE_FORCE ? stop_forced(ak, n, e) : stop_open(n, timeout_ms, e);
}

int lifecycle_stop(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	return noted(stop(ak, name, timeout_ms, flags, &n, e), ak, AUDITLINE_STOP, name, e);
}

/* 1: stopped, and we hold the lock. 0: it is not running, or has just ended. */
static int try_stop(const struct ak *ak, struct named *n, uint64_t timeout_ms, unsigned flags,
		    struct err *e)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	enum named_state state;

	if (load_state(n, &run, &state, e) < 0)
		return -1;
	if (!(moves[ACT_STOP].from & 1u << state))
		return 0;
	if ((flags & LIFECYCLE_FORCE ? stop_forced(ak, n, e) : stop_open(n, timeout_ms, e)) == 0)
		return 1;
	return e->code == ERR_NOT_FOUND || e->code == ERR_BUSY ? 0 : -1;
}

/* Stops the sandbox and takes its lock, also if another process is just starting it. */
static int lock_to_restart(const struct ak *ak, struct named *n, uint64_t timeout_ms,
			   unsigned flags, bool *ret_was_running, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LOCK_WAIT_MS;

	*ret_was_running = false;
	for (;;) {
		int r = try_stop(ak, n, timeout_ms, flags, e);

		*ret_was_running |= r > 0;
		if (r != 0)
			return r < 0 ? -1 : 0;
		if (named_lock_within(n, LOCK_LOOK_MS, e) == 0)
			return 0;
		if (e->code != ERR_BUSY || clock_now_ms() >= end_ms)
			return -1;
	}
}

static int restart(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;
	bool was_running;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 ||
	    lock_to_restart(ak, &n, timeout_ms, flags, &was_running, e) < 0 ||
	    lifecycle_check_expiry(ak, &n, e) < 0)
		return -1;
	return start_and_init(ak, &n, e);
}

int lifecycle_lock_stopped(const struct ak *ak, struct named *n, bool *ret_was_running,
			   struct err *e)
{
	int r = lock_to_restart(ak, n, LIFECYCLE_STOP_DEFAULT_MS, 0, ret_was_running, e);

	if (*ret_was_running)
		lifecycle_audit(ak, AUDITLINE_STOP, n->name, NULL, NULL);
	return r < 0 ? -1 : lifecycle_check_expiry(ak, n, e);
}

char **lifecycle_take_notices(const struct ak *ak, const char *name)
{
	CLEANUP(named_done) struct named n;
	struct err ignored;
	char **notices = NULL;

	named_init(&n);
	if (named_open(ak, name, &n, &ignored) == 0)
		named_take_notices(&n, &notices);
	return notices;
}

int lifecycle_restart(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		      struct err *e)
{
	return noted(restart(ak, name, timeout_ms, flags, e), ak, AUDITLINE_RESTART, name, e);
}

/* ---- removing ---- */

/* The caller holds the lock. Another process that changes the record has finished or fails. */
static int remove_locked(const struct ak *ak, struct named *n, struct err *e)
{
	int r;

	(void)clean_up(ak, n);
	if (n->change_fd < 0) /* go on even if the record cannot be read */
		(void)!named_begin_change(n, e);
	r = named_trash(ak, n, e);
	named_end_change(n);
	if (r < 0)
		return -1;
	if (n->image_pin)
		images_unpin(ak, n->image_pin);
	return n->layers ? layerstore_collect(ak, NULL, e) : 0;
}

/* Opens a sandbox whose record is unreadable; a random id is its name in the trash. */
static int open_damaged(const struct ak *ak, const char *name, struct named *n, struct err *e)
{
	if (named_open_damaged(ak, name, n, e) < 0)
		return -1;
	named_random_id(n->id);
	return 0;
}

/* If forced, stops the sandbox, also one that is just being started. */
static int make_removable(struct named *n, bool is_forced, struct err *e)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };
	enum named_state state = NAMED_STOPPED;
	struct err damage = { 0 };

	if (!is_forced)
		return check_move(n, ACT_REMOVE, e);
	/* a sandbox with unreadable files may still run, started by a newer build */
	if (load_state(n, &run, &state, &damage) < 0 ? !named_is_locked(n)
						     : !(moves[ACT_STOP].from & 1u << state))
		return 0;
	if (stop_hard(n, &damage) == 0 || damage.code == ERR_NOT_FOUND)
		return 0;
	*e = damage;
	return -1;
}

static int lock_to_remove(struct named *n, bool is_forced, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LOCK_WAIT_MS;

	for (;;) {
		if (make_removable(n, is_forced, e) < 0)
			return -1;
		if (named_lock_within(n, LOCK_LOOK_MS, e) == 0)
			return 0;
		if (e->code != ERR_BUSY || clock_now_ms() >= end_ms)
			return -1;
	}
}

static int remove_it(const struct ak *ak, const char *name, unsigned flags, struct err *e)
{
	CLEANUP(named_done) struct named n;
	bool is_forced = flags & LIFECYCLE_FORCE;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0) {
		if (!is_forced || e->code == ERR_INVALID)
			return -1;
		if (e->code == ERR_NOT_FOUND)
			return 0;
		if (open_damaged(ak, name, &n, e) < 0)
			return e->code == ERR_NOT_FOUND ? 0 : -1;
	}
	if (lock_to_remove(&n, is_forced, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1; /* another process removed it meanwhile */
	return remove_locked(ak, &n, e);
}

int lifecycle_remove(const struct ak *ak, const char *name, unsigned flags, struct err *e)
{
	struct audit_identity who = { 0 };
	int r;

	named_identify(ak, name, &who);
	r = remove_it(ak, name, flags, e);
	lifecycle_audit_of(ak, &who, AUDITLINE_REMOVE, name, NULL, r < 0 ? e : NULL);
	return r;
}

void lifecycle_remove_expired(const struct ak *ak, struct named *n)
{
	struct audit_identity who = { 0 };
	struct err e = { 0 };
	int r;

	/* it may have been extended meanwhile */
	if (named_begin_change(n, &e) == 0 && !is_expired(n)) {
		named_end_change(n);
		return;
	}
	audit_set_identity(&who, n->id, n->owner);
	r = remove_locked(ak, n, &e);
	lifecycle_audit_of(ak, &who, AUDITLINE_REMOVE, n->name, "expired", r < 0 ? &e : NULL);
}

/* ---- changing ---- */

/* Did the supervisor end before it answered? */
static bool is_unanswered(const struct err *e)
{
	return e->code == ERR_SYSTEM && (e->sys == 0 || e->sys == EPIPE || e->sys == ECONNRESET);
}

/*
 * Makes a running supervisor reload what was saved. If the sandbox is just being started, its
 * supervisor may have read the old files: wait for it. One that is started later reads the new
 * ones.
 */
static int tell_supervisor(struct named *n, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOCK_LOOK_MS * 1000000l };
	uint64_t end_ms = clock_now_ms() + LOCK_WAIT_MS;

	named_end_change(n);
	for (;;) {
		cleanup_fd int fd = -1;
		bool is_heard = control_connect(n->dir_fd, n->name, &fd, e) == 0;

		if (is_heard && control_do(fd, CONTROL_RELOAD, NULL, 0, e) == 0)
			return 0;
		if ((is_heard && !is_unanswered(e)) || (!is_heard && e->code != ERR_NOT_FOUND))
			return -1;
		if (!named_is_locked(n))
			return 0;
		if (clock_now_ms() >= end_ms)
			return err_set(
				e, ERR_TIMEOUT,
				"sandbox '%s' is changed, but its supervisor does not listen",
				n->name);
		(void)nanosleep(&pause, NULL);
	}
}

static int save_change(struct named *n, const struct policy *p, struct err *e)
{
	return named_save_policy(n, p, e) < 0 ? -1 : tell_supervisor(n, e);
}

/* The change lock serializes changes, because a running supervisor holds the other lock. */
static int open_for_change(const struct ak *ak, const char *name, struct named *n,
			   struct policy *policy, struct err *e)
{
	if (named_open(ak, name, n, e) < 0 || named_begin_change(n, e) < 0)
		return -1;
	return named_load_policy(n, policy, e);
}

/* Changes the disk's size: a quota at once, an image file at the next start. */
static int update_disk(const struct ak *ak, const struct named *n, uint64_t limit_bytes,
		       bool *ret_is_later, struct err *e)
{
	int r;

	if (!n->has_disk_limit)
		return err_set(
			e, ERR_INVALID,
			"--disk: sandbox '%s' was created without it, so that its disk has no "
			"limit to change",
			n->name);
	r = rootplan_change_disk(ak, n, limit_bytes, e);
	if (r < 0)
		return err_wrap(e, "--disk");
	*ret_is_later = r == ROOTPLAN_AT_NEXT_START && named_is_locked(n);
	return 0;
}

static int update(const struct ak *ak, const char *name, const struct policy_setting *settings,
		  size_t count, bool *ret_is_later, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (open_for_change(ak, name, &n, &policy, e) < 0 ||
	    policy_change(&policy, settings, count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (settings[i].field == POLICY_DISK &&
		    update_disk(ak, &n, policy.disk_bytes, ret_is_later, e) < 0)
			return -1;
	return save_change(&n, &policy, e);
}

static int change_network(const struct ak *ak, const char *name, enum lifecycle_network what,
			  char *const *patterns, struct err *e)
{
	static const char *const origin[] = { "network allow", "network block" };
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (open_for_change(ak, name, &n, &policy, e) < 0)
		return -1;
	if (!policy.has_network)
		return err_set(e, ERR_INVALID,
			       "sandbox '%s' was created without a network, and stays so", name);
	if (what == LIFECYCLE_RESET) {
		if (named_restore_rules(&n, &policy.egress, e) < 0)
			return -1;
		return save_change(&n, &policy, e);
	}
	if (named_keep_rules(&n, &policy.egress, e) < 0)
		return -1;
	for (; *patterns; patterns++)
		if (egress_add(&policy.egress,
			       what == LIFECYCLE_ALLOW ? EGRESS_ALLOW : EGRESS_BLOCK, *patterns,
			       EGRESS_PATTERNS, origin[what], e) < 0)
			return -1;
	return save_change(&n, &policy, e);
}

int lifecycle_change_network(const struct ak *ak, const char *name, enum lifecycle_network what,
			     char *const *patterns, struct err *e)
{
	static const char *const word[] = { "allow", "block", "reset" };
	int r = change_network(ak, name, what, patterns, e);
	cleanup_buf struct buf text;

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	buf_add_text(&text, word[what]);
	for (; patterns && *patterns; patterns++)
		buf_addf(&text, " %s", *patterns);
	lifecycle_audit(ak, AUDITLINE_NETWORK, name, buf_text(&text), r < 0 ? e : NULL);
	return r;
}

int lifecycle_update(const struct ak *ak, const char *name, const struct policy_setting *settings,
		     size_t count, bool *ret_is_later, struct err *e)
{
	return noted(update(ak, name, settings, count, ret_is_later, e), ak, AUDITLINE_UPDATE, name,
		     e);
}

static int extend(const struct ak *ak, const char *name, uint64_t by_ms, uint64_t *ret_expires_s,
		  struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (open_for_change(ak, name, &n, &policy, e) < 0)
		return -1;
	n.expires_s = (n.expires_s ? n.expires_s : (uint64_t)time(NULL)) + (by_ms + 999) / 1000;
	if (named_save(&n, e) < 0 || tell_supervisor(&n, e) < 0)
		return -1;
	*ret_expires_s = n.expires_s;
	return 0;
}

int lifecycle_extend(const struct ak *ak, const char *name, uint64_t by_ms, uint64_t *ret_expires_s,
		     struct err *e)
{
	return noted(extend(ak, name, by_ms, ret_expires_s, e), ak, AUDITLINE_UPDATE, name, e);
}

static int set_checkpoints(const struct ak *ak, const char *name, uint64_t every_ms, uint64_t keep,
			   struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_begin_change(&n, e) < 0)
		return -1;
	n.checkpoint_every_ms = every_ms;
	n.checkpoint_keep = every_ms ? keep : 0;
	return named_save(&n, e) < 0 ? -1 : tell_supervisor(&n, e);
}

int lifecycle_set_checkpoints(const struct ak *ak, const char *name, uint64_t every_ms,
			      uint64_t keep, struct err *e)
{
	return noted(set_checkpoints(ak, name, every_ms, keep, e), ak, AUDITLINE_UPDATE, name, e);
}

/* ---- listing ---- */

/* False: removed since its name was read. */
static bool look(const struct ak *ak, const char *name, struct lifecycle_entry *entry)
{
	struct err e = { 0 };

	*entry = (struct lifecycle_entry){ 0 };
	named_init(&entry->named);
	(void)snprintf(entry->named.name, sizeof(entry->named.name), "%s", name);
	if (named_open_any(ak, name, &entry->named, &e) < 0) {
		(void)snprintf(entry->trouble, sizeof(entry->trouble), "%s", e.msg);
		entry->state = NAMED_STOPPED;
		return e.code != ERR_NOT_FOUND;
	}
	if (named_load_run(&entry->named, &entry->run, &e) < 0 && e.code != ERR_NOT_FOUND) {
		(void)snprintf(entry->trouble, sizeof(entry->trouble), "%s", e.msg);
		entry->state = NAMED_STOPPED;
		return true;
	}
	entry->state = named_judge(&entry->named, &entry->run, &entry->reason);
	if (entry->state == NAMED_RUNNING || entry->state == NAMED_PAUSED)
		named_read_build(&entry->named, entry->build);
	entry->is_expired = is_expired(&entry->named);
	cleanup_closep(&entry->named.dir_fd);
	return true;
}

void lifecycle_entry_done(struct lifecycle_entry *entry)
{
	/* the descriptors are closed, or 0 in an entry that was never filled in */
	entry->named.dir_fd = entry->named.lock_fd = entry->named.change_fd = -1;
	named_done(&entry->named);
	named_run_done(&entry->run);
}

void lifecycle_list_done(struct lifecycle_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		lifecycle_entry_done(&l->entries[i]);
	free(l->entries);
	*l = (struct lifecycle_list){ 0 };
}

int lifecycle_list(const struct ak *ak, struct lifecycle_list *ret, struct err *e)
{
	char **names = NULL;
	size_t count;

	*ret = (struct lifecycle_list){ 0 };
	if (named_list(ak, &names, e) < 0)
		return -1;
	count = keyrows_list_count(names);
	ret->entries = mem_alloc((count + 1) * sizeof(*ret->entries));
	for (size_t i = 0; i < count; i++)
		ret->count += look(ak, names[i], &ret->entries[ret->count]);
	keyrows_list_free(&names);
	return 0;
}

int lifecycle_is_running(const struct ak *ak, const char *name, bool *ret, struct err *e)
{
	CLEANUP(lifecycle_entry_done) struct lifecycle_entry entry = { 0 };

	named_init(&entry.named);
	if (lifecycle_info(ak, name, &entry, e) < 0)
		return -1;
	*ret = entry.state == NAMED_RUNNING || entry.state == NAMED_PAUSED;
	return 0;
}

bool lifecycle_is_outdated(const struct lifecycle_entry *entry)
{
	return (entry->state == NAMED_RUNNING || entry->state == NAMED_PAUSED) &&
	       strcmp(entry->build, buildid_get()) != 0;
}

int lifecycle_info(const struct ak *ak, const char *name, struct lifecycle_entry *ret,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0)
		return -1;
	(void)look(ak, name, ret);
	return 0;
}

/* ---- garbage ---- */

static bool is_dead(const struct lifecycle_entry *entry)
{
	return entry->state == NAMED_STOPPED &&
	       (entry->run.state == NAMED_RUNNING || entry->run.state == NAMED_PAUSED);
}

/* Cleans up and saves the state in place of a killed supervisor. */
static int bury(const struct ak *ak, const char *name, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(named_run_done) struct named_run run = { 0 };

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_lock(&n, e) < 0 ||
	    named_load_run(&n, &run, e) < 0)
		return e->code == ERR_BUSY || e->code == ERR_NOT_FOUND ? 0 : -1;
	if (run.state != NAMED_RUNNING && run.state != NAMED_PAUSED)
		return 0; /* another process has started and stopped it meanwhile */
	if (clean_up(ak, &n))
		keyrows_list_free(&run.cgroups);
	run.state = NAMED_STOPPED;
	free(run.reason);
	run.reason = mem_dup("supervisor died");
	run.supervisor_pid = run.init_pid = 0;
	return named_save_run(&n, &run, e);
}

/* The supervisor of a running sandbox ends it, which takes a moment: wait for the lock. */
static int remove_expired(const struct ak *ak, const char *name, unsigned wait_ms, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_lock_within(&n, wait_ms, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	lifecycle_remove_expired(ak, &n);
	return 0;
}

void lifecycle_sweep_expired(const struct ak *ak, const struct lifecycle_list *l)
{
	struct err ignored;

	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].is_expired && !l->entries[i].trouble[0])
			(void)!remove_expired(ak, l->entries[i].named.name, 0, &ignored);
}

static int collect(const struct ak *ak, const struct lifecycle_entry *entry, unsigned flags,
		   struct lifecycle_garbage *g, struct err *e)
{
	if (entry->trouble[0])
		return 0; /* left to the user: remove -f */
	if (entry->is_expired) {
		g->expired++;
		return flags & LIFECYCLE_DRY
			       ? 0
			       : remove_expired(ak, entry->named.name, LOCK_WAIT_MS, e);
	}
	if (!is_dead(entry))
		return 0;
	g->dead++;
	return flags & LIFECYCLE_DRY ? 0 : bury(ak, entry->named.name, e);
}

/* Removes unused image pins, only if every record is readable: others may use any pin. */
static int collect_pins(const struct ak *ak, unsigned *ret_count, struct err *e)
{
	CLEANUP(lifecycle_list_done) struct lifecycle_list sandboxes = { 0 };
	CLEANUP(checkpoint_list_done) struct checkpoint_list checkpoints = { 0 };
	bool is_whole = true;
	char **used = NULL;
	int r = 0;

	if (lifecycle_list(ak, &sandboxes, e) < 0 || checkpoint_list(ak, NULL, &checkpoints, e) < 0)
		return -1;
	for (size_t i = 0; i < sandboxes.count; i++) {
		is_whole = is_whole && !sandboxes.entries[i].trouble[0];
		if (sandboxes.entries[i].named.image_pin)
			(void)keyrows_list_add(&used, sandboxes.entries[i].named.image_pin);
	}
	for (size_t i = 0; i < checkpoints.count; i++)
		if (checkpoints.entries[i].image_pin)
			(void)keyrows_list_add(&used, checkpoints.entries[i].image_pin);
	if (is_whole && !checkpoints.has_damaged)
		r = images_collect_pins(ak, used, ret_count, e);
	keyrows_list_free(&used);
	return r;
}

int lifecycle_gc(const struct ak *ak, unsigned flags, struct lifecycle_garbage *ret, struct err *e)
{
	CLEANUP(lifecycle_list_done) struct lifecycle_list list = { 0 };

	*ret = (struct lifecycle_garbage){ 0 };
	if (lifecycle_list(ak, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (collect(ak, &list.entries[i], flags, ret, e) < 0)
			return -1;
	if (quarantine_prune(ak, flags & LIFECYCLE_DRY ? QUARANTINE_DRY : 0, &ret->quarantined, e) <
	    0)
		return -1;
	if (flags & LIFECYCLE_DRY)
		return 0;
	cgroup_sweep();
	if (named_sweep_trash(ak, &ret->leftovers, e) < 0 ||
	    checkpoint_sweep(ak, &ret->leftovers, e) < 0 ||
	    layerstore_collect(ak, &ret->layers, e) < 0)
		return -1;
	return collect_pins(ak, &ret->pins, e);
}
