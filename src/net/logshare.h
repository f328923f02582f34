#pragma once
/*
 * logshare - limits how much of the network log one sandbox may fill.
 *
 * All sandboxes write to one log, and new lines displace older ones. So each sandbox has a share,
 * and each kind of event a part of it: a flood of denied names does not use up the parts of
 * connections. A part is two token buckets of bytes, one for the first line of a host, one for
 * later counts.
 *
 * The buckets are in memory that the supervisor holds, so that they outlive a gate.
 */
#include "base/err.h"
#include "net/throttle.h"

#include <stdbool.h>

#define LOGSHARE_KINDS 6u
#define LOGSHARE_FIRST_BYTES (512u << 10) /* burst of each kind */
#define LOGSHARE_COUNT_BYTES (256u << 10)
#define LOGSHARE_COUNT_RESERVE_BYTES (64u << 10) /* reserve for a gate's last counts */
#define LOGSHARE_BYTES_PER_S 8u                  /* refill rate */

struct logshare_part {
	struct throttle first, counts;
	bool is_full; /* and the log says so */
};

struct logshare {
	struct logshare_part parts[LOGSHARE_KINDS];
};

/* For the supervisor: creates the memory, with nothing used yet. The caller closes *ret_fd. */
ERR_CHECKED int logshare_create(int *ret_fd, struct err *e);

/* For the gate. With -1 or memory of the wrong size: a private share. NULL: out of memory. */
struct logshare *logshare_open(int fd);
void logshare_close(struct logshare *s);
