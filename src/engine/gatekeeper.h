#pragma once
/*
 * gatekeeper - the supervisor's side of the gate: starts it at the first packet, and again when
 * it died.
 *
 * It holds the sandbox's listening sockets, the rules and the table of names; a gate is given
 * all three and can be replaced at any time. Between gates the sandbox has no network: packets
 * wait in the kernel.
 *
 * Rules may change while a gate runs (gatekeeper_set_rules). It is sent the new ones and has to
 * say that they hold; one that does not within GATEKEEPER_OBEY_MAX_MS is killed. So when the call
 * returns, either a gate with the new rules serves, or none does and the next will have them.
 */
#include "base/err.h"
#include "net/netns.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ak;

struct policy;

#define GATEKEEPER_DENIALS_MAX 32u /* told to the caller; the log has all */
#define GATEKEEPER_POLL_MAX NETNS_SOCKET_COUNT
#define GATEKEEPER_BACKOFF_MAX_MS 5000u
#define GATEKEEPER_STOP_MAX_MS 4000u /* more than the gate's own time to finish */
#define GATEKEEPER_OBEY_MAX_MS 3000u

struct gatekeeper_denial {
	char *host;
	uint16_t port; /* 0: its name was not even looked up */
	char *reason;
	char *fix; /* the option that would allow it, or "" */
};

struct gatekeeper_options {
	const struct policy *policy;
	const struct ak *ak; /* says where the log is */
	uint32_t id;         /* the gate's user and group; 0: the caller's own */
	const char *sandbox; /* id for the log; borrowed */
};

struct gatekeeper {
	struct gatekeeper_options options;
	bool is_open;  /* there is a network to keep */
	char *program; /* path of the gate */
	int sockets[NETNS_SOCKET_COUNT];
	unsigned socket_count;
	int rules_fd, names_fd, share_fd; /* made with the first gate */
	int channel_fd;                   /* of the gate that runs; -1: none does */
	pid_t pid;
	bool is_leaving; /* the gate has said that it will */
	bool has_obeyed; /* it has said that the last new rules hold */
	uint64_t gate_sent_bytes, gate_received_bytes; /* of this gate, by its own account */
	uint64_t sent_bytes, received_bytes;           /* of all gates, this one included */
	unsigned deaths;                               /* gates that ended without a word */
	uint64_t not_before_ms;                        /* 0: now */
	char *trouble;                                 /* the first that a gate had; NULL: none */
	struct gatekeeper_denial *denials;
	unsigned denial_count;
};

void gatekeeper_init(struct gatekeeper *k);

/* Before the sandbox starts: is the gate's program where it should be? */
ERR_CHECKED int gatekeeper_prepare(struct gatekeeper *k, const struct gatekeeper_options *o,
				   struct err *e);
void gatekeeper_take_sockets(struct gatekeeper *k, int *sockets, unsigned count);

/* For a poll loop: what to wait for (at most GATEKEEPER_POLL_MAX), and how long (-1: for ever). */
unsigned gatekeeper_poll(struct gatekeeper *k, struct pollfd *out);
int gatekeeper_wait_ms(const struct gatekeeper *k);
void gatekeeper_on_ready(struct gatekeeper *k);

/*
 * From now on the policy's rules and bandwidth are what counts; `p` lives as long as `k`. A gate
 * that runs closes what they do not allow before this returns. On failure all stays as it was.
 */
ERR_CHECKED int gatekeeper_set_rules(struct gatekeeper *k, const struct policy *p, struct err *e);

/* Lets the gate send what it has, and ends it; all denials are known then. May run twice. */
void gatekeeper_stop(struct gatekeeper *k);
void gatekeeper_done(struct gatekeeper *k);

void gatekeeper_free_denials(struct gatekeeper_denial *list, unsigned count);
