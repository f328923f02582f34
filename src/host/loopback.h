#pragma once
/*
 * loopback - a working "localhost" in the sandbox's own network namespace.
 *
 * Loopback is the only interface there. It reaches only the sandbox itself, so a program and its
 * test server can talk; every other address is unreachable.
 */
#include "base/err.h"

/* Runs in the new network namespace, with CAP_NET_ADMIN in its user namespace. */
ERR_CHECKED int loopback_up(struct err *e);
