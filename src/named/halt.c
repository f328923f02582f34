/*
 * halt - ends a running sandbox; see halt.h.
 *
 * Theory of operation. The supervisor ends the sandbox and removes its cgroups; that it has done so
 * shows when it frees the sandbox's lock, which we take. A supervisor that does not answer is
 * killed, which makes init end (its lifeline closes) and the kernel kill whatever runs inside. A
 * frozen init does not notice: so processes in the cgroups that the run file names are killed too.
 * What a killed supervisor left is removed from the files on disk alone, by whoever takes the lock
 * next: this can be repeated.
 */
#include "named/halt.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "host/cgroup.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/supervisor.h"
#include "named/namedrun.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#define STOP_AGAIN_MS 500u
#define STOP_SLACK_MS 20000u /* for the supervisor to clean up */

bool halt_clean_up(const struct ak *ak, const struct named *n)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	struct err ignored;
	bool is_clean = true;

	(void)unlinkat(n->dir_fd, CONTROL_SOCKET, 0);
	if (namedrun_load(n, &run, &ignored) < 0)
		return true;
	if (namedrun_is_live((enum named_state)run.state)) {
		struct err died = { 0 };

		(void)err_set(&died, ERR_SYSTEM, "supervisor died");
		lifecycle_audit(ak, AUDITLINE_END, n->name, "sandbox", &died);
	}
	/* a frozen init did not notice that its supervisor died */
	for (char **path = run.cgroups; path && *path; path++)
		cgroup_end_path(*path);
	for (char **path = run.cgroups; path && *path; path++)
		is_clean = cgroup_remove_path(*path) && is_clean;
	return is_clean;
}

static bool wait_until(int fd, uint64_t end_ms)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < end_ms) {
		uint64_t left_ms = end_ms - now_ms;

		if (poll(&polled, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX) > 0)
			return true;
	}
	return false;
}

static int ask_to_stop(struct named *n, uint64_t timeout_ms, struct err *e)
{
	const struct control_stop body = {
		.timeout_ms = timeout_ms == LIFECYCLE_STOP_DEFAULT_MS ? SUPERVISOR_STOP_DEFAULT_MS
								      : timeout_ms,
	};
	CLEANUP(frame_done) struct frame answer = { 0 };
	uint64_t end_ms = clock_now_ms() + body.timeout_ms + STOP_SLACK_MS;
	cleanup_fd int fd = -1;
	int r;

	if (control_connect(n->dir_fd, n->name, &fd, e) < 0)
		return -1;
	r = frame_send(fd, CONTROL_STOP, &body, sizeof(body), NULL, 0);
	if (r < 0 && r != -EPIPE) /* EPIPE: another command has ended it already */
		return err_sys(e, -r, "ask the supervisor");
	while (wait_until(fd, end_ms)) {
		r = frame_receive(fd, FRAME_WAIT, &answer);
		if (r == -EPROTONOSUPPORT) {
			if (control_terminate(fd, e) < 0)
				return -1;
			return named_lock_within(n, end_ms - clock_now_ms(), e);
		}
		if (r != 1)
			return 0;
		frame_done(&answer);
	}
	return err_set(e, ERR_TIMEOUT, "the supervisor of sandbox '%s' does not end", n->name);
}

/*
 * Waits until the supervisor has cleaned up, which frees the lock. A supervisor without a free
 * descriptor closes our connection without reading the request: ask again.
 */
int halt_ask(struct named *n, uint64_t timeout_ms, struct err *e)
{
	if (ask_to_stop(n, timeout_ms, e) < 0)
		return -1;
	if (n->has_lock || named_lock_within(n, STOP_AGAIN_MS, e) == 0 || e->code != ERR_BUSY)
		return n->has_lock ? 0 : -1;
	if (ask_to_stop(n, timeout_ms, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	return named_lock_within(n, STOP_SLACK_MS, e);
}

/* Kills all processes in the cgroups of the last start, also frozen ones. */
static void kill_processes(const struct named *n)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	struct err ignored;

	if (namedrun_load(n, &run, &ignored) < 0)
		return;
	for (char **path = run.cgroups; path && *path; path++)
		cgroup_end_path(*path);
}

int halt_end(struct named *n, struct err *e)
{
	if ((control_probe(n->dir_fd, n->name, e) == 0 || e->code == ERR_UNSUPPORTED) &&
	    halt_ask(n, 0, e) == 0)
		return 0;
	if (e->code == ERR_NOT_FOUND && !named_is_locked(n))
		return -1;
	/* no answer: kill the supervisor, which ends the sandbox and frees the lock */
	if (control_kill(n->dir_fd, n->name, e) < 0 && namedrun_kill_supervisor(n, e) < 0)
		return -1;
	kill_processes(n);
	return 0;
}

/* Records the end of a killed sandbox in its run file. The caller holds the lock. */
static void note_killed(const struct ak *ak, const struct named *n)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	struct err ignored;

	if (!halt_clean_up(ak, n) || namedrun_load(n, &run, &ignored) < 0 ||
	    !namedrun_is_live((enum named_state)run.state))
		return;
	run.state = NAMED_STOPPED;
	run.ended_s = (uint64_t)time(NULL);
	run.supervisor_pid = run.init_pid = 0;
	keyrows_list_free(&run.cgroups);
	free(run.reason);
	run.reason = mem_dup("killed, its supervisor did not answer");
	(void)!namedrun_save(n, &run, &ignored);
}

int halt_kill(const struct ak *ak, struct named *n, struct err *e)
{
	if (halt_end(n, e) < 0)
		return -1;
	if (!n->has_lock && named_lock_within(n, STOP_SLACK_MS, e) < 0)
		return -1;
	note_killed(ak, n);
	return 0;
}
