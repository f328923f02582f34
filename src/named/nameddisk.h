#pragma once
/*
 * nameddisk - the directory disk.N of a named sandbox, in which its written files are.
 */
#include "named/named.h"

#define NAMEDDISK_NAME_MAX_BYTES 32
void nameddisk_format(uint64_t number, char out[NAMEDDISK_NAME_MAX_BYTES]);

/*
 * Atomically replaces the disk by an empty one on these layers. The caller holds the lock. The old
 * one is in the trash then, under the name *ret_old: removing it takes time, which nobody has to
 * wait for.
 */
ERR_CHECKED int nameddisk_replace(struct named *n, char *const *layers,
				  char ret_old[NAMED_ID_BYTES + 1], struct err *e);
void nameddisk_sweep_old(const struct named *n, const char *old); /* "": nothing */
/*
 * Opens the directory of its written files; *ret_fd is -1 if it was never started. Asks the
 * supervisor; if there is none and the disk must be mounted, takes the lock.
 */
ERR_CHECKED int nameddisk_open_upper(struct named *n, int *ret_fd, struct err *e);
/* Removes the leftovers of interrupted replacements; the caller holds the lock. */
void nameddisk_sweep(const struct named *n);
