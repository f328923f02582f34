#pragma once
/*
 * lockholder - kills the process that holds a sandbox's lock but does not answer.
 *
 * A supervisor that listens is reached through its socket (named/control). If it has lost its
 * socket, only the pid in the sandbox's `run` file is left, and the pid may belong to another
 * process by now: so the process is killed only if it has that sandbox's lock file open.
 */
#include "base/err.h"

#include <sys/types.h>

/* ERR_NOT_FOUND: no such process, or it does not have the lock file open. */
ERR_CHECKED int lockholder_kill(int dir_fd, const char *lock_file, pid_t pid, struct err *e);
