#pragma once
/*
 * supervisor - the supervisor of a named sandbox: the one process outside that owns it while it
 * runs.
 *
 * Detached from whoever started it, small, and asleep unless something happens. It builds the
 * sandbox (engine/session), hands commands to init (sandbox/serve), answers on the control socket
 * (named/control), keeps the gate (engine/gatekeeper) and the deadlines, and takes everything back
 * when it ends. Killed, it takes the sandbox with it and loses no file.
 */
#include "base/err.h"

struct ak;

struct images;
struct named;
struct policy;

struct supervisor_options {
	const struct ak *ak;
	struct named *named;   /* open and locked; the lock becomes the supervisor's */
	struct policy *policy; /* may be replaced when it changes on disk */
	struct images *image;  /* NULL: the host's */
};

#define SUPERVISOR_CLIENTS_MAX 512u
#define SUPERVISOR_LOST_GRACE_MS                                                                   \
	2000u /* an attached command whose client is gone: SIGHUP, SIGKILL */
#define SUPERVISOR_COPY_WAIT_MS 60000u /* of a command, for a checkpoint or fork to be copied */
#define SUPERVISOR_STOP_DEFAULT_MS 5000u
#define SUPERVISOR_STOP_MAX_MS (3600u * 1000)

/*
 * Starts it and waits until the sandbox runs. What goes wrong comes back in words. In the parent
 * the lock is let go of: it is the supervisor's now.
 */
ERR_CHECKED int supervisor_start(const struct supervisor_options *o, struct err *e);
