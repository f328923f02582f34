#pragma once
/* op_port - ports of a sandbox that are reachable from the host. */
#include "base/err.h"
#include "named/control.h"

#include <stdbool.h>

struct ak;
struct op_events;

struct op_port_list_args {
	const char *name;
};
struct op_port_list_result {
	struct control_port *ports;
	unsigned count;
	bool is_running; /* otherwise they are opened when it starts */
};
void op_port_list_result_done(struct op_port_list_result *r); /* may run twice, or on zeroes */
ERR_CHECKED int op_port_list(struct ak *ak, const struct op_port_list_args *args,
			     const struct op_events *ev, struct op_port_list_result *ret,
			     struct err *e);

struct op_port_change_args {
	const char *name;
	char *const *ports; /* "[ADDR:]PORT[:INNER]", NULL-terminated */
	bool is_adding;
};
/* For the user alone; kept until it is changed again or the sandbox is removed. */
ERR_CHECKED int op_port_change(struct ak *ak, const struct op_port_change_args *args,
			       const struct op_events *ev, struct err *e);

/* Remarks where the ports of a sandbox that was just started are reachable, as at its creation. */
void op_port_remark(struct ak *ak, const char *name, const struct op_events *ev);

struct op_forward_args {
	const char *name;
	const char *port; /* "[ADDR:]PORT[:INNER]" */
};
/* For the user alone: publishes a port of a running sandbox until *ret_fd is closed. */
ERR_CHECKED int op_forward(struct ak *ak, const struct op_forward_args *args,
			   const struct op_events *ev, struct control_port *ret, int *ret_fd,
			   struct err *e);
