#pragma once
/*
 * subid - the ids that an ordinary user may use besides its own.
 *
 * /etc/subuid and /etc/subgid say which; the set-id programs newuidmap and newgidmap (package
 * uidmap) write them into a user namespace's maps. Both run at once: each costs over a millisecond.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBID_FILE_MAX_BYTES (1u << 20)
#define SUBID_COUNT_MIN 1000u /* fewer serve no image */

struct subid_range {
	uint32_t first, count;
};

struct subid {
	struct subid_range uids, gids;
};

/* False, with the reason, where this user has none or the programs are not there. */
bool subid_find(struct subid *ret, const char **ret_why);

/* The range of `user` (by name or number) in a file's text. Pure. */
bool subid_parse(const char *text, const char *user, uint32_t uid, struct subid_range *ret);

/*
 * Maps id 0 of the process's user namespace to the caller's own, and 1 and up to the ranges, at
 * most `count` of them.
 */
ERR_CHECKED int subid_write_maps(const struct subid *s, uint32_t count, pid_t pid, struct err *e);
