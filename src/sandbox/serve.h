#pragma once
/*
 * serve - pid 1 of a named sandbox: starts commands on order.
 *
 * Like sandbox/init for one command, but it keeps running: orders arrive from the supervisor over a
 * socket, and every command's end is reported to the client and to the supervisor. It logs the
 * output of detached commands (protocol/tasklog.h), ends them at their deadlines, and exits when
 * the supervisor is gone, which ends everything inside.
 *
 * It keeps the few capabilities needed to start a command as another user, all in the sandbox's own
 * user namespace; processes inside cannot trace it, signal it or read its memory.
 */
#include "sandbox/init.h"

#define SERVE_TASKS_MAX 1024u /* running commands */
#define SERVE_GRACE_MS 1000u  /* between SIGTERM at a deadline and SIGKILL */

_Noreturn void serve_run(const struct init_options *o);
