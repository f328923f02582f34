/*
 * checkpointinterval - checkpoints every so often; see checkpointinterval.h.
 *
 * The process is forked from the supervisor and closes all that it inherited, above all the
 * sandbox's lock; then it opens the sandbox by its name, as a command would, and freezes it through
 * the control socket. So the supervisor never waits for it, and if either is killed, the other
 * finds out as with a command. It may outlive a stop for a moment, to remove what it has copied.
 *
 * Intervals are counted from the beginning of each checkpoint. One that takes longer than the
 * interval is followed by a whole interval without one, so that the sandbox gets on.
 */
#include "named/checkpointinterval.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/closeothers.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/title.h"
#include "named/named.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RESUME_MS 1000u /* from the start of a sandbox to the first look */

void checkpointinterval_init(struct checkpointinterval *c)
{
	*c = (struct checkpointinterval){ .report_fd = -1 };
}

int checkpointinterval_parse(const char *text, uint64_t *ret_ms, struct err *e)
{
	*ret_ms = 0;
	if (strcmp(text, "off") == 0 || strcmp(text, "0") == 0)
		return 0;
	return parse_duration_ms(text, CHECKPOINTINTERVAL_MIN_MS, CHECKPOINTINTERVAL_MAX_MS, ret_ms,
				 e);
}

/* ---- the timer ---- */

void checkpointinterval_resume(struct checkpointinterval *c, const struct named *n)
{
	c->at_ms = n->checkpoint_every_ms ? clock_now_ms() + RESUME_MS : 0;
	c->is_resumed = true;
}

void checkpointinterval_change(struct checkpointinterval *c, const struct named *n)
{
	c->at_ms = n->checkpoint_every_ms ? clock_now_ms() + n->checkpoint_every_ms : 0;
	c->is_resumed = false;
}

bool checkpointinterval_is_due(const struct checkpointinterval *c)
{
	return c->at_ms && c->pid == 0 && clock_now_ms() >= c->at_ms;
}

static void set_next(struct checkpointinterval *c, const struct named *n, uint64_t wait_ms)
{
	uint64_t now_ms = clock_now_ms();

	c->at_ms = 0;
	if (!n->checkpoint_every_ms)
		return;
	c->at_ms = wait_ms ? now_ms + wait_ms : c->began_ms + n->checkpoint_every_ms;
	if (c->at_ms < now_ms)
		c->at_ms = now_ms + n->checkpoint_every_ms;
}

/* ---- the process ---- */

/* How long until the next one is due, by the latest that the interval has made. */
static int find_wait(const struct ak *ak, const struct named *n, uint64_t *ret_ms, struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	uint64_t now_s = (uint64_t)time(NULL), last_s = 0, since_ms;

	*ret_ms = 0;
	if (checkpoint_list(ak, n->name, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *c = &list.entries[i];

		if (c->is_automatic && c->sandbox_id && strcmp(c->sandbox_id, n->id) == 0)
			last_s = c->created_s;
	}
	if (last_s > now_s) /* the clock was set back */
		last_s = now_s;
	since_ms = (now_s - last_s) * 1000;
	if (since_ms < n->checkpoint_every_ms)
		*ret_ms = n->checkpoint_every_ms - since_ms;
	return 0;
}

static int work(const struct ak *ak, const struct named *n, bool may_wait,
		struct checkpointinterval_report *r, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	const struct checkpoint_request q = { .sandbox = n->name,
					      .is_automatic = true,
					      .may_skip = true };
	struct checkpoint_timing timing = { 0 };

	if (may_wait && find_wait(ak, n, &r->wait_ms, e) < 0)
		return -1;
	if (r->wait_ms)
		return 0;
	if (checkpoint_create(ak, &q, &c, &timing, e) < 0)
		return -1;
	memcpy(r->id, c.id, sizeof(r->id));
	return c.id[0] ? checkpoint_thin(ak, n->id, n->checkpoint_keep, e) : 0;
}

static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
}

/* Acts for the user: sees the sandbox whoever owns it, and no other one of its name. */
static _Noreturn void child_main(const struct ak *ak, const struct named *n, bool may_wait,
				 int report_fd)
{
	int kept[] = { 0, 1, 2, report_fd };
	struct checkpointinterval_report r = { 0 };
	struct ak own = *ak;

	reset_signals();
	(void)closeothers_but(kept, COUNT_OF(kept));
	title_set(TITLE_CHECKPOINT, n->name);
	own.view = (struct ak_view){ 0 };
	own.ceiling = NULL;
	own.lifeline_fd = 0;
	named_pin(&own, n);
	if (work(&own, n, may_wait, &r, &r.failure) == 0)
		r.failure.code = ERR_NONE;
	(void)!file_write_all(report_fd, &r, sizeof(r));
	_exit(0);
}

int checkpointinterval_start(struct checkpointinterval *c, const struct ak *ak,
			     const struct named *n, struct err *e)
{
	int ends[2];
	pid_t pid;

	c->began_ms = clock_now_ms();
	set_next(c, n, 0); /* should this fail */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	pid = fork();
	if (pid == 0)
		child_main(ak, n, c->is_resumed, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)err_sys(e, errno, "start a process");
		(void)close(ends[0]);
		return -1;
	}
	c->pid = pid;
	c->report_fd = ends[0];
	c->is_resumed = false;
	return 0;
}

void checkpointinterval_on_readable(struct checkpointinterval *c, const struct named *n,
				    struct checkpointinterval_report *ret)
{
	if (!file_read_exactly(c->report_fd, ret, sizeof(*ret))) {
		*ret = (struct checkpointinterval_report){ 0 };
		(void)err_set(&ret->failure, ERR_SYSTEM, "the process that checkpoints died");
	}
	cleanup_closep(&c->report_fd);
	/* it has nothing left to do but to exit */
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	c->pid = 0;
	set_next(c, n, ret->wait_ms);
}
