#pragma once
/*
 * ownaddress - does a packet for this address stay on this machine?
 *
 * The kernel's routing table decides: an address is ours if its route has the type "local", be it a
 * primary or secondary address of an interface or covered by a local route. A netlink socket
 * (NETLINK_ROUTE) is opened once; every query uses the current table.
 */
#include "base/err.h"
#include "policy/address.h"
#include "policy/egress.h"

#include <stdint.h>

/* The caller closes *ret_fd. */
ERR_CHECKED int ownaddress_open(int *ret_fd, struct err *e);

/* For a TCP connection to `a` and `port`. EGRESS_OWNER_UNKNOWN if the kernel does not answer. */
enum egress_owner ownaddress_ask(int fd, const struct address *a, uint16_t port);
