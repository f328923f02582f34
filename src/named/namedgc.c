/*
 * namedgc - what named sandboxes left behind; see namedgc.h.
 *
 * Theory of operation. Each kind of leftover is found from the files on disk: expired sandboxes by
 * their record, dead ones (their supervisor was killed) by a run file that says "running" and a
 * free lock, half-made and half-removed ones in .making and .trash, layers and image pins by the
 * absence of a record that names them. Whatever a running process uses is locked, and left alone. A
 * sandbox whose record cannot be read is left to the user, and keeps all image pins alive: it may
 * use any.
 */
#include "named/namedgc.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/images.h"
#include "host/cgroup.h"
#include "named/checkpoint.h"
#include "named/halt.h"
#include "named/layerstore.h"
#include "named/lifecycle.h"
#include "named/nameddir.h"
#include "workspace/quarantine.h"

#include <stdlib.h>

static bool is_dead(const struct inventory_entry *entry)
{
	return entry->state == NAMED_STOPPED &&
	       namedrun_is_live((enum named_state)entry->run.state);
}

/* Cleans up and saves the state in place of a killed supervisor. */
static int bury(const struct ak *ak, const char *name, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(namedrun_done) struct namedrun run = { 0 };

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || named_lock(&n, e) < 0 ||
	    namedrun_load(&n, &run, e) < 0)
		return e->code == ERR_BUSY || e->code == ERR_NOT_FOUND ? 0 : -1;
	if (!namedrun_is_live((enum named_state)run.state))
		return 0; /* another process has started and stopped it meanwhile */
	if (halt_clean_up(ak, &n))
		keyrows_list_free(&run.cgroups);
	run.state = NAMED_STOPPED;
	free(run.reason);
	run.reason = mem_dup("supervisor died");
	run.supervisor_pid = run.init_pid = 0;
	return namedrun_save(&n, &run, e);
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

void namedgc_sweep_expired(const struct ak *ak, const struct inventory_list *l)
{
	struct err ignored;

	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].is_expired && !l->entries[i].trouble[0])
			(void)!remove_expired(ak, l->entries[i].named.name, 0, &ignored);
}

static int collect(const struct ak *ak, const struct inventory_entry *entry, unsigned flags,
		   struct namedgc_counts *g, struct err *e)
{
	if (entry->trouble[0])
		return 0; /* left to the user: remove -f */
	if (entry->is_expired) {
		g->expired++;
		return flags & NAMEDGC_DRY
			       ? 0
			       : remove_expired(ak, entry->named.name, LIFECYCLE_LOCK_WAIT_MS, e);
	}
	if (!is_dead(entry))
		return 0;
	g->dead++;
	return flags & NAMEDGC_DRY ? 0 : bury(ak, entry->named.name, e);
}

/* Removes unused image pins, only if every record is readable: others may use any pin. */
static int collect_pins(const struct ak *ak, unsigned *ret_count, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list sandboxes = { 0 };
	CLEANUP(checkpoint_list_done) struct checkpoint_list checkpoints = { 0 };
	bool is_whole = true;
	char **used = NULL;
	int r = 0;

	if (inventory_list(ak, &sandboxes, e) < 0 || checkpoint_list(ak, NULL, &checkpoints, e) < 0)
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

int namedgc_collect(const struct ak *ak, unsigned flags, struct namedgc_counts *ret, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };

	*ret = (struct namedgc_counts){ 0 };
	if (inventory_list(ak, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (collect(ak, &list.entries[i], flags, ret, e) < 0)
			return -1;
	if (quarantine_prune(ak, flags & NAMEDGC_DRY ? QUARANTINE_DRY : 0, &ret->quarantined, e) <
	    0)
		return -1;
	if (flags & NAMEDGC_DRY)
		return 0;
	cgroup_sweep();
	if (nameddir_sweep_trash(ak, &ret->leftovers, e) < 0 ||
	    checkpoint_sweep(ak, &ret->leftovers, e) < 0 ||
	    layerstore_collect(ak, &ret->layers, e) < 0)
		return -1;
	return collect_pins(ak, &ret->pins, e);
}
