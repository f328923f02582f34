#pragma once
/*
 * flow - one connection of the sandbox, from its SYN to its end.
 *
 * The address that the sandbox connected to determines the destination: a synthetic address stands
 * for a name, any other for itself. The rules are checked, the name is resolved, the real addresses
 * are checked, and only then is anything sent outside. The client's first bytes are checked again
 * (net/sniff.h) before they are forwarded; the server's bytes are forwarded at once.
 */
#include <stdbool.h>

struct flows;
struct gate;
struct nameserver;

#define FLOWS_MAX 4096u

/* Borrows listener_fd. */
struct flows *flow_open_all(struct gate *g, struct nameserver *n, int listener_fd);
void flow_close_all(struct flows *f);

/* flow_stop_listening(): no new connections. flow_is_sending(): are bytes of the sandbox unsent? */
void flow_stop_listening(struct flows *f);
void flow_pause(struct flows *f, bool is_paused); /* new connections wait, or are accepted again */
bool flow_is_sending(const struct flows *f);

bool flow_is_idle(const struct flows *f); /* there are no connections */

/*
 * Checks every connection, in any state, against the new rules: its host, its address, and the
 * hosts that its client asked for. Connections that are no longer allowed are closed.
 */
void flow_judge_all(struct flows *f);

void flow_on_second(struct flows *f); /* once a second: checks deadlines */
