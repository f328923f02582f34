#pragma once
/*
 * namedgc - removes what named sandboxes left behind: leftovers of crashes, expired and dead
 * sandboxes, layers and image pins that nothing refers to.
 */
#include "named/inventory.h"

enum namedgc_flags {
	NAMEDGC_DRY = 1 << 0, /* only count */
};

/* How many of each were removed, or would be. */
struct namedgc_counts {
	unsigned expired, dead, leftovers, layers, pins, quarantined;
};
ERR_CHECKED int namedgc_collect(const struct ak *ak, unsigned flags, struct namedgc_counts *ret,
				struct err *e);

/* Removes the expired, stopped sandboxes of the list; failures are ignored. */
void namedgc_sweep_expired(const struct ak *ak, const struct inventory_list *l);
