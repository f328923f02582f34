#pragma once
/*
 * init - pid 1 of a sandbox.
 *
 * Starts the command, reaps every orphan, forwards signals from the supervisor, and exits when the
 * command has ended or the supervisor is gone. When pid 1 exits the kernel kills all other
 * processes in the pid namespace, including double forks and new sessions.
 *
 * A signal whose value is INIT_TO_GROUP goes to the command's whole process group, as one from
 * a terminal would; any other goes to the command alone, as one from kill would.
 *
 * init has no capabilities (except CAP_SYS_PTRACE if it watches memory), holds no stream of the
 * caller and is not dumpable. It ignores signals from processes inside.
 */

#include "sandbox/watch.h"

#define INIT_TO_GROUP 1

struct command;
struct limitfiles;

struct init_options {
	const struct command *command;
	int report_fd;
	int lifeline_fd; /* reads end-of-file when the supervisor is gone */
	int lock_fd;     /* a lock held while init lives; may be -1 */
	bool has_waited; /* it waited in sandbox/placement, which already did the first steps of
			  * serve_run() */
	int dial_fd;     /* requests for connections to the inside (base/dialin.h); -1: none */
	int orders_fd;   /* -1: run one command; otherwise serve orders, see sandbox/serve.h */
	const struct limitfiles *limits; /* the files that show the limits to the sandbox */
	struct watch_limits watch;
};

_Noreturn void init_run(const struct init_options *o);
