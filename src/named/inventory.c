/*
 * inventory - named sandboxes as they are now; see inventory.h.
 */
#include "named/inventory.h"
#include "named/nameddir.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False: removed since its name was read. */
static bool look(int all_fd, const char *name, struct inventory_entry *entry)
{
	struct err e = { 0 };

	*entry = (struct inventory_entry){ 0 };
	named_init(&entry->named);
	(void)snprintf(entry->named.name, sizeof(entry->named.name), "%s", name);
	if (named_open_any_in(all_fd, name, &entry->named, &e) < 0) {
		(void)snprintf(entry->trouble, sizeof(entry->trouble), "%s", e.msg);
		entry->state = NAMED_STOPPED;
		return e.code != ERR_NOT_FOUND;
	}
	if (namedrun_load(&entry->named, &entry->run, &e) < 0 && e.code != ERR_NOT_FOUND) {
		(void)snprintf(entry->trouble, sizeof(entry->trouble), "%s", e.msg);
		entry->state = NAMED_STOPPED;
		return true;
	}
	entry->state = namedrun_judge(&entry->named, &entry->run, entry->build, &entry->reason);
	entry->is_expired = named_is_expired(&entry->named);
	cleanup_closep(&entry->named.dir_fd);
	return true;
}

void inventory_entry_done(struct inventory_entry *entry)
{
	/* the descriptors are closed, or 0 in an entry that was never filled in */
	entry->named.dir_fd = entry->named.lock_fd = entry->named.change_fd = -1;
	named_done(&entry->named);
	namedrun_done(&entry->run);
}

void inventory_list_done(struct inventory_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		inventory_entry_done(&l->entries[i]);
	free(l->entries);
	*l = (struct inventory_list){ 0 };
}

int inventory_list(const struct ak *ak, struct inventory_list *ret, struct err *e)
{
	cleanup_fd int all_fd = -1;
	char **names = NULL;
	size_t count;

	*ret = (struct inventory_list){ 0 };
	if (nameddir_find(ak, &all_fd, e) < 0 || nameddir_list(ak, &names, e) < 0)
		return -1;
	count = keyrows_list_count(names);
	ret->entries = mem_alloc((count + 1) * sizeof(*ret->entries));
	for (size_t i = 0; i < count; i++)
		ret->count += look(all_fd, names[i], &ret->entries[ret->count]);
	keyrows_list_free(&names);
	return 0;
}

int inventory_info(const struct ak *ak, const char *name, struct inventory_entry *ret,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int all_fd = -1;

	named_init(&n);
	if (named_open(ak, name, &n, e) < 0 || nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	(void)look(all_fd, name, ret);
	return 0;
}

int inventory_may_be_stopped(const struct ak *ak, const char *name, bool *ret, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };

	named_init(&entry.named);
	if (inventory_info(ak, name, &entry, e) < 0)
		return -1;
	*ret = namedrun_is_live(entry.state) || entry.state == NAMED_ASLEEP;
	return 0;
}

int inventory_is_running(const struct ak *ak, const char *name, bool *ret, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };

	named_init(&entry.named);
	if (inventory_info(ak, name, &entry, e) < 0)
		return -1;
	*ret = namedrun_is_live(entry.state);
	return 0;
}

bool inventory_is_outdated(const struct inventory_entry *entry)
{
	return namedrun_is_live(entry->state) && strcmp(entry->build, buildid_get()) != 0;
}
