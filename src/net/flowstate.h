#pragma once
/*
 * flowstate - the state of a connection, shared by its parts.
 *
 * flow accepts connections, determines their destination and closes those that new rules forbid;
 * flowcheck inspects the client's bytes; relay moves the bytes. This file has the structs, the
 * functions that end a flow, and the log entries.
 */
#include "base/buf.h"
#include "net/journal.h"
#include "net/relay.h"
#include "net/resolve.h"
#include "net/sniff.h"
#include "policy/address.h"
#include "policy/egress.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct dial;
struct flows;
struct gate;
struct nameserver;

enum flow_state { FLOW_RESOLVING, FLOW_DIALING, FLOW_OPEN };
enum flow_lane { FLOW_TO_SERVER, FLOW_TO_CLIENT, FLOW_LANE_COUNT };

/* The hosts that the client was allowed to ask for: the enclosing tunnels, and the last request. */
struct flow_asked {
	struct flow_asked *next; /* the previous one */
	struct sniff_ask ask;
};

struct flow {
	struct flows *flows;
	enum flow_state state;
	int client_fd, server_fd;
	const char *name; /* NULL: an address; borrowed from names */
	struct address address;
	uint16_t port;
	struct egress_decision decision;
	bool is_by_address; /* a rule for addresses allowed it, whatever its name */
	bool has_server_spoken;
	bool is_silent;  /* no byte yet in either direction */
	bool is_sniffed; /* the client's bytes need no further inspection */
	bool is_held;    /* has a deadline for its held bytes */
	uint64_t held_until_ms;
	struct sniff sniff;
	struct buf held;
	struct flow_asked *asked; /* newest first; without `name` and `port` themselves */
	unsigned tunnel_count;
	struct address peer; /* FLOW_OPEN */
	struct journal_row *row;
	struct resolve_waiter waiter;
	struct dial *dial;
	struct relay relays[FLOW_LANE_COUNT];
	TAILQ_ENTRY(flow) link;
};

struct flows {
	struct gate *gate;
	struct nameserver *nameserver;
	bool is_listening; /* its event is registered */
	bool is_over;      /* it will never listen again */
	bool is_resting;   /* the gate has spent too much CPU on refusals: net/effort.h */
	unsigned count, max;
	size_t held_bytes; /* of all flows */
	struct event listener, listen_again;
	TAILQ_HEAD(, flow) list; /* oldest first */
	struct relays relays;
};

/* Registers the listener's event if there is room for more flows. */
void flowstate_update_listening(struct flows *f);

/* Closes normally, or with a reset to both sides; frees the flow. */
void flowstate_close(struct flow *c);
void flowstate_reset(struct flow *c);
void flowstate_arm_reset(int fd); /* close() will send a reset */

void flowstate_set_held(struct flow *c, size_t len); /* shortens the held bytes */
void flowstate_forget_ask(struct flow *c);           /* removes the newest */

/* Does the address belong to this machine? */
enum egress_owner flowstate_get_owner(const struct flow *c, const struct address *a, uint16_t port);

/* ---- the journal ---- */

const char *flowstate_get_host(const struct flow *c, char out[ADDRESS_TEXT_MAX_BYTES]);
void flowstate_note(struct flow *c, enum journal_decision what, const char *reason);

/* `resolved` is the address that the decision is about, or NULL. */
void flowstate_note_decision(struct flow *c, const struct egress_decision *d,
			     const struct address *resolved);
