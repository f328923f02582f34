#pragma once
/*
 * ownaddress - does a packet for this address stay on this machine?
 *
 * The kernel's routing table knows: an address is ours when its route is of the type "local", be it
 * a primary or secondary address of an interface or covered by a local route. A socket to the
 * kernel (NETLINK_ROUTE) is opened once; every question is answered from the table as it is then.
 */
#include "base/err.h"
#include "policy/address.h"
#include "policy/egress.h"

#include <stdint.h>

/* The descriptor is the caller's to close. */
ERR_CHECKED int ownaddress_open(int *ret_fd, struct err *e);

/* A TCP connection to `a` and `port`. Without an answer: EGRESS_OWNER_UNKNOWN. */
enum egress_owner ownaddress_ask(int fd, const struct address *a, uint16_t port);
