#pragma once
/*
 * inbound - connections from the host to published ports of the sandbox.
 *
 * The supervisor hands in a listening socket for each published port. For each connection the gate
 * asks init for one to the port inside (base/dialin.h) and copies bytes both ways, with the
 * sandbox's bandwidth. Nothing is parsed: end of file, reset and backpressure pass through.
 */
#include "net/gatemessage.h"

#include <stdbool.h>

struct gate;
struct inbounds;

#define INBOUND_MAX 2048u      /* connections; more wait in the kernel's queue */
#define INBOUND_PORT_MAX 1024u /* of one port, so that a stuck server leaves room for the others   \
				*/
#define INBOUND_DIAL_MS 30000u

/* Borrows dial_fd; -1: init takes no requests. */
struct inbounds *inbound_new(struct gate *g, int dial_fd);
void inbound_free(struct inbounds *b);

/* GATEMESSAGE_LISTEN and GATEMESSAGE_UNLISTEN; the latter also closes that port's connections. */
void inbound_listen(struct inbounds *b, struct gatemessage *m);
void inbound_unlisten(struct inbounds *b, uint32_t number);
void inbound_stop_listening(struct inbounds *b);

bool inbound_is_idle(const struct inbounds *b);    /* there are no connections */
bool inbound_is_sending(const struct inbounds *b); /* are bytes of the sandbox unsent? */
void inbound_on_second(struct inbounds *b);        /* once a second: checks deadlines */
