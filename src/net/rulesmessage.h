#pragma once
/*
 * rulesmessage - sends network rules from a supervisor to a gate, at the start and on changes.
 *
 * Rules are in sealed memory: nobody can change them while they are read, nor for the next gate. At
 * the start the gate inherits them; later they arrive in a message on the supervisor's socket
 * (SOCK_SEQPACKET): RULESMESSAGE_RULES, the bytes per second in each direction, and one descriptor.
 * The gate accepts nothing else.
 */
#include "base/err.h"
#include "policy/egress.h"

#include <stdint.h>

#define RULESMESSAGE_RULES "rules " /* followed by a number */
#define RULESMESSAGE_RATE_MAX_BYTES_PER_S (1ull << 40)

struct rulesmessage {
	struct egress egress;
	uint64_t bandwidth_bytes_per_s; /* 0: no limit */
};

void rulesmessage_done(struct rulesmessage *o); /* may run twice, and on a zeroed struct */

/* Writes the rules to sealed memory; the caller closes *ret_fd. */
ERR_CHECKED int rulesmessage_write(const struct egress *g, int *ret_fd, struct err *e);
ERR_CHECKED int rulesmessage_read(int fd, struct egress *ret, struct err *e);

/* Never blocks. Returns -errno if it cannot be sent. */
int rulesmessage_send(int socket_fd, int rules_fd, uint64_t bandwidth_bytes_per_s);

/* Never blocks. Any other message is an error. */
enum rulesmessage_kind {
	RULESMESSAGE_NONE /* not yet */,
	RULESMESSAGE_END /* the supervisor is gone */,
	RULESMESSAGE_NEW
};
ERR_CHECKED int rulesmessage_receive(int socket_fd, enum rulesmessage_kind *ret_kind,
				     struct rulesmessage *ret, struct err *e);
