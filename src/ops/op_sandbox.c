/*
 * op_sandbox - named sandboxes; see op_sandbox.h.
 *
 * Theory of operation. named/lifecycle checks and performs state changes; this file adds what
 * depends on the caller: whether the sandbox is accessible (ops/access), what a new one is created
 * from, and whether it is an error that a sandbox is already in the requested state.
 */
#include "ops/op_sandbox.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/images.h"
#include "named/checkpoint.h"
#include "named/namedgc.h"
#include "named/reconfigure.h"
#include "named/tasks.h"
#include "ops/access.h"
#include "ops/events.h"
#include "ops/op_port.h"
#include "ops/op_service.h"
#include "ops/pickimage.h"
#include "policy/policyimage.h"
#include "state/ak.h"

#include <stdio.h>
#include <string.h>

/* ---- creating ---- */

static int create_from_image(struct ak *ak, const struct op_create_args *args,
			     const struct op_events *ev, const char *name, struct named *ret,
			     struct err *e)
{
	struct request *r = args->request;
	CLEANUP(services_done) struct services services = { 0 };
	CLEANUP(images_done) struct images image;
	struct lifecycle_request q = {
		.ak = ak,
		.name = name,
		.policy = &r->policy,
		.labels = args->labels,
		.ttl_ms = args->ttl_ms,
		.init = request_init(r),
	};

	images_init(&image);
	if (op_service_compose(r, args->words, &services, e) < 0 ||
	    pickimage_open(r, NULL, ev, &image, e) < 0)
		return -1;
	q.image = image.lock_fd >= 0 ? &image : NULL;
	q.services = &services;
	return lifecycle_create(&q, ret, e);
}

/* An imported checkpoint has no policy: resolves one from the settings, with its image. */
static int resolve_on(struct request *r, const struct checkpoint *c, const struct op_events *ev,
		      struct err *e)
{
	const struct policy_setting image_setting = { POLICY_IMAGE, c->image, "--from" };
	CLEANUP(images_done) struct images image;
	struct policyimage config;

	images_init(&image);
	if (settings_add(&r->settings, &image_setting, e) < 0 ||
	    request_resolve(r, NULL, ev, e) < 0)
		return -1;
	if (strcmp(r->policy.image, c->image) != 0)
		return err_set(e, ERR_INVALID, "--image and --from exclude each other");
	if (!c->image_pin)
		return 0;
	if (images_open_pinned(r->ak, c->image_pin, c->image, &image, e) < 0)
		return -1;
	config = images_config(&image);
	return policyimage_apply(&r->policy, &config, e);
}

/* Uses the checkpoint's policy; only limits can be changed. */
static int create_from_checkpoint(struct ak *ak, const struct op_create_args *args,
				  const struct checkpoint *c, const struct op_events *ev,
				  struct err *e)
{
	struct request *r = args->request;
	CLEANUP(policy_done) struct policy policy = { 0 };
	cleanup_free char *origin = mem_format("checkpoint %s", c->id);
	const struct checkpoint_use use = {
		.name = args->name,
		.labels = args->labels,
		.ttl_ms = args->ttl_ms,
		.origin = origin,
	};

	if (checkpoint_load_policy(ak, c->id, &policy, e) == 0) {
		if (policy_change(&policy, r->settings.list, r->settings.count, e) < 0)
			return -1;
		return checkpoint_make(ak, c->id, &policy, &use, e);
	}
	if (e->code != ERR_NOT_FOUND || resolve_on(r, c, ev, e) < 0)
		return -1;
	return checkpoint_make(ak, c->id, &r->policy, &use, e);
}

/* If `from` names no checkpoint, it names an image. */
static int find_from(struct ak *ak, const struct op_create_args *args, struct checkpoint *ret,
		     struct err *e)
{
	const struct policy_setting image = { POLICY_IMAGE, args->from, "--from" };

	if (!args->from || checkpoint_open(ak, args->from, ret, e) == 0)
		return 0;
	return e->code == ERR_NOT_FOUND ? settings_add(&args->request->settings, &image, e) : -1;
}

