#pragma once
/*
 * placement - host directories for a sandbox that was built before they were known.
 *
 * A warm sandbox (pool/warm) that will show a workspace stops in the middle of building its root:
 * everything is mounted except the host directories of the policy. The process that claims the
 * sandbox checks these directories as for any start (workspace/hostfiles) and sends them with
 * ORDER_PLACES: a root caller sends mounts that it made; for an ordinary caller the child opens the
 * paths itself and compares their identity. Then the child continues with the same code in the same
 * order as a sandbox that did not wait. No command has run before, and the child unmounts the
 * host's tree before one does (sandbox/rootfs): if it will be sent mounts, before it waits.
 *
 * Slow steps that do not depend on the places come before the wait, too: the bounding set, the
 * keyring, and the system call filter, except that it still allows mounting (sandbox/seccomp.h).
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/frame.h"
#include "protocol/places.h"
#include "sandbox/rootfs.h"

struct placement {
	int orders_fd, report_fd, lifeline_fd; /* init's, borrowed */
	unsigned seccomp_variant;              /* init's */

	int placed_fd; /* -1: not claimed. report_started() there when the sandbox is complete */
	struct frame frame;
	struct places places;
};

/*
 * In the child: reports that it is waiting, waits for ORDER_PLACES and puts its content into `o`,
 * which borrows from `p`. `p` is never freed: it lives as long as this process.
 */
ERR_CHECKED int placement_await(struct placement *p, struct rootfs_options *o, struct err *e);
