/*
 * wake - connects to the supervisor of a sandbox that is to be used; see wake.h.
 *
 * Theory of operation. The state decides, and may change at any moment: a sandbox that falls asleep
 * refuses (ERR_BUSY) until it has ended, and ten callers may wake one at once, of whom one starts
 * it. So we look again until it runs, somebody else has stopped it, or time is up.
 */
#include "named/wake.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/moves.h"
#include "named/named.h"

#include <unistd.h>

#define LOOK_US 5000

/* Only a sandbox with such a policy can refuse because it falls asleep. */
static bool may_fall_asleep(const struct named *n)
{
	CLEANUP(policy_done) struct policy policy = { 0 };
	struct err ignored;

	return named_load_policy(n, &policy, &ignored) == 0 && policy.idle_timeout_ms &&
	       policy.stops_when_idle;
}

/* 1: connected; 0: try again; -1. */
static int try_once(const struct ak *ak, struct named *n, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;

	if (control_connect(n->dir_fd, n->name, &fd, e) == 0) {
		if (may_fall_asleep(n) && control_do(fd, CONTROL_WAKE, NULL, 0, e) < 0)
			return e->code == ERR_BUSY || e->code == ERR_SYSTEM ? 0 : -1;
		*ret_fd = take_fd(&fd);
		return 1;
	}
	if (e->code != ERR_NOT_FOUND)
		return -1;
	if (moves_is_asleep(n))
		return lifecycle_start(ak, n->name, e) == 0 || e->code == ERR_BUSY ? 0 : -1;
	/* it may have ended, to sleep, without having said so yet; or another caller starts it */
	return named_is_locked(n) ? 0 : -1;
}

int wake_connect(const struct ak *ak, struct named *n, int *ret_fd, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + WAKE_WAIT_MS;
	int r;

	while ((r = try_once(ak, n, ret_fd, e)) == 0) {
		if (clock_now_ms() >= end_ms)
			return -1;
		(void)usleep(LOOK_US);
	}
	return r > 0 ? 0 : -1;
}
