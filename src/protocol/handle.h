#pragma once
/*
 * handle - a sandbox that runs, as its supervisor holds it, whatever backend started it.
 *
 * Every backend gives a process that stands for the sandbox (init, a VMM), a report, a lifeline
 * and, if the sandbox serves, a socket for orders (protocol/order.h). The sandbox's processes are
 * in its cgroup (host/cgroup), so freezing and usage need nothing of the backend.
 */
#include "base/cleanup.h"
#include "base/fdpass.h"
#include "host/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct handle {
	pid_t pid; /* in the caller's pid namespace */
	int pid_fd;
	int report_fd;
	int lifeline_fd;         /* closing it ends the sandbox */
	int tty_master_fd;       /* -1 without a terminal */
	int sockets[FDPASS_MAX]; /* of its network, for the caller to take; -1: taken */
	unsigned socket_count;

	int dial_fd; /* requests for connections to the inside (base/dialin.h); -1: it takes none */

	/* the next four are -1 unless it serves */
	int orders_fd; /* messages of protocol/order.h, both ways */
	int root_fd;   /* the finished root, for reading its files */
	int userns_fd; /* the user namespace of those files' owners */
	int mntns_fd;  /* its mount namespace: mounts there cannot be removed or renamed */

	const struct cgroup *cgroup; /* borrowed: stopping thaws it */

	/* set when it is stopped: usage of its first process and all reaped children */
	uint64_t cpu_us;
	uint64_t peak_process_bytes; /* of the largest process */
	bool is_stuck;               /* it did not exit in time: a process hangs in the kernel */
};

void handle_init(struct handle *h);  /* no process, all descriptors -1 */
void handle_close(struct handle *h); /* its descriptors; may run twice */
