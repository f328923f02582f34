#pragma once
/*
 * init - pid 1 of a sandbox.
 *
 * Starts the command, reaps every orphan, passes signals from the supervisor on, and ends when
 * the command has ended or the supervisor is gone. When pid 1 ends the kernel kills everything
 * else in the pid namespace, so nothing survives it: not a double fork, not a new session.
 *
 * A signal whose value is INIT_TO_GROUP goes to the command's whole process group, as one from
 * a terminal would; any other goes to the command alone, as one from kill would.
 *
 * It has no capabilities (but one where it watches memory), holds no stream of the caller and
 * cannot be looked into. Signals that processes inside send to it are ignored.
 */

#include "sandbox/watch.h"

#define INIT_TO_GROUP 1

struct command;
struct limitfiles;

struct init_options {
	const struct command *command;
	int report_fd;
	int lifeline_fd; /* reads end-of-file when the supervisor is gone */
	int lock_fd;     /* held while we live; may be -1 */
	bool has_waited; /* for its places (sandbox/placement), which has begun what serve_run()
			    would do */
	int orders_fd;   /* -1: one command; else sandbox/serve.h */
	const struct limitfiles *limits; /* what the sandbox is told about them */
	struct watch_limits watch;
};

_Noreturn void init_run(const struct init_options *o);
