/*
 * reconfigure - changes the settings of a named sandbox; see reconfigure.h.
 *
 * Theory of operation. The files are changed first, under the change lock (a running supervisor
 * holds the other one), then the supervisor is told to read them again. A supervisor that starts
 * later reads the new files by itself; one that is just starting may have read the old ones, so we
 * wait until it listens.
 */
#include "named/reconfigure.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/published.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/moves.h"
#include "named/portholder.h"
#include "named/rootplan.h"
#include "named/services.h"
#include "named/namedfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
	const struct timespec pause = { .tv_nsec = LIFECYCLE_LOCK_LOOK_MS * 1000000L };
	uint64_t end_ms = clock_now_ms() + LIFECYCLE_LOCK_WAIT_MS;

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

int reconfigure_limits(const struct ak *ak, const char *name, const struct policy_setting *settings,
		       size_t count, bool *ret_is_later, struct err *e)
{
	return lifecycle_audit_result(update(ak, name, settings, count, ret_is_later, e), ak,
				      AUDITLINE_UPDATE, name, e);
}

static int change_network(const struct ak *ak, const char *name, enum reconfigure_rules what,
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
	if (what == RECONFIGURE_RESET) {
		if (namedfile_restore_rules(&n, &policy.egress, e) < 0)
			return -1;
		return save_change(&n, &policy, e);
	}
	if (namedfile_keep_rules(&n, &policy.egress, e) < 0)
		return -1;
	for (; *patterns; patterns++)
		if (egress_add(&policy.egress,
			       what == RECONFIGURE_ALLOW ? EGRESS_ALLOW : EGRESS_BLOCK, *patterns,
			       EGRESS_PATTERNS, origin[what], e) < 0)
			return -1;
	return save_change(&n, &policy, e);
}

int reconfigure_network(const struct ak *ak, const char *name, enum reconfigure_rules what,
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

/* The sandbox does not run, so nobody else would notice now that a port is taken. */
static int check_ports(char *const *texts, struct err *e)
{
	CLEANUP(published_done) struct published trial;

	published_init(&trial);
	return published_open(&trial, texts, e);
}

static int remove_ports(struct policy *p, char *const *texts, const char *name, struct err *e)
{
	char **left = NULL;

	for (char *const *text = texts; *text; text++)
		if (!keyrows_list_has(p->publish, *text))
			return err_set(e, ERR_NOT_FOUND, "sandbox '%s' does not publish %s", name,
				       *text);
	for (char *const *own = p->publish; own && *own; own++)
		if (!keyrows_list_has(texts, *own))
			(void)keyrows_list_add(&left, *own);
	keyrows_list_free(&p->publish);
	p->publish = left;
	return 0;
}

static int add_ports(struct policy *p, char *const *texts, struct err *e)
{
	for (; *texts; texts++)
		if (publish_add(&p->publish, *texts, e) < 0)
			return -1;
	return 0;
}

static int change_ports(const struct ak *ak, const char *name, bool is_adding, char *const *texts,
			struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(policy_done) struct policy before = { 0 };
	struct err ignored;

	named_init(&n);
	if (open_for_change(ak, name, &n, &policy, e) < 0 || named_load_policy(&n, &before, e) < 0)
		return -1;
	if (is_adding ? add_ports(&policy, texts, e) < 0
		      : remove_ports(&policy, texts, name, e) < 0)
		return -1;
	if (is_adding && !named_is_locked(&n) && check_ports(texts, e) < 0)
		return -1;
	if (named_save_policy(&n, &policy, e) < 0)
		return -1;
	if (tell_supervisor(&n, e) == 0)
		return moves_is_asleep(&n) ? portholder_change(ak, &n, policy.publish, e) : 0;
	if (named_begin_change(&n, &ignored) == 0) /* it could not open a port */
		(void)!named_save_policy(&n, &before, &ignored);
	return -1;
}

int reconfigure_ports(const struct ak *ak, const char *name, bool is_adding, char *const *texts,
		      struct err *e)
{
	int r = change_ports(ak, name, is_adding, texts, e);
	cleanup_buf struct buf text;

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	buf_add_text(&text, is_adding ? "publish" : "unpublish");
	for (; *texts; texts++)
		buf_addf(&text, " %s", *texts);
	lifecycle_audit(ak, AUDITLINE_NETWORK, name, buf_text(&text), r < 0 ? e : NULL);
	return r;
}

/* ---- services ---- */

static int change_services(const struct ak *ak, const char *name, struct service *added,
			   const char *removed, struct err *e)
{
	CLEANUP(services_done) struct services all = { 0 };
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_begin_change(&n, e) < 0 ||
	    services_load(&n, &all, e) < 0)
		return -1;
	if ((added && services_put(&all, added, e) < 0) ||
	    (removed && services_remove(&all, removed, e) < 0) || services_save(&n, &all, e) < 0)
		return -1;
	return tell_supervisor(&n, e);
}

int reconfigure_services(const struct ak *ak, const char *name, struct service *added,
			 const char *removed, struct err *e)
{
	cleanup_free char *what = mem_format("%s %s", added ? "service" : "no service",
					     added ? added->name : removed);
	int r = change_services(ak, name, added, removed, e);

	lifecycle_audit(ak, AUDITLINE_UPDATE, name, what, r < 0 ? e : NULL);
	return r;
}

/* ---- who may reach ports over a server ---- */

static int change_access(const struct ak *ak, const char *name, uint32_t port, bool is_public,
			 struct err *e)
{
	CLEANUP(named_done) struct named n;
	char text[16];
	char **left = NULL;

	named_init(&n);
	(void)snprintf(text, sizeof(text), "%" PRIu32, port);
	if (named_open(ak, name, &n, e) < 0 || named_begin_change(&n, e) < 0)
		return -1;
	for (char *const *own = n.public_ports; own && *own; own++)
		if (strcmp(*own, text) != 0)
			(void)keyrows_list_add(&left, *own);
	if (is_public && left && keyrows_list_count(left) >= PUBLISH_MAX) {
		keyrows_list_free(&left);
		return err_set(e, ERR_LIMIT, "more than %u public ports", PUBLISH_MAX);
	}
	if (is_public)
		(void)keyrows_list_add(&left, text);
	keyrows_list_free(&n.public_ports);
	n.public_ports = left;
	return named_save(&n, e) < 0 ? -1 : tell_supervisor(&n, e);
}

int reconfigure_access(const struct ak *ak, const char *name, uint32_t port, bool is_public,
		       struct err *e)
{
	cleanup_free char *what =
		mem_format("port %" PRIu32 " %s", port, is_public ? "public" : "private");
	int r = change_access(ak, name, port, is_public, e);

	lifecycle_audit(ak, AUDITLINE_NETWORK, name, what, r < 0 ? e : NULL);
	return r;
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

int reconfigure_expiry(const struct ak *ak, const char *name, uint64_t by_ms,
		       uint64_t *ret_expires_s, struct err *e)
{
	return lifecycle_audit_result(extend(ak, name, by_ms, ret_expires_s, e), ak,
				      AUDITLINE_UPDATE, name, e);
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

int reconfigure_checkpoints(const struct ak *ak, const char *name, uint64_t every_ms, uint64_t keep,
			    struct err *e)
{
	return lifecycle_audit_result(set_checkpoints(ak, name, every_ms, keep, e), ak,
				      AUDITLINE_UPDATE, name, e);
}
