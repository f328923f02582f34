#pragma once
/*
 * serve - pid 1 of a named sandbox: starts commands when it is told to.
 *
 * Like init.h's for one command, but it stays: orders come from the supervisor over a socket, every
 * command's end is reported to who asked for it and to the supervisor. It keeps the output of
 * commands that nobody waits for (sandbox/tasklog.h), ends them at their deadlines, and ends
 * itself, and with it everything inside, when the supervisor is gone.
 *
 * It keeps the few capabilities that starting a command as another user takes, all in the sandbox's
 * own user namespace; nothing inside can trace it, signal it or see its memory.
 */
#include "sandbox/init.h"

#define SERVE_TASKS_MAX 1024u /* commands at once */
#define SERVE_GRACE_MS 1000u  /* between SIGTERM at a deadline and SIGKILL */

_Noreturn void serve_run(const struct init_options *o);
