#pragma once
/*
 * flow - one connection of the sandbox, from its SYN to its end.
 *
 * The address that the sandbox connected to says where it wants to go: a synthetic address is a
 * name, any other is itself. The rules are asked, the name is resolved, the real addresses are
 * checked, and only then is anything sent anywhere. What the client says first is checked once
 * more (net/sniff.h) before it is passed on; what the server says flows at once.
 */
#include <stdbool.h>

struct flows;
struct gate;
struct nameserver;

#define FLOWS_MAX 4096u

/* listener_fd is borrowed. */
struct flows *flow_open_all(struct gate *g, struct nameserver *n, int listener_fd);
void flow_close_all(struct flows *f);

/* No new connections; is there anything left that the sandbox has sent and we have not? */
void flow_stop_listening(struct flows *f);
void flow_pause(struct flows *f, bool is_paused); /* new connections wait, or come again */
bool flow_is_sending(const struct flows *f);

bool flow_is_idle(const struct flows *f); /* no connections at all */

/*
 * The rules are new. Every connection is judged by them, wherever it is on its way: its host, the
 * address it leads to, and whom its client has asked for. What they do not allow is closed.
 */
void flow_judge_all(struct flows *f);

void flow_on_second(struct flows *f); /* once a second: deadlines */
