#pragma once
/*
 * op_reach - prepares connections into a sandbox, for a server that relays them.
 *
 * Wakes the sandbox, waits until a service that is starting answers on the port, and hands out the
 * dial socket (base/dialin.h) and the connection that keeps the sandbox awake.
 */
#include "base/err.h"
#include "named/named.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct op_events;

#define REACH_READY_WAIT_MS 60000u

struct op_reach_args {
	const char *name;
	uint32_t port;   /* 0: the main port */
	bool is_looking; /* only tell whose it is; wake nothing, hand nothing out */
};
struct op_reach_result {
	char id[NAMED_ID_BYTES + 1];
	char *owner;         /* NULL: the user */
	char **public_ports; /* or NULL */
	uint32_t main_port;  /* 0: none */
	int dial_fd, control_fd;
};
void op_reach_result_init(struct op_reach_result *r);
void op_reach_result_done(struct op_reach_result *r); /* may run twice */
ERR_CHECKED int op_reach(struct ak *ak, const struct op_reach_args *args,
			 const struct op_events *ev, struct op_reach_result *ret, struct err *e);

/* Whom a server lets reach a port over a URL: everybody, or those with a key or a link. */
struct op_port_access_args {
	const char *name;
	uint32_t port;
	bool is_public;
};
ERR_CHECKED int op_port_access(struct ak *ak, const struct op_port_access_args *args,
			       const struct op_events *ev, struct err *e);
