#pragma once
/*
 * supervisor - the supervisor of a named sandbox: the process outside that owns it while it runs.
 *
 * It is detached from its starter, small, and sleeps unless something happens. It builds the
 * sandbox (engine/session), sends commands to init (sandbox/serve), answers on the control socket
 * (named/control), runs the gate (engine/gatekeeper), enforces deadlines, and cleans up at the end.
 * If it is killed, the sandbox ends with it and loses no file.
 */
#include "base/err.h"

struct ak;

struct images;
struct named;
struct policy;

struct supervisor_options {
	const struct ak *ak;
	struct named *named;   /* open and locked; the lock passes to the supervisor */
	struct policy *policy; /* may be replaced when it changes on disk */
	struct images *image;  /* NULL: the host's files */
};

#define SUPERVISOR_CLIENTS_MAX 512u
#define SUPERVISOR_LOST_GRACE_MS                                                                   \
	2000u /* from SIGHUP to SIGKILL, for a command whose client has closed */
#define SUPERVISOR_COPY_WAIT_MS 60000u /* a command's wait for a checkpoint or fork copy */
#define SUPERVISOR_STOP_DEFAULT_MS 5000u
#define SUPERVISOR_STOP_MAX_MS (3600u * 1000)

/*
 * Starts the supervisor and waits until the sandbox is running, or returns its error. Releases the
 * lock in the parent: the supervisor has it now.
 */
ERR_CHECKED int supervisor_start(const struct supervisor_options *o, struct err *e);
