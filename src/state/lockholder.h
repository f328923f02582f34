#pragma once
/*
 * lockholder - ends the process that has a sandbox's lock, when it does not answer.
 *
 * A supervisor that listens is found by its socket (named/control). One that has lost its socket is
 * known by its number in the sandbox's `run` file alone, and a number may be another process's by
 * now: it is killed only while it has that sandbox's lock file open.
 */
#include "base/err.h"

#include <sys/types.h>

/* ERR_NOT_FOUND: no such process, or it is another's. */
ERR_CHECKED int lockholder_kill(int dir_fd, const char *lock_file, pid_t pid, struct err *e);
