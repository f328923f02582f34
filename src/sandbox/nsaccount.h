#pragma once
/*
 * nsaccount - which account the kernel charges for what a sandbox's users hold.
 *
 * The kernel adds what all users of a user namespace hold together (inotify instances and watches,
 * pending signals, nested namespaces) to the account of whoever created that namespace. The limits
 * that a namespace sets for itself are per user, so a sandbox with many users inside could use up
 * all that its caller has. Two ways keep the sum bounded:
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
#include "sandbox/idmap.h"

#include <linux/sched.h>
#include <sys/types.h>

/*
 * clone3 with a user namespace. args->exit_signal is SIGCHLD and args->flags has no CLONE_PIDFD.
 * For IDMAP_SUBIDS the child's maps are written here; the middle process is told through lifeline
 * (a pipe) to go on, as the child is later. In the child *ret_pid is 0 and *ret_pid_fd -1.
 */
ERR_CHECKED int nsaccount_clone(const struct idmap *m, struct clone_args *args, int lifeline[2],
			      pid_t *ret_pid, int *ret_pid_fd, struct err *e);

/* In a new user namespace, as root of it: bounds what each of its users may hold. */
ERR_CHECKED int nsaccount_bound_users(struct err *e);
