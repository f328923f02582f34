#pragma once
/*
 * native - the backend that isolates a sandbox with namespaces. This is the list of all protections
 * and their order; each has a file of its own.
 *
 * native_start() creates one child with clone3(): user, mount, pid, ipc and uts namespaces at once,
 * and directly in its v2 cgroup. The child makes the network namespace (networkthread) beside the
 * mounts, sets up the remaining protections, becomes init and starts the command; it sends errors
 * back as a report (protocol/report.h).
 */
#include "base/err.h"
#include "base/fdpass.h"
#include "host/cgroup.h"
#include "sandbox/command.h"
#include "host/idmap.h"
#include "host/limitfiles.h"
#include "protocol/handle.h"
#include "sandbox/rootfs.h"
#include "sandbox/watch.h"

#include <sys/types.h>

/*
 * Sets up the new network namespace's connections to the outside; runs as its root. The sockets it
 * creates there are closed inside and passed to the process that started the sandbox.
 */
typedef int native_network_fn(int ret_sockets[FDPASS_MAX], unsigned *ret_count, struct err *e);

/* Prepared by the caller; all pointers are borrowed. */
struct native_plan {
	struct command command;
	struct idmap *idmap;
	struct cgroup *cgroup;
	struct rootfs_options rootfs;
	struct watch_limits watch;
	native_network_fn *network;        /* NULL: loopback only */
	struct limitfiles_figures figures; /* includes the CPUs that the sandbox may run on */
	bool is_pinned;                    /* restrict the sandbox to those CPUs */
	bool awaits_places;                /* host directories arrive only when the sandbox is
					    * claimed: sandbox/placement.h */
	bool takes_dials; /* init makes connections to the inside on request: base/dialin.h */
	bool serves;      /* init waits for orders (protocol/order.h) instead of one command */
};

ERR_CHECKED int native_start(const struct native_plan *plan, struct handle *ret, struct err *e);

#define NATIVE_STOP_MAX_MS 10000u

/*
 * Kills and thaws all processes and waits up to NATIVE_STOP_MAX_MS for init to exit (else
 * is_stuck). The pipes stay open, so output that was not read yet is not lost. May run twice.
 */
void native_stop(struct handle *s);