static int start_new(struct ak *ak, struct named *n, struct err *e)
{
	struct err ignored;

	if (lifecycle_start_locked(ak, n, e) == 0)
		return 0;
	named_unlock(n);
	(void)!lifecycle_remove(ak, n->name, LIFECYCLE_FORCE, &ignored);
	return -1;
}

int op_create(struct ak *ak, const struct op_create_args *args, const struct op_events *ev,
	      struct op_create_result *ret, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint from = { 0 };
	CLEANUP(named_done) struct named n;
	const char *name = args->name;

	named_init(&n);
	if (name && named_check_name(name, e) < 0)
		return -1;
	if (args->from && args->words)
		return err_set(
			e, ERR_INVALID,
			"a sandbox made from a checkpoint gets its services by 'service add'");
	if (find_from(ak, args, &from, e) < 0 ||
	    (!from.id[0] && request_resolve(args->request, NULL, ev, e) < 0))
		return -1;
	if (!name)
		name = args->request->config.project.name;
	if (!name)
		return err_set(e, ERR_INVALID,
			       "missing argument NAME: agentkernel sandbox create NAME [options]");
	if (from.id[0] ? create_from_checkpoint(ak, args, &from, ev, e) < 0 ||
				 named_open(ak, name, &n, e) < 0
		       : named_check_name(name, e) < 0 ||
				 create_from_image(ak, args, ev, name, &n, e) < 0)
		return -1;
	if (args->starts_it && start_new(ak, &n, e) < 0)
		return -1;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", n.name);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", n.id);
	return 0;
}

int op_fork(struct ak *ak, const struct op_fork_args *args, const struct op_events *ev,
	    struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    named_check_name(args->new_name, e) < 0)
		return -1;
	return checkpoint_fork(ak, args->name, args->new_name, args->count, e);
}

/* ---- listing ---- */

/* A sandbox with an unreadable record belongs to no key. */
static bool is_there(const struct ak *ak, const struct inventory_entry *entry)
{
	return named_is_visible(ak, entry->trouble[0] ? NULL : entry->named.owner);
}

int op_list(struct ak *ak, const struct op_list_args *args, const struct op_events *ev,
	    struct inventory_list *ret, struct err *e)
{
	size_t kept = 0;

	(void)ev;
	if (inventory_list(ak, ret, e) < 0)
		return -1;
	namedgc_sweep_expired(ak, ret);
	for (size_t i = 0; i < ret->count; i++) {
		struct inventory_entry *entry = &ret->entries[i];

		if (is_there(ak, entry) && (!args->is_running || entry->state == NAMED_RUNNING))
			ret->entries[kept++] = *entry;
		else
			inventory_entry_done(entry);
	}
	ret->count = kept;
	return 0;
}

static int find_listed(struct ak *ak, const struct op_info_args *args, struct inventory_entry *ret,
		       struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };

	if (inventory_list(ak, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		struct inventory_entry *entry = &list.entries[i];

		if (!is_there(ak, entry) ||
		    (args->name && strcmp(entry->named.name, args->name) != 0) ||
		    (args->id && strcmp(entry->named.id, args->id) != 0))
			continue;
		*ret = *entry;
		*entry = list.entries[--list.count]; /* *ret owns the entry now */
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", args->name ? args->name : args->id);
}

int op_info(struct ak *ak, const struct op_info_args *args, const struct op_events *ev,
	    struct inventory_entry *ret, struct err *e)
{
	(void)ev;
	if (args->name && inventory_info(ak, args->name, ret, e) == 0)
		return 0;
	/* programs see an unreadable sandbox as in the list */
	if (args->name && (!ak->ceiling || e->code == ERR_NOT_FOUND))
		return -1;
	return find_listed(ak, args, ret, e);
}

int op_stats(struct ak *ak, const struct op_stats_args *args, const struct op_events *ev,
	     struct control_stats *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return tasks_stats(ak, args->name, ret, e);
}

/* ---- state changes ---- */

/* Remarks notices about the workspace. */
static void remark_notices(const struct ak *ak, const char *name, const struct op_events *ev)
{
	char **notices = lifecycle_take_notices(ak, name);

	op_remark_all(ev, notices);
	keyrows_list_free(&notices);
}

int op_start(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	     struct op_move_result *ret, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };

	if (!args->may_be_done) {
		if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
		    lifecycle_start(ak, args->name, e) < 0)
			return -1;
		op_port_remark(ak, args->name, ev);
		return 0;
	}
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    inventory_info(ak, args->name, &entry, e) < 0)
		return -1;
	ret->was_done = entry.state == NAMED_RUNNING;
	return ret->was_done ? 0 : access_need_running(ak, args->name, e);
}

