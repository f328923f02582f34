#pragma once
/*
 * logshare - how much of the network log one sandbox may fill.
 *
 * All sandboxes write into one log, and what is written pushes older lines out. So each sandbox has
 * a share, and each kind of event has a part of it: a flood of denied names leaves the parts of
 * connections alone. A part is two buckets of bytes that fill slowly, one for the first line of a
 * host, one for counts that follow.
 *
 * The buckets lie in memory that the supervisor holds, so that they outlive a gate.
 */
#include "base/err.h"
#include "net/throttle.h"

#include <stdbool.h>

#define LOGSHARE_KINDS 5u
#define LOGSHARE_FIRST_BYTES (512u << 10) /* of each kind at once */
#define LOGSHARE_COUNT_BYTES (256u << 10)
#define LOGSHARE_COUNT_RESERVE_BYTES (64u << 10) /* kept for a gate's last counts */
#define LOGSHARE_BYTES_PER_S 8u                  /* and so much comes back */

struct logshare_part {
	struct throttle first, counts;
	bool is_full; /* and the log says so */
};

struct logshare {
	struct logshare_part parts[LOGSHARE_KINDS];
};

/* The supervisor's: memory with nothing used yet. The descriptor is the caller's to close. */
ERR_CHECKED int logshare_create(int *ret_fd, struct err *e);

/* The gate's. -1, or memory of another size: a share of its own. NULL: no memory to be had. */
struct logshare *logshare_open(int fd);
void logshare_close(struct logshare *s);
