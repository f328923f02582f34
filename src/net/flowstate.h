#pragma once
/*
 * flowstate - a connection of the sandbox as the parts of its way hold it.
 *
 * flow takes connections, finds where they lead and closes what new rules do not allow; flowcheck
 * looks at what the client says before it goes on; relay moves the bytes. Here is what they share:
 * the structs, ends, and words for the journal.
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

/* Whom the client was allowed to ask for: within each tunnel the last, and how it got there. */
struct flow_asked {
	struct flow_asked *next; /* the one before */
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
	bool is_by_address; /* a rule for addresses opened it, whatever its name */
	bool has_server_spoken;
	bool is_silent;  /* no byte yet, either way */
	bool is_sniffed; /* the client's bytes need no more looking at */
	bool is_held;    /* and is among those with a deadline */
	uint64_t held_until_ms;
	struct sniff sniff;
	struct buf held;
	struct flow_asked *asked; /* newest first; nothing that `name` and `port` say already */
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
	bool is_listening; /* its event is there */
	bool is_over;      /* and will not come back */
	bool is_resting;   /* the gate has spent too much on refusals: net/effort.h */
	unsigned count, max;
	size_t held_bytes; /* of all flows */
	struct event listener, listen_again;
	TAILQ_HEAD(, flow) list; /* oldest first */
	struct relays relays;
};

/* The listener's event is there while there is room for more. */
void flowstate_update_listening(struct flows *f);

/* Softly, or with a reset to both sides; the flow is freed. */
void flowstate_close(struct flow *c);
void flowstate_reset(struct flow *c);
void flowstate_arm_reset(int fd); /* closing it will send one */

void flowstate_set_held(struct flow *c, size_t len); /* less than there is */
void flowstate_forget_ask(struct flow *c);           /* the newest */

/* Does the address belong to this machine? */
enum egress_owner flowstate_get_owner(const struct flow *c, const struct address *a, uint16_t port);

/* ---- the journal ---- */

const char *flowstate_get_host(const struct flow *c, char out[ADDRESS_TEXT_MAX_BYTES]);
void flowstate_note(struct flow *c, enum journal_decision what, const char *reason);

/* resolved: the address that the decision is about, or NULL. */
void flowstate_note_decision(struct flow *c, const struct egress_decision *d,
			     const struct address *resolved);
