#pragma once
/*
 * inventory - named sandboxes as they are now, read from their files, for lists and status.
 */
#include "named/namedrun.h"

#include <stddef.h>

/* One sandbox of the list, as far as its files are readable. */
struct inventory_entry {
	struct named named; /* not open */
	struct namedrun run;
	enum named_state state;
	const char *reason;            /* why it is stopped; may be NULL */
	char build[BUILDID_MAX_BYTES]; /* of its supervisor; "": not running or not known */
	bool is_expired;               /* its time is over; the next command or gc removes it */
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why its record is unreadable; "": it is readable */
};

struct inventory_list {
	struct inventory_entry *entries; /* sorted by name */
	size_t count;
};
ERR_CHECKED int inventory_list(const struct ak *ak, struct inventory_list *ret, struct err *e);
ERR_CHECKED int inventory_info(const struct ak *ak, const char *name, struct inventory_entry *ret,
			       struct err *e);
/* True also for a paused sandbox. */
ERR_CHECKED int inventory_is_running(const struct ak *ak, const char *name, bool *ret,
				     struct err *e);
/* The same, and of one that sleeps. */
ERR_CHECKED int inventory_may_be_stopped(const struct ak *ak, const char *name, bool *ret,
					 struct err *e);
/* True if it is running under a supervisor of another build. */
bool inventory_is_outdated(const struct inventory_entry *entry);
void inventory_list_done(struct inventory_list *l);
void inventory_entry_done(struct inventory_entry *entry);
