#pragma once
/*
 * native - the backend that builds the walls out of namespaces. This is the list of the walls
 * and their order; each has a file of its own.
 *
 * native_start() makes one child with clone3(): user, mount, pid, ipc, uts and network
 * namespaces at once, born in its v2 cgroup. The child finishes the walls, becomes init and
 * starts the command; what goes wrong comes home as a report (sandbox/report.h).
 */
#include "base/err.h"
#include "base/fdpass.h"
#include "sandbox/cgroup.h"
#include "sandbox/command.h"
#include "sandbox/idmap.h"
#include "sandbox/limitfiles.h"
#include "sandbox/rootfs.h"
#include "sandbox/watch.h"

#include <sys/types.h>

/*
 * Gives the new network namespace its ways out, as its root. The sockets it makes there are
 * closed inside and go to whoever started the sandbox.
 */
typedef int native_network_fn(int ret_sockets[FDPASS_MAX], unsigned *ret_count, struct err *e);

/* Everything is prepared by the caller; nothing here is owned. */
struct native_plan {
	struct command command;
	struct idmap *idmap;
	struct cgroup *cgroup;
	struct rootfs_options rootfs;
	struct watch_limits watch;
	native_network_fn *network;        /* NULL: loopback and nothing else */
	struct limitfiles_figures figures; /* with the cpus that it may run on */
	bool is_pinned;                    /* and no others: it is made so */
	bool awaits_places;                /* what it shows of the host comes when it is claimed:
					      sandbox/placement.h */
	bool serves; /* init waits for orders (sandbox/order.h) instead of one command */
};

struct native_sandbox {
	pid_t pid; /* of init, as seen from here */
	int pid_fd;
	int report_fd;
	int lifeline_fd;         /* closing it ends the sandbox */
	int tty_master_fd;       /* -1 without a terminal */
	int sockets[FDPASS_MAX]; /* plan.network's, the caller's to take; -1: taken */
	unsigned socket_count;

	/* when it serves; else -1 */
	int orders_fd; /* sandbox/order.h's, both ways */
	int root_fd;   /* the finished root, for looking at its files */
	int userns_fd; /* whose ids those are */
	int mntns_fd;  /* where its mounts can be neither removed nor renamed */

	const struct cgroup *cgroup; /* the plan's: native_stop() thaws what is frozen in it */

	/* after native_stop(): what init and all it has reaped have used */
	uint64_t cpu_us;
	uint64_t peak_process_bytes; /* of the largest process */
	bool is_stuck; /* init did not end in time: the kernel holds it or a process below it */
};

ERR_CHECKED int native_start(const struct native_plan *plan, struct native_sandbox *ret,
			     struct err *e);

void native_init(struct native_sandbox *s); /* "nothing started" */

#define NATIVE_STOP_MAX_MS 10000u

/*
 * Kills and thaws whatever is left and waits for its end, so long at most (is_stuck); what it has
 * written can still be read.
 */
void native_stop(struct native_sandbox *s);

/* Stops, and closes the descriptors. Both may run twice. */
void native_end(struct native_sandbox *s);
