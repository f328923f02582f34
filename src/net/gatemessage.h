#pragma once
/*
 * gatemessage - what a supervisor tells a gate: network rules, and published ports.
 *
 * Rules are in sealed memory: nobody can change them while they are read, nor for the next gate. At
 * the start the gate inherits them; later they arrive in a message on the supervisor's socket
 * (SOCK_SEQPACKET): "rules", the bytes per second in each direction, and one descriptor. A
 * published port is "listen", its number, the port inside, and its listening socket; "unlisten" and
 * its number end it. The gate accepts nothing else.
 */
#include "base/err.h"
#include "policy/egress.h"

#include <stdint.h>

#define GATEMESSAGE_RATE_MAX_BYTES_PER_S (1ull << 40)

/* Never blocks. Any other message is an error. */
enum gatemessage_kind {
	GATEMESSAGE_NONE,    /* not yet */
	GATEMESSAGE_END,     /* the supervisor is gone */
	GATEMESSAGE_RULES,   /* .egress and .bandwidth_bytes_per_s */
	GATEMESSAGE_LISTEN,  /* .number, .inner and .listen_fd */
	GATEMESSAGE_UNLISTEN /* .number */
};

struct gatemessage {
	enum gatemessage_kind kind;
	struct egress egress;
	uint64_t bandwidth_bytes_per_s; /* 0: no limit */
	uint32_t number;                /* of a published port, chosen by the supervisor */
	uint16_t inner;
	int listen_fd; /* -1: taken */
};

void gatemessage_init(struct gatemessage *m);
void gatemessage_done(struct gatemessage *m); /* may run twice */

/* Writes the rules to sealed memory; the caller closes *ret_fd. */
ERR_CHECKED int gatemessage_write(const struct egress *g, int *ret_fd, struct err *e);
ERR_CHECKED int gatemessage_read(int fd, struct egress *ret, struct err *e);

/* These never block, and return -errno if the message cannot be sent. */
int gatemessage_send(int socket_fd, int rules_fd, uint64_t bandwidth_bytes_per_s);
int gatemessage_send_listen(int socket_fd, uint32_t number, uint16_t inner, int listen_fd);
int gatemessage_send_unlisten(int socket_fd, uint32_t number);

/* Reads into *ret, which gatemessage_init() prepared. */
ERR_CHECKED int gatemessage_receive(int socket_fd, struct gatemessage *ret, struct err *e);
