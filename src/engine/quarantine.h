#pragma once
/*
 * quarantine - where things are moved that a sandbox made in a workspace and that a program outside
 * would run or obey.
 *
 * A directory of our own state, "quarantine/TIME-NUMBER/COUNT/NAME", that no sandbox sees. It is
 * made when the first thing is moved. `agentkernel gc` removes what has been there for
 * QUARANTINE_KEEP_S.
 *
 * Where the workspace lies on another file system the thing is copied and removed; what is larger
 * than QUARANTINE_COPY_MAX_BYTES is renamed where it is, to a name that nothing obeys.
 */
#include "base/err.h"

#define QUARANTINE_DIR "quarantine"
#define QUARANTINE_COPY_MAX_BYTES (64ull << 20)
#define QUARANTINE_COPY_ENTRIES_MAX 10000u
#define QUARANTINE_KEEP_S (30u * 24 * 3600)

struct quarantine {
	char *const *environ_list;
	char *path; /* NULL: not made yet */
	int dir_fd;
	unsigned count;
};

void quarantine_init(struct quarantine *q, char *const *environ_list);
void quarantine_done(struct quarantine *q); /* may run twice */

/*
 * Moves dir_fd/name, whatever it is; no link is followed. *ret_path is where it is now, the
 * caller's to free. ERR_NOT_FOUND: it is not there any more.
 */
ERR_CHECKED int quarantine_take(struct quarantine *q, int dir_fd, const char *name, char **ret_path,
				struct err *e);

/* Removes what is old; *ret_count tells how much. With is_dry only counts. */
enum quarantine_flags { QUARANTINE_DRY = 1 << 0 };
ERR_CHECKED int quarantine_prune(char *const *environ_list, unsigned flags, unsigned *ret_count,
				 struct err *e);
