#pragma once
/*
 * gatekeeper - the supervisor's side of the gate: starts it at the first packet, and again if it
 * died.
 *
 * It holds the sandbox's listening sockets, those of its published ports, the rules and the table
 * of names; a gate receives all of them and can be replaced at any time. Between two gates the
 * sandbox has no network: packets wait in the kernel.
 *
 * Rules may change while a gate runs (gatekeeper_set_rules). The gate receives the new rules and
 * must confirm that they are applied; otherwise it is killed after GATEKEEPER_OBEY_MAX_MS. So when
 * the call returns, either a gate with the new rules runs, or none does and the next will have
 * them.
 */
#include "base/err.h"
#include "engine/published.h"
#include "net/netns.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ak;

struct policy;

#define GATEKEEPER_DENIALS_MAX 32u /* in the result; the log has all */
#define GATEKEEPER_POLL_MAX (NETNS_SOCKET_COUNT + PUBLISHED_MAX)
#define GATEKEEPER_BACKOFF_MAX_MS 5000u
#define GATEKEEPER_STOP_MAX_MS 4000u /* longer than the gate's own time to finish */
#define GATEKEEPER_OBEY_MAX_MS 3000u

struct gatekeeper_denial {
	char *host;
	uint16_t port; /* 0: already its DNS query was denied */
	char *reason;
	char *fix; /* the option that would allow it, or "" */
};

struct gatekeeper_options {
	const struct policy *policy;
	const struct ak *ak; /* has the path of the log */
	uint32_t id;         /* the gate's uid and gid; 0: the caller's */
	const char *sandbox; /* id for the log; borrowed */
};

struct gatekeeper {
	struct gatekeeper_options options;
	bool is_open;  /* until gatekeeper_stop() */
	char *program; /* path of the gate; found with the first that is needed */
	struct published published;
	int dial_fd; /* requests for connections to the inside; borrowed, -1: none are taken */
	int sockets[NETNS_SOCKET_COUNT];
	unsigned socket_count;
	int rules_fd, names_fd, share_fd; /* created with the first gate */
	int channel_fd;                   /* to the running gate; -1: none */
	pid_t pid;
	bool has_inbound;                              /* a published port has a connection */
	bool is_leaving;                               /* the gate has announced its exit */
	bool has_obeyed;                               /* it has confirmed the last new rules */
	uint64_t gate_sent_bytes, gate_received_bytes; /* of this gate, as it reports */
	uint64_t sent_bytes, received_bytes;           /* of all gates, including this one */
	unsigned deaths;        /* gates that ended unexpectedly or failed to start */
	uint64_t not_before_ms; /* 0: now */
	char *trouble;          /* the first error of a gate; NULL: none */
	struct gatekeeper_denial *denials;
	unsigned denial_count;
};

void gatekeeper_init(struct gatekeeper *k);

/*
 * Before the sandbox starts: opens the published ports, and checks that the gate's program exists
 * if it will be needed.
 */
ERR_CHECKED int gatekeeper_prepare(struct gatekeeper *k, const struct gatekeeper_options *o,
				   struct err *e);
void gatekeeper_take_sockets(struct gatekeeper *k, int *sockets, unsigned count, int dial_fd);

/* Publishes one more port, or ends it with its connections; *ret is borrowed. */
ERR_CHECKED int gatekeeper_publish(struct gatekeeper *k, const struct publish *spec, bool is_kept,
				   const struct published_port **ret, struct err *e);
void gatekeeper_unpublish(struct gatekeeper *k, uint32_t number);
/* Makes connections to a port inside wait, or no more: a service is about to listen there. */
void gatekeeper_hold(struct gatekeeper *k, uint16_t inner);
void gatekeeper_release(struct gatekeeper *k, uint16_t inner);

/* For a poll loop: descriptors (at most GATEKEEPER_POLL_MAX), and the timeout (-1: none). */
unsigned gatekeeper_poll(struct gatekeeper *k, struct pollfd *out);
int gatekeeper_wait_ms(const struct gatekeeper *k);
void gatekeeper_on_ready(struct gatekeeper *k);

/*
 * Applies the policy's rules and bandwidth from now on; `p` must live as long as `k`. A running
 * gate closes connections that they do not allow before this returns. On failure nothing changes.
 */
ERR_CHECKED int gatekeeper_set_rules(struct gatekeeper *k, const struct policy *p, struct err *e);

/* Lets the gate send its data, and ends it; then all denials are known. May run twice. */
void gatekeeper_stop(struct gatekeeper *k);
void gatekeeper_done(struct gatekeeper *k);

void gatekeeper_free_denials(struct gatekeeper_denial *list, unsigned count);
