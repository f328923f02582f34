/*
 * lifecycle - operations on a named sandbox as a whole; see lifecycle.h.
 *
 * Theory of operation. An act that begins or ends a run needs the lock, which the supervisor holds
 * while the sandbox runs: it checks the state (moves), waits for the lock in short steps, because
 * the holder may change the state meanwhile, and checks again. A start begins with cleaning up what
 * the last supervisor may have left. Removal is also the recovery from a crash: it works only from
 * the files on disk and can be repeated.
 */
#include "named/lifecycle.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/gatekeeper.h"
#include "engine/images.h"
#include "named/control.h"
#include "named/execute.h"
#include "named/halt.h"
#include "named/layerstore.h"
#include "named/moves.h"
#include "named/supervisor.h"
#include "named/nameddir.h"
#include "named/nameddisk.h"
#include "named/portholder.h"
#include "named/namedfile.h"
#include "policy/clone.h"
#include "state/audit.h"
#include "workspace/hostfiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INIT_SAID_BYTES 300u /* of init's output, in an error message */

/* ---- audit ---- */

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

void lifecycle_audit(const struct ak *ak, enum auditline_type type, const char *name,
		     const char *what, const struct err *why)
{
	lifecycle_audit_of(ak, NULL, type, name, what, why);
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
int lifecycle_audit_result(int r, const struct ak *ak, enum auditline_type type, const char *name,
			   const struct err *e)
{
	lifecycle_audit(ak, type, name, NULL, r < 0 ? e : NULL);
	return r;
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
		r = nameddir_create(q->ak, n, &policy, e);
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
	struct err ignored;

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
	if (create_noted(q, n, e) == 0) {
		if (!q->services || q->services->count == 0 ||
		    services_save(n, q->services, e) == 0)
			return 0;
		(void)!nameddir_trash(q->ak, n, &ignored);
	}
	if (q->image)
		images_unpin(q->ak, n->image_pin);
	return -1;
}

int lifecycle_create(const struct lifecycle_request *q, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (lifecycle_audit_result(make(q, &n, e), q->ak, AUDITLINE_CREATE, q->name, e) < 0)
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
	nameddisk_sweep(n);
	if (!halt_clean_up(ak, n)) /* two mounted roots on one disk would corrupt it */
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
	return lifecycle_audit_result(start_and_init(ak, n, e), ak, AUDITLINE_START, n->name, e);
}

/* If the lock is free, removes the expired sandbox; else its holder, the supervisor, will. */
int lifecycle_check_expiry(const struct ak *ak, struct named *n, struct err *e)
{
	struct err ignored;

	if (!named_is_expired(n))
		return 0;
	if (n->has_lock || named_lock(n, &ignored) == 0)
		lifecycle_remove_expired(ak, n);
	return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has expired (--ttl) and is removed",
		       n->name);
}

/* Does not wait for a lock whose holder has started the sandbox meanwhile. */
static int lock_to_start(struct named *n, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LIFECYCLE_LOCK_WAIT_MS;

	for (;;) {
		if (moves_check(n, MOVES_START, e) < 0)
			return -1;
		if (named_lock_within(n, LIFECYCLE_LOCK_LOOK_MS, e) == 0)
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
	if (lifecycle_check_expiry(ak, &n, e) < 0 || moves_check(&n, MOVES_START, e) < 0)
		return -1;
	return start_and_init(ak, &n, e);
}

static int ask(const struct ak *ak, const char *name, enum moves_act act, uint32_t kind,
	       struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || moves_check(&n, act, e) < 0 ||
	    control_connect(n.dir_fd, name, &fd, e) < 0)
		return -1;
	return control_do(fd, kind, NULL, 0, e);
}

/* A dozing sandbox has a supervisor, which wakes it. */
static int start_or_wake(const struct ak *ak, const char *name, struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	CLEANUP(named_done) struct named n;
	enum named_state state;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || moves_load_state(&n, &run, &state, e) < 0)
		return -1;
	return state == NAMED_DOZING ? ask(ak, name, MOVES_RESUME, CONTROL_WAKE, e)
				     : start(ak, name, e);
}

int lifecycle_start(const struct ak *ak, const char *name, struct err *e)
{
	return lifecycle_audit_result(start_or_wake(ak, name, e), ak, AUDITLINE_START, name, e);
}

/* ---- pausing, stopping, restarting ---- */

int lifecycle_pause(const struct ak *ak, const char *name, struct err *e)
{
	return lifecycle_audit_result(ask(ak, name, MOVES_PAUSE, CONTROL_PAUSE, e), ak,
				      AUDITLINE_PAUSE, name, e);
}

