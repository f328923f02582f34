#pragma once
/*
 * nsaccount - bounds the kernel resources charged to a sandbox's users.
 *
 * The kernel charges the resources that all users of a user namespace hold (inotify instances and
 * watches, pending signals, nested namespaces) also to the user who created that namespace. The
 * limits that a namespace sets for itself are per user, so a sandbox with many users inside could
 * use up its caller's whole allowance. Two methods bound the sum:
 *
 *   - a root caller creates the namespace under the sandbox's private id, whose account is the
 *     sandbox's alone;
 *   - an ordinary caller with a range of ids (IDMAP_SUBIDS) puts the sandbox's namespace into
 *     another one, where a single user created it and has the limits of one user. A middle process
 *     makes both; the child still is the caller's, by CLONE_PARENT.
 *
 * With one id (IDMAP_ONE) the limit of that one user is the limit of the sum.
 */
#include "base/err.h"
#include "host/idmap.h"

#include <linux/sched.h>
#include <sys/types.h>

/*
 * clone3 with a new user namespace. args->exit_signal is SIGCHLD and args->flags must not have
 * CLONE_PIDFD. For IDMAP_SUBIDS this also writes the child's maps, and uses lifeline (a pipe) to
 * let the middle process continue, as the caller does later for the child. In the child *ret_pid is
 * 0 and *ret_pid_fd -1.
 */
ERR_CHECKED int nsaccount_clone(const struct idmap *m, struct clone_args *args, int lifeline[2],
				pid_t *ret_pid, int *ret_pid_fd, struct err *e);

/* Runs as root of a new user namespace: limits what each of its users may hold. */
ERR_CHECKED int nsaccount_bound_users(struct err *e);
