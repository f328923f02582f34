#pragma once
/*
 * gate - what the parts of the gate share; agentkernel-gate is gate.c's main().
 */
#include "net/throttle.h"
#include "policy/egress.h"

#include <stdbool.h>
#include <stdint.h>

struct effort;
struct event_base;
struct journal;
struct names;
struct resolve;

/* The descriptors a gate is started with, besides 0, 1 and 2, which lead nowhere. */
enum gate_descriptor {
	GATE_SUPERVISOR_FD = 3, /* a socket; orders come from there; its end means ours */
	GATE_RULES_FD,          /* memory: rulesmessage_write()'s */
	GATE_NAMES_FD,          /* memory: names_create()'s */
	GATE_LOG_FD,            /* the network log, or /dev/null */
	GATE_SHARE_FD,          /* memory: logshare_create()'s */
	GATE_FIRST_SOCKET_FD,   /* enum netns_socket, as many as there are */
};

/*
 * Arguments: the sandbox's id, bytes a second each way (0: no limit), how many sockets, the user
 * and group to become (0: stay).
 */
#define GATE_ARGUMENT_COUNT 4
#define GATE_PROGRAM "agentkernel-gate"

/* What a gate says to its supervisor: lines of the network log, and this, before it leaves. */
#define GATE_IS_IDLE "idle"
#define GATE_TROUBLE "trouble: "   /* and this with words, when it cannot start or go on */
#define GATE_RULES_APPLIED "obeys" /* new rules hold: what they do not allow is closed */
#define GATE_TRAFFIC "traffic "    /* and bytes sent and received in its life, once a second */
#define GATE_IDLE_S                                                                                \
	10u /* without a connection or a query: then it leaves, and comes back when needed */

struct gate {
	struct event_base *base;
	struct egress egress;
	struct names *names;
	struct resolve *resolve;
	struct journal *journal;
	int routes_fd; /* ownaddress_open()'s */
	struct effort *effort;
	struct throttle sent, received; /* bytes */
	uint64_t sent_bytes, received_bytes;
};
