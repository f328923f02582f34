#pragma once
/*
 * netns - sets up a network namespace whose only way out is the gate.
 *
 * Called inside the namespace by its root, before privileges are dropped. There is no interface but
 * loopback: routes make every address local, rules send new connections and DNS queries to three
 * listening sockets. The process that holds these sockets is the network; without one there is
 * none.
 */
#include "base/err.h"

enum netns_socket {
	NETNS_TCP,    /* every connection; getsockname() returns its destination */
	NETNS_DNS_V4, /* UDP, with packet info */
	NETNS_DNS_V6, /* last, because it is missing if the kernel has no IPv6 */

	NETNS_SOCKET_COUNT
};

/* Returns *ret_count sockets, which the caller closes. */
ERR_CHECKED int netns_build(int ret_sockets[NETNS_SOCKET_COUNT], unsigned *ret_count,
			    struct err *e);
