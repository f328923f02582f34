#pragma once
/*
 * netns - makes a new network namespace lead to the gate, and nowhere else.
 *
 * Called inside the namespace by its root, before privileges are dropped. There is no interface
 * but loopback: routes make every address a local one, rules send new connections and DNS
 * queries to three listening sockets. Whoever holds those sockets is the network; a namespace
 * whose sockets nobody serves has none.
 */
#include "base/err.h"

enum netns_socket {
	NETNS_TCP,    /* every connection; getsockname() tells where it wanted to go */
	NETNS_DNS_V4, /* UDP, with packet info */
	NETNS_DNS_V6, /* last: missing where the kernel has no IPv6 */

	NETNS_SOCKET_COUNT
};

/* *ret_count sockets, the caller's to close. */
ERR_CHECKED int netns_build(int ret_sockets[NETNS_SOCKET_COUNT], unsigned *ret_count,
			    struct err *e);