int lifecycle_resume(const struct ak *ak, const char *name, struct err *e)
{
	return lifecycle_audit_result(ask(ak, name, MOVES_RESUME, CONTROL_RESUME, e), ak,
				      AUDITLINE_RESUME, name, e);
}

/* One that is asleep is stopped already: it only must not wake any more. */
static int stop_asleep(const struct ak *ak, struct named *n, struct namedrun *run, struct err *e)
{
	if (named_lock_within(n, LIFECYCLE_LOCK_WAIT_MS, e) < 0)
		return -1;
	portholder_drop(ak, n);
	run->state = NAMED_STOPPED;
	return namedrun_save(n, run, e);
}

static int stop(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		struct named *n, struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	enum named_state state;

	if (named_open(ak, name, n, e) < 0 || moves_load_state(n, &run, &state, e) < 0)
		return -1;
	if (state == NAMED_ASLEEP)
		return stop_asleep(ak, n, &run, e);
	if (moves_check(n, MOVES_STOP, e) < 0)
		return -1;
	return flags & LIFECYCLE_FORCE ? halt_kill(ak, n, e) : halt_ask(n, timeout_ms, e);
}

int lifecycle_stop(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	return lifecycle_audit_result(stop(ak, name, timeout_ms, flags, &n, e), ak, AUDITLINE_STOP,
				      name, e);
}

/* 1: stopped, and we hold the lock. 0: it is not running, or has just ended. */
static int try_stop(const struct ak *ak, struct named *n, uint64_t timeout_ms, unsigned flags,
		    struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	enum named_state state;

	if (moves_load_state(n, &run, &state, e) < 0)
		return -1;
	if (!moves_is_allowed(MOVES_STOP, state))
		return 0;
	if ((flags & LIFECYCLE_FORCE ? halt_kill(ak, n, e) : halt_ask(n, timeout_ms, e)) == 0)
		return 1;
	return e->code == ERR_NOT_FOUND || e->code == ERR_BUSY ? 0 : -1;
}

/* Stops the sandbox and takes its lock, also if another process is just starting it. */
static int lock_to_restart(const struct ak *ak, struct named *n, uint64_t timeout_ms,
			   unsigned flags, bool *ret_was_running, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LIFECYCLE_LOCK_WAIT_MS;

	*ret_was_running = false;
	for (;;) {
		int r = try_stop(ak, n, timeout_ms, flags, e);

		*ret_was_running |= r > 0;
		if (r != 0)
			return r < 0 ? -1 : 0;
		if (named_lock_within(n, LIFECYCLE_LOCK_LOOK_MS, e) == 0)
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

int lifecycle_restart(const struct ak *ak, const char *name, uint64_t timeout_ms, unsigned flags,
		      struct err *e)
{
	return lifecycle_audit_result(restart(ak, name, timeout_ms, flags, e), ak,
				      AUDITLINE_RESTART, name, e);
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
		namedfile_take_notices(&n, &notices);
	return notices;
}

/* ---- removing ---- */

/* The caller holds the lock. Another process that changes the record has finished or fails. */
static int remove_locked(const struct ak *ak, struct named *n, struct err *e)
{
	int r;

	(void)halt_clean_up(ak, n);
	portholder_drop(ak, n);
	if (n->change_fd < 0) /* go on even if the record cannot be read */
		(void)!named_begin_change(n, e);
	r = nameddir_trash(ak, n, e);
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
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	enum named_state state = NAMED_STOPPED;
	struct err damage = { 0 };

	if (!is_forced)
		return moves_check(n, MOVES_REMOVE, e);
	/* a sandbox with unreadable files may still run, started by a newer build */
	if (moves_load_state(n, &run, &state, &damage) < 0 ? !named_is_locked(n)
							   : !moves_is_allowed(MOVES_STOP, state))
		return 0;
	if (halt_end(n, &damage) == 0 || damage.code == ERR_NOT_FOUND)
		return 0;
	*e = damage;
	return -1;
}

static int lock_to_remove(struct named *n, bool is_forced, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LIFECYCLE_LOCK_WAIT_MS;

	for (;;) {
		if (make_removable(n, is_forced, e) < 0)
			return -1;
		if (named_lock_within(n, LIFECYCLE_LOCK_LOOK_MS, e) == 0)
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
	if (named_begin_change(n, &e) == 0 && !named_is_expired(n)) {
		named_end_change(n);
		return;
	}
	audit_set_identity(&who, n->id, n->owner);
	r = remove_locked(ak, n, &e);
	lifecycle_audit_of(ak, &who, AUDITLINE_REMOVE, n->name, "expired", r < 0 ? &e : NULL);
}