int op_stop(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	    struct op_move_result *ret, struct err *e)
{
	bool is_up = true;
	int r;

	if (access_check_sandbox(ak, args->name, ACCESS_ENDS_IT, e) < 0)
		return -1;
	if (args->may_be_done &&
	    (inventory_may_be_stopped(ak, args->name, &is_up, e) < 0 || !is_up)) {
		ret->was_done = true;
		return 0;
	}
	r = lifecycle_stop(ak, args->name, args->timeout_ms, args->is_forced ? LIFECYCLE_FORCE : 0,
			   e);
	remark_notices(ak, args->name, ev);
	return r;
}

int op_restart(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	       struct op_move_result *ret, struct err *e)
{
	int r;

	(void)ret;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	r = lifecycle_restart(ak, args->name, args->timeout_ms,
			      args->is_forced ? LIFECYCLE_FORCE : 0, e);
	remark_notices(ak, args->name, ev);
	return r;
}

static int freeze_or_thaw(struct ak *ak, const struct op_move_args *args, enum named_state wanted,
			  struct op_move_result *ret, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };

	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    (args->may_be_done && inventory_info(ak, args->name, &entry, e) < 0))
		return -1;
	ret->was_done = args->may_be_done && entry.state == wanted;
	if (ret->was_done)
		return 0;
	return wanted == NAMED_PAUSED ? lifecycle_pause(ak, args->name, e)
				      : lifecycle_resume(ak, args->name, e);
}

int op_pause(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	     struct op_move_result *ret, struct err *e)
{
	(void)ev;
	return freeze_or_thaw(ak, args, NAMED_PAUSED, ret, e);
}

int op_resume(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	      struct op_move_result *ret, struct err *e)
{
	(void)ev;
	return freeze_or_thaw(ak, args, NAMED_RUNNING, ret, e);
}

/* With may_be_done, a missing or invisible sandbox is no error. */
int op_remove(struct ak *ak, const struct op_move_args *args, const struct op_events *ev,
	      struct op_move_result *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_ENDS_IT, e) < 0) {
		ret->was_done = args->may_be_done && e->code == ERR_NOT_FOUND;
		if (ret->was_done)
			return 0;
		if (e->code != ERR_CORRUPT)
			return -1;
	}
	return lifecycle_remove(ak, args->name, args->is_forced ? LIFECYCLE_FORCE : 0, e);
}

/* ---- changing ---- */

int op_update(struct ak *ak, const struct op_update_args *args, const struct op_events *ev,
	      struct err *e)
{
	bool is_later = false;

	if (args->settings->count == 0)
		return err_set(e, ERR_INVALID, "no limit to change (see --help)");
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    reconfigure_limits(ak, args->name, args->settings->list, args->settings->count,
			       &is_later, e) < 0)
		return -1;
	if (is_later)
		op_remark(ev,
			  "the disk of sandbox '%s' grows at its next start (agentkernel restart "
			  "%s)",
			  args->name, args->name);
	return 0;
}

int op_extend(struct ak *ak, const struct op_extend_args *args, const struct op_events *ev,
	      struct op_extend_result *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return reconfigure_expiry(ak, args->name, args->by_ms, &ret->expires_s, e);
}
