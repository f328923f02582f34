#pragma once
/* gate - state shared by the parts of the gate; agentkernel-gate is gate.c's main(). */
#include "net/throttle.h"
#include "policy/egress.h"

#include <stdbool.h>
#include <stdint.h>

struct effort;
struct event_base;
struct journal;
struct names;
struct resolve;

/* The descriptors that a gate starts with, besides 0, 1 and 2, which are /dev/null. */
enum gate_descriptor {
	GATE_SUPERVISOR_FD = 3, /* socket for new rules and reports; end-of-file: exit */
	GATE_RULES_FD,          /* memory from gatemessage_write() */
	GATE_NAMES_FD,          /* memory from names_create() */
	GATE_LOG_FD,            /* the network log, or /dev/null */
	GATE_SHARE_FD,          /* memory from logshare_create() */
	GATE_DIAL_FD,           /* requests for connections to the inside (base/dialin.h) */
	GATE_FIRST_SOCKET_FD,   /* enum netns_socket, as many as exist */
};

/*
 * Arguments: the sandbox's id, bytes per second in each direction (0: no limit), number of sockets,
 * user and group id to switch to (0: keep).
 */
#define GATE_ARGUMENT_COUNT 4
#define GATE_PROGRAM "agentkernel-gate"

/* Messages to the supervisor: lines of the network log, and these. This one before an idle exit: */
#define GATE_IS_IDLE "idle"
#define GATE_TROUBLE "trouble: "   /* with a message, if it cannot start or continue */
#define GATE_RULES_APPLIED "obeys" /* new rules are applied: what they forbid is closed */
#define GATE_INBOUND "inbound "    /* with "yes" or "no": has a published port a connection? */
#define GATE_TRAFFIC "traffic "    /* with total bytes sent and received, once a second */
#define GATE_IDLE_S 10u /* without a connection or query; then it exits until needed again */

struct gate {
	struct event_base *base;
	struct egress egress;
	struct names *names;
	struct resolve *resolve;
	struct journal *journal;
	int routes_fd; /* from ownaddress_open() */
	struct effort *effort;
	struct throttle sent, received; /* bytes */
	uint64_t sent_bytes, received_bytes;
};
