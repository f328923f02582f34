#pragma once
/*
 * published - the host's listening sockets for published ports of one sandbox.
 *
 * The supervisor opens them before the sandbox starts, so that a taken port is refused at once, and
 * hands them to the gate, which serves them (net/inbound.h). While no gate runs, connections wait
 * in the kernel's queue.
 */
#include "base/err.h"
#include "policy/publish.h"

#include <stdbool.h>
#include <stdint.h>

#define PUBLISHED_MAX (2 * PUBLISH_MAX) /* with those that a `forward` adds */

struct published_port {
	struct publish spec; /* as it was asked for: .port may be 0 */
	uint16_t port;       /* on the host */
	uint32_t number;     /* for gates */
	int listen_fd;
	bool is_held; /* no gate gets it yet: its connections wait until a service is ready */
	bool is_kept; /* in the sandbox's policy; otherwise of a `forward` */
};

struct published {
	struct published_port *ports;
	unsigned count;
	uint32_t last_number;
};

void published_init(struct published *p);
void published_done(struct published *p); /* may run twice */

/* Opens a port. If it is taken, the error says by whom. *ret is borrowed. */
ERR_CHECKED int published_add(struct published *p, const struct publish *spec, bool is_kept,
			      const struct published_port **ret, struct err *e);
void published_remove(struct published *p, uint32_t number);

/* Adds a port that is open already; takes its socket. */
void published_adopt(struct published *p, const struct published_port *port);
/* Closes the kept ports whose texts are not in the list. */
void published_keep_only(struct published *p, char *const *texts);

/* Opens the ports of a policy's list that are not open yet; on failure closes all. */
ERR_CHECKED int published_open(struct published *p, char *const *texts, struct err *e);

/* The port that was opened for this text of a policy; NULL: none. */
const struct published_port *published_find(const struct published *p, const char *text);

/* "127.0.0.1:8080" */
const char *published_format(const struct published_port *port, char out[PUBLISH_TEXT_MAX_BYTES]);
