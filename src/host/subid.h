#pragma once
/*
 * subid - the additional ids of an ordinary user.
 *
 * /etc/subuid and /etc/subgid assign them; the set-id programs newuidmap and newgidmap (package
 * uidmap) write them into a user namespace's maps. Both run in parallel: each takes over a
 * millisecond.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBID_FILE_MAX_BYTES (1u << 20)
#define SUBID_COUNT_MIN 1000u /* too few for an image below this */

struct subid_range {
	uint32_t first, count;
};

struct subid {
	struct subid_range uids, gids;
};

/* False, with the reason, if this user has no range or the programs are not installed. */
bool subid_find(struct subid *ret, const char **ret_why);

/* Finds the range of `user` (by name or uid) in a file's text. */
bool subid_parse(const char *text, const char *user, uint32_t uid, struct subid_range *ret);

/*
 * Maps id 0 of the process's user namespace to the caller's own id, and 1 and up to the ranges, at
 * most `count` ids.
 */
ERR_CHECKED int subid_write_maps(const struct subid *s, uint32_t count, pid_t pid, struct err *e);
