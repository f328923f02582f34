#pragma once
/*
 * rulesmessage - what a supervisor tells a gate: its rules, at the start and when they change.
 *
 * Rules travel as sealed memory: nobody can change them while they are read, nor for the gate
 * that comes next. At the start the gate inherits them; later they come in a message on the
 * supervisor's socket (SOCK_SEQPACKET): RULESMESSAGE_RULES, the bytes a second each way, and one
 * descriptor. The gate accepts nothing else.
 */
#include "base/err.h"
#include "policy/egress.h"

#include <stdint.h>

#define RULESMESSAGE_RULES "rules " /* and a number */
#define RULESMESSAGE_RATE_MAX_BYTES_PER_S (1ull << 40)

struct rulesmessage {
	struct egress egress;
	uint64_t bandwidth_bytes_per_s; /* 0: no limit */
};

void rulesmessage_done(struct rulesmessage *o); /* may run twice, and on a zeroed struct */

/* The rules in sealed memory; the descriptor is the caller's to close. */
ERR_CHECKED int rulesmessage_write(const struct egress *g, int *ret_fd, struct err *e);
ERR_CHECKED int rulesmessage_read(int fd, struct egress *ret, struct err *e);

/* Never waits. -errno when it cannot be sent now, or at all. */
int rulesmessage_send(int socket_fd, int rules_fd, uint64_t bandwidth_bytes_per_s);

/* Never waits. Anything but an order is a failure. */
enum rulesmessage_kind {
	RULESMESSAGE_NONE /* not yet */,
	RULESMESSAGE_END /* the supervisor has gone */,
	RULESMESSAGE_NEW
};
ERR_CHECKED int rulesmessage_receive(int socket_fd, enum rulesmessage_kind *ret_kind,
				     struct rulesmessage *ret, struct err *e);
