#pragma once
/*
 * quarantine - where things are moved that a sandbox made in a workspace and that a program outside
 * would run or obey.
 *
 * A directory of our own state, "quarantine/TIME-NUMBER/COUNT/NAME", that no sandbox sees. It is
 * made when the first thing is moved. `agentkernel gc` removes what has been there for
 * QUARANTINE_KEEP_S.
 *
 * Where the workspace lies on another file system the thing is first renamed where it is, to a name
 * that nothing obeys, and copied and removed when nothing of the sandbox runs any more; what is
 * larger than QUARANTINE_COPY_MAX_BYTES stays there. On a full disk it is renamed, or removed.
 */
#include "base/err.h"

struct ak;

#define QUARANTINE_DIR "quarantine"
#define QUARANTINE_COPY_MAX_BYTES (64ull << 20)
#define QUARANTINE_COPY_ENTRIES_MAX 10000u
#define QUARANTINE_WAITING_MAX 64u /* that are copied at the end; more stay where they are */
#define QUARANTINE_KEEP_S (30u * 24 * 3600)

/* Something that has another name where it was, until it can be copied. */
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
 * Moves dir_fd/name, whatever it is; no link is followed. *ret_path is where it is now, the
 * caller's to free. ERR_NOT_FOUND: it is not there any more.
 */
ERR_CHECKED int quarantine_take(struct quarantine *q, int dir_fd, const char *name, char **ret_path,
				struct err *e);

/* When nothing of the sandbox runs: what waits for it is copied. */
void quarantine_settle(struct quarantine *q);

/* Removes what is old; *ret_count tells how much. With is_dry only counts. */
enum quarantine_flags { QUARANTINE_DRY = 1 << 0 };
ERR_CHECKED int quarantine_prune(const struct ak *ak, unsigned flags, unsigned *ret_count,
				 struct err *e);
