/* tasksession - takes part in a detached command; see tasksession.h. */
#include "named/tasksession.h"

#include "base/cleanup.h"
#include "base/fdpass.h"
#include "base/frame.h"
#include "named/control.h"
#include "named/named.h"
#include "named/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void tasksession_init(struct tasksession *s)
{
	*s = (struct tasksession){ .watch_fd = -1, .control_fd = -1, .input_fd = -1 };
	logs_init(&s->logs);
}

void tasksession_done(struct tasksession *s)
{
	logs_done(&s->logs);
	fdpass_close_later(&s->watch_fd);
	cleanup_closep(&s->control_fd);
	cleanup_closep(&s->input_fd);
	tasksession_init(s);
}

/* By descriptors: the files are those that were opened. */
static int watch_log(struct tasksession *s, struct err *e)
{
	char path[40];

	s->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (unsigned half = 0; s->watch_fd >= 0 && half < 2; half++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->logs.fds[half]);
		if (inotify_add_watch(s->watch_fd, path, IN_MODIFY) < 0)
			return err_sys(e, errno, "watch a log");
	}
	return s->watch_fd < 0 ? err_sys(e, errno, "watch a log") : 0;
}

/* init sends the input on a socket that comes with the request, or nothing if there is none. */
static int ask_input(struct tasksession *s, struct err *e)
{
	const struct order_signal body = { .id = s->logs.id };
	CLEANUP(frame_done) struct frame answer = { 0 };
	int ends[2], fds[FDPASS_MAX], r;
	unsigned count = 0;
	struct winsize size;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "create a socket");
	r = frame_send(s->control_fd, CONTROL_INPUT, &body, sizeof(body), &ends[1], 1);
	(void)close(ends[1]);
	if (r == 0 && control_wait(s->control_fd, CONTROL_ANSWER_MS, &answer, e) < 0)
		r = e->code == ERR_NOT_FOUND ? 1 : -EPROTO; /* it has ended */
	if (r == 0 && fdpass_receive(ends[0], fds, &count) < 0)
		count = 0;
	(void)close(ends[0]);
	if (r < 0)
		return err_wrap(e, "ask for the input of a command");
	if (count == 0)
		return 0;
	s->input_fd = fds[0];
	for (unsigned i = 1; i < count; i++)
		(void)close(fds[i]);
	(void)fcntl(s->input_fd, F_SETFL, O_RDWR | O_NONBLOCK);
	s->has_tty = ioctl(s->input_fd, TIOCGWINSZ, &size) == 0;
	return 0;
}

int tasksession_open(const struct ak *ak, const char *sandbox, const char *id, uint64_t offset,
		     struct tasksession *ret, struct err *e)
{
	CLEANUP(tasksession_done) struct tasksession s;
	CLEANUP(named_done) struct named n;

	tasksession_init(&s);
	named_init(&n);
	if (named_open(ak, sandbox, &n, e) < 0 || logs_open(ak, sandbox, id, &s.logs, e) < 0)
		return -1;
	s.logs.offset = offset;
	if (watch_log(&s, e) < 0)
		return -1;
	if (wake_connect(ak, &n, &s.control_fd, e) == 0) {
		if (ask_input(&s, e) < 0)
			return -1;
	} else if (e->code != ERR_NOT_FOUND) {
		return -1;
	}
	*ret = s;
	tasksession_init(&s);
	return 0;
}

int tasksession_read(struct tasksession *s, logs_fn *fn, void *context, uint64_t *ret_skipped,
		     struct err *e)
{
	char events[4096];

	while (read(s->watch_fd, events, sizeof(events)) > 0)
		continue;
	return logs_read(&s->logs, fn, context, ret_skipped, e);
}

static void send_order(const struct tasksession *s, uint32_t kind, int number)
{
	const struct order_signal body = { s->logs.id, number, 1 };

	if (s->control_fd >= 0)
		(void)frame_send(s->control_fd, kind, &body, sizeof(body), NULL, 0);
}

/* The command sees the end when every process has closed its copy. */
void tasksession_end_input(struct tasksession *s)
{
	if (s->has_tty)
		return;
	cleanup_closep(&s->input_fd);
	send_order(s, CONTROL_END_INPUT, 0);
}

void tasksession_resize(struct tasksession *s, uint16_t rows, uint16_t columns)
{
	const struct winsize size = { .ws_row = rows, .ws_col = columns };

	if (s->has_tty)
		(void)ioctl(s->input_fd, TIOCSWINSZ, &size);
}

void tasksession_signal(struct tasksession *s, int number)
{
	send_order(s, CONTROL_SIGNAL, number);
}
