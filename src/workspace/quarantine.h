#pragma once
/*
 * quarantine - moves files away that a sandbox created in a workspace and that a program outside
 * would run or obey.
 *
 * The quarantine is a directory in our state directory, "quarantine/TIME-NUMBER/COUNT/NAME", that
 * no sandbox sees. It is created for the first entry. `agentkernel gc` removes entries older than
 * QUARANTINE_KEEP_S.
 *
 * If the workspace is on another file system, the entry is first renamed in place, to a name that
 * no program obeys, and copied and removed when no process of the sandbox runs any more; an entry
 * larger than QUARANTINE_COPY_MAX_BYTES stays there. On a full disk it is renamed, or removed.
 */
#include "base/err.h"

struct ak;

#define QUARANTINE_DIR "quarantine"
#define QUARANTINE_COPY_MAX_BYTES (64ull << 20)
#define QUARANTINE_COPY_ENTRIES_MAX 10000u
#define QUARANTINE_WAITING_MAX 64u /* entries copied at the end; more stay where they are */
#define QUARANTINE_KEEP_S (30u * 24 * 3600)

/* An entry that was renamed in place until it can be copied. */
struct quarantine_waiting {
	int dir_fd;
	char *aside, *name;
	unsigned number;
};

struct quarantine {
	const struct ak *ak;
	char *path; /* NULL: not made yet */
	int dir_fd;
	unsigned count;
	struct quarantine_waiting *waiting;
	unsigned waiting_count;
};

void quarantine_init(struct quarantine *q, const struct ak *ak);
void quarantine_done(struct quarantine *q); /* may run twice */

/*
 * Moves dir_fd/name, of any type; follows no link. *ret_path is its new path, which the caller
 * frees. ERR_NOT_FOUND: it no longer exists.
 */
ERR_CHECKED int quarantine_take(struct quarantine *q, int dir_fd, const char *name, char **ret_path,
				struct err *e);

/* Copies the renamed entries; call when no process of the sandbox runs. */
void quarantine_settle(struct quarantine *q);

/* Removes old entries; *ret_count is their number. With QUARANTINE_DRY only counts them. */
enum quarantine_flags { QUARANTINE_DRY = 1 << 0 };
ERR_CHECKED int quarantine_prune(const struct ak *ak, unsigned flags, unsigned *ret_count,
				 struct err *e);
