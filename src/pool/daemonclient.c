/*
 * daemonclient - asks a running daemon; see daemonclient.h.
 */
#include "pool/daemonclient.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/mem.h"
#include "named/control.h"
#include "pool/claim.h"
#include "pool/daemon.h"
#include "state/statedir.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#define END_MAX_MS 10000u
#define END_SOON_MS 1000u
#define END_LOOK_MS 20L

/* Explains errors of a daemon with another protocol; a refused build explains itself. */
static int explain(struct err *e)
{
	bool is_unheard = e->code == ERR_SYSTEM && e->sys == 0; /* an older daemon only closes */

	if (is_unheard || (e->code == ERR_UNSUPPORTED && !strstr(e->msg, "daemon restart")))
		(void)err_set(e, ERR_UNSUPPORTED,
			      "the daemon is of another build of agentkernel, and no run uses it "
			      "('agentkernel daemon restart' renews it)");
	return -1;
}

int daemonclient_ask_status(const struct ak *ak, bool is_json, char **ret_text, struct err *e)
{
	const char *form = is_json ? "" : CLAIM_STATUS_TABLE;
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int fd = -1;

	if (claim_connect(ak, &fd, e) < 0 ||
	    control_ask(fd, CLAIM_STATUS, form, strlen(form), &answer, e) < 0)
		return explain(e);
	*ret_text = mem_dup_bytes(answer.bytes, answer.len);
	return 0;
}

/* Waits until the daemon's lock is free. */
static int await_end(const struct ak *ak, unsigned max_ms, struct err *e)
{
	const struct timespec pause = { .tv_nsec = END_LOOK_MS * 1000000L };
	uint64_t end_ms = clock_now_ms() + max_ms;
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;

	if (statedir_path(ak, DAEMON_LOCK, &path, e) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_now_ms() >= end_ms)
			return err_set(e, ERR_TIMEOUT, "the daemon does not end");
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int daemonclient_ask_stop(const struct ak *ak, struct err *e)
{
	cleanup_fd int fd = -1;
	struct frame ignored;
	int r;

	if (claim_connect(ak, &fd, e) < 0)
		return -1;
	r = frame_send(fd, CLAIM_STOP, NULL, 0, NULL, 0);
	if (r < 0)
		return err_sys(e, -r, "ask the daemon");
	while (frame_receive(fd, FRAME_WAIT, &ignored) == 1)
		frame_done(&ignored);
	if (await_end(ak, END_SOON_MS, e) == 0)
		return 0;
	/* another build did not understand the request, but handles SIGTERM */
	return control_terminate(fd, e) < 0 ? -1 : await_end(ak, END_MAX_MS, e);
}

int daemonclient_ask_prewarm(const struct ak *ak, const struct policy *p,
			     const struct images *image, unsigned count, struct err *e)
{
	const struct claim_count body = { count };
	cleanup_fd int fd = -1;
	cleanup_buf struct buf request;

	buf_init(&request, CLAIM_KEY_MAX_BYTES);
	buf_add(&request, &body, sizeof(body));
	if (claim_find_obstacle(p))
		return err_set(e, ERR_UNSUPPORTED, "such a sandbox cannot wait ready: %s",
			       claim_find_obstacle(p));
	if (!claim_format_key(p, image, &request))
		return err_set(e, ERR_UNSUPPORTED,
			       "the daemon cannot know whether its sandboxes are as this process's "
			       "would be: a filter of system calls restricts this process");
	if (claim_connect(ak, &fd, e) < 0)
		return -1;
	return control_do(fd, CLAIM_PREWARM, request.bytes, request.len, e) < 0 ? explain(e) : 0;
}
