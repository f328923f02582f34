/* call - one operation that a worker process carries out; see call.h. */
#include "rpc/call.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "rpc/hints.h"
#include "rpc/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536
#define LAST_PIECES 17 /* the largest pipe has 1 MiB, plus one */
#define FREE_FD 64     /* above all descriptors of a worker process */

void call_init(struct call *c)
{
	*c = (struct call){ .pid_fd = -1, .lifeline_fd = -1, .handover_fd = -1 };
	for (size_t i = 0; i < COUNT_OF(c->fds); i++)
		c->fds[i] = -1;
	arguments_init(&c->arguments);
	output_init(&c->output[0]);
	output_init(&c->output[1]);
	buf_init(&c->result, WIRE_RESULT_MAX_BYTES);
	buf_init(&c->notes, CALL_NOTES_MAX_BYTES);
}

static void kill_worker(const struct call *c)
{
	if (c->pid_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pid_fd, SIGKILL, NULL, 0);
}

static void let_go(struct call *c)
{
	siginfo_t ignored;

	cleanup_closep(&c->lifeline_fd);
	/* it has written its result and ends, or was killed */
	while (c->reaps && c->pid_fd >= 0 &&
	       waitid(P_PIDFD, (id_t)c->pid_fd, &ignored, WEXITED) < 0 && errno == EINTR)
		continue;
	cleanup_closep(&c->pid_fd);
}

void call_done(struct call *c)
{
	struct pollfd ended = { .fd = c->pid_fd, .events = POLLIN };

	kill_worker(c);
	while (c->pid_fd >= 0 && poll(&ended, 1, -1) < 0 && errno == EINTR)
		continue;
	let_go(c);
	for (size_t i = 0; i < COUNT_OF(c->fds); i++)
		cleanup_closep(&c->fds[i]);
	cleanup_closep(&c->handover_fd);
	arguments_done(&c->arguments);
	output_done(&c->output[0]);
	output_done(&c->output[1]);
	buf_done(&c->result);
	buf_done(&c->notes);
}

/* ---- starting ---- */

/* The worker process's descriptors, which we close; fds[n] becomes its descriptor n. */
struct ends {
	int fds[WIRE_FD_COUNT];
};

static void ends_done(struct ends *ends)
{
	for (size_t i = 0; i < COUNT_OF(ends->fds); i++)
		cleanup_closep(&ends->fds[i]);
}

/* Moves a descriptor above the numbers that dup2() assigns in the worker process. */
static int move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FREE_FD);

	if (fd >= 0)
		(void)close(fd);
	return moved;
}

static int open_pipe(int *ret_worker_fd, int *ret_our_fd, bool is_read_by_us)
{
	int both[2];

	if (pipe2(both, O_CLOEXEC) < 0)
		return -errno;
	*ret_worker_fd = move_up(both[is_read_by_us ? 1 : 0]);
	*ret_our_fd = both[is_read_by_us ? 0 : 1];
	if (*ret_worker_fd < 0)
		return -EMFILE;
	(void)fcntl(*ret_our_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static int open_memory(const struct buf *first, const struct buf *second, int *ret_fd)
{
	cleanup_fd int fd = memfd_create("agentkernel-call", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : file_write_all(fd, first->bytes, first->len);

	if (r == 0 && second)
		r = file_write_all(fd, second->bytes, second->len);
	if (r < 0)
		return r;
	(void)lseek(fd, 0, SEEK_SET);
	*ret_fd = move_up(take_fd(&fd));
	return *ret_fd < 0 ? -EMFILE : 0;
}

static int open_handover(struct call *c, struct ends *ends)
{
	int both[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) < 0)
		return -errno;
	c->handover_fd = both[0];
	ends->fds[WIRE_HANDOVER_FD] = move_up(both[1]);
	return ends->fds[WIRE_HANDOVER_FD] < 0 ? -EMFILE : 0;
}

static int open_ends(struct call *c, const struct call_options *o, struct ends *ends)
{
	static const struct {
		int worker;
		enum call_stream ours;
	} read_by_us[] = {
		{ STDOUT_FILENO, CALL_STDOUT },
		{ STDERR_FILENO, CALL_STDERR },
		{ WIRE_RESULT_FD, CALL_RESULT },
		{ WIRE_NOTES_FD, CALL_NOTES },
	};
	int r;

	if (c->arguments.has_input)
		r = open_pipe(&ends->fds[0], &c->fds[CALL_INPUT], false);
	else
		r = (ends->fds[0] = move_up(open("/dev/null", O_RDONLY | O_CLOEXEC))) < 0 ? -EMFILE
											  : 0;
	for (size_t i = 0; r == 0 && i < COUNT_OF(read_by_us); i++)
		r = open_pipe(&ends->fds[read_by_us[i].worker], &c->fds[read_by_us[i].ours], true);
	if (r == 0)
		r = open_pipe(&ends->fds[WIRE_LIFELINE_FD], &c->lifeline_fd, false);
	if (r == 0)
		r = open_memory(o->rows, &c->arguments.rows, &ends->fds[WIRE_REQUEST_FD]);
	if (r == 0)
		r = open_memory(&c->arguments.contents, NULL, &ends->fds[WIRE_FILES_FD]);
	if (r == 0 && c->operation->hints & OPERATION_HANDS_OVER)
		r = open_handover(c, ends);
	return r;
}

static int spawn(const struct call_options *o, const char *operation, const struct ends *ends,
		 pid_t *ret)
{
	/* leaves room for its title (base/title.h) */
	cleanup_free char *name = mem_format("agentkernel: worker (%s)", operation);
	char *argv[] = { name, (char *)(uintptr_t)WIRE_COMMAND, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	for (int fd = 0; fd < WIRE_FD_COUNT; fd++)
		if (ends->fds[fd] >= 0)
			posix_spawn_file_actions_adddup2(&actions, ends->fds[fd], fd);
	/* a new process group: only the server gets a terminal's signals, and cancels workers */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	r = posix_spawn(ret, o->launcher, &actions, &attributes, argv, o->environ_list);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

int call_start(struct call *c, const struct call_options *o, const struct operation *operation,
	       struct arguments *arguments, struct err *e)
{
	CLEANUP(ends_done) struct ends ends;
	pid_t pid = 0;
	int r;

	for (size_t i = 0; i < COUNT_OF(ends.fds); i++)
		ends.fds[i] = -1;
	arguments_done(&c->arguments);
	c->arguments = *arguments;
	arguments_init(arguments);
	c->operation = operation;
	c->reaps = o->reaps;
	c->started_ms = clock_now_ms();
	if (operation->hints & (OPERATION_READS_ONLY | OPERATION_IS_CARE) &&
	    !(operation->hints & OPERATION_NEEDS_PROCESS))
		c->deadline_ms = c->started_ms + CALL_DEADLINE_MS + c->arguments.timeout_ms;
	r = open_ends(c, o, &ends);
	if (r == 0)
		r = spawn(o, operation->name, &ends, &pid);
	if (r < 0)
		return err_sys(e, -r, "start a worker process");
	c->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* ESRCH: it has ended already, which its pipes will show */
	if (c->pid_fd >= 0 || errno == ESRCH)
		return 0;
	r = errno;
	(void)kill(pid, SIGKILL);
	while (o->reaps && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return err_sys(e, r, "watch a worker process");
}

/* ---- running ---- */

unsigned call_poll(const struct call *c, struct pollfd polled[CALL_POLL_MAX])
{
	unsigned count = 0;

	if (c->is_over)
		return 0;
	for (size_t i = 0; i < COUNT_OF(c->fds); i++)
		if (c->fds[i] >= 0 &&
		    (i != CALL_INPUT || !c->has_more_input || call_unsent_input(c) > 0))
			polled[count++] =
				(struct pollfd){ .fd = c->fds[i],
						 .events = i == CALL_INPUT ? POLLOUT : POLLIN };
	if (c->pid_fd >= 0)
		polled[count++] = (struct pollfd){ .fd = c->pid_fd, .events = POLLIN };
	return count;
}

static void give_input(struct call *c)
{
	const struct buf *input = &c->arguments.input;
	ssize_t n = call_unsent_input(c) > 0
			    ? write(c->fds[CALL_INPUT], input->bytes + c->input_done,
				    input->len - c->input_done)
			    : 0;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		c->input_done += (size_t)n;
	if (c->input_done == input->len && c->has_more_input) {
		buf_done(&c->arguments.input);
		buf_init(&c->arguments.input, OPERATION_CONTENT_MAX_BYTES);
		c->input_done = 0;
	}
	if (n < 0 || (c->input_done == input->len && !c->has_more_input))
		cleanup_closep(&c->fds[CALL_INPUT]);
}

void call_add_input(struct call *c, const char *bytes, size_t len)
{
	struct buf *input = &c->arguments.input;

	if (c->fds[CALL_INPUT] < 0)
		return;
	/* discard what the worker has read */
	if (call_unsent_input(c) > 0)
		memmove(input->bytes, input->bytes + c->input_done, call_unsent_input(c));
	input->len -= c->input_done;
	c->input_done = 0;
	buf_add(input, bytes, len);
}

void call_end_input(struct call *c)
{
	c->has_more_input = false;
	if (c->fds[CALL_INPUT] >= 0 && call_unsent_input(c) == 0)
		cleanup_closep(&c->fds[CALL_INPUT]);
}

size_t call_unsent_input(const struct call *c)
{
	return c->arguments.input.len - c->input_done;
}

static void take_bytes(struct call *c, enum call_stream stream, const char *bytes, size_t len)
{
	switch (stream) {
	case CALL_STDOUT:
	case CALL_STDERR:
		output_add(&c->output[stream == CALL_STDERR], bytes, len);
		if (c->on_output && !c->is_cancelled)
			c->on_output(c->context, stream, bytes, len);
		break;
	case CALL_RESULT:
		buf_add(&c->result, bytes, len);
		break;
	case CALL_NOTES:
		buf_add(&c->notes, bytes, len);
		break;
	case CALL_INPUT:
		break;
	}
}

/* Reads one piece at a time, so that a flood does not delay others; false: nothing to read now. */
static bool take_output(struct call *c, enum call_stream stream)
{
	char bytes[READ_BYTES];
	ssize_t n = read(c->fds[stream], bytes, sizeof(bytes));

	if (n > 0) {
		take_bytes(c, stream, bytes, (size_t)n);
		return true;
	}
	if (n == 0 || errno != EAGAIN)
		cleanup_closep(&c->fds[stream]);
	return false;
}

static void end(struct call *c)
{
	let_go(c);
	/* at most one pipe's content: a process left behind may write forever */
	for (unsigned stream = CALL_STDOUT; stream <= CALL_NOTES; stream++)
		for (unsigned i = 0; i < LAST_PIECES && c->fds[stream] >= 0; i++)
			if (!take_output(c, stream))
				break;
	for (size_t i = 0; i < COUNT_OF(c->fds); i++)
		cleanup_closep(&c->fds[i]);
	c->is_over = true;
}

void call_on_ready(struct call *c, const struct pollfd *polled, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!polled[i].revents)
			continue;
		if (polled[i].fd == c->pid_fd) {
			end(c);
			return;
		}
		for (unsigned stream = 0; stream < COUNT_OF(c->fds); stream++) {
			if (c->fds[stream] != polled[i].fd)
				continue;
			if (stream == CALL_INPUT)
				give_input(c);
			else
				(void)take_output(c, stream);
			break;
		}
		/* the result is the worker's last output: do not wait for its exit */
		if (c->fds[CALL_RESULT] < 0) {
			end(c);
			return;
		}
	}
}

int call_on_time(struct call *c, uint64_t now_ms)
{
	if (c->is_over)
		return -1;
	if (!c->kill_at_ms && c->deadline_ms && now_ms >= c->deadline_ms) {
		c->is_late = true;
		call_cancel(c);
	}
	if (!c->kill_at_ms)
		return c->deadline_ms ? (int)(c->deadline_ms - now_ms) : -1;
	if (now_ms < c->kill_at_ms)
		return (int)(c->kill_at_ms - now_ms);
	kill_worker(c);
	return (int)CALL_KILL_AFTER_MS;
}

void call_cancel(struct call *c)
{
	if (c->is_cancelled || c->is_over)
		return;
	c->is_cancelled = true;
	cleanup_closep(&c->lifeline_fd);
	c->kill_at_ms = clock_now_ms() + CALL_KILL_AFTER_MS;
	/* a command in a named sandbox ends with the worker that waits for it; reading undoes
	 * nothing
	 */
	if (strcmp(c->operation->name, "sandbox_exec") == 0 ||
	    c->operation->hints & OPERATION_READS_ONLY)
		kill_worker(c);
}

/* ---- the result ---- */

/* The share of a stream in the shown output: half, or what the other stream leaves. */
static uint64_t share_of(const struct call *c, unsigned stream)
{
	uint64_t own = c->output[stream].total_bytes, other = c->output[1 - stream].total_bytes;
	uint64_t half = c->shown_max_bytes / 2;

	if (!c->shown_max_bytes)
		return OUTPUT_SHOWN_MAX_BYTES;
	return own > half && other < half ? c->shown_max_bytes - other : half;
}

bool call_is_cut(const struct call *c)
{
	return output_is_cut(&c->output[0], share_of(c, 0)) ||
	       output_is_cut(&c->output[1], share_of(c, 1));
}

static void add_output(const struct call *c, unsigned stream, const char *name, json_t *result)
{
	cleanup_buf struct buf text;

	/* each byte may become three */
	buf_init(&text, 3 * OUTPUT_SHOWN_MAX_BYTES + 256);
	output_format(&c->output[stream], share_of(c, stream), &text);
	(void)json_object_set_new(result, name, json_stringn(buf_text(&text), text.len));
}

static void add_notes(json_t *result, const struct buf *notes)
{
	cleanup_buf struct buf text;

	buf_init(&text, 3 * CALL_NOTES_MAX_BYTES);
	output_add_utf8(&text, buf_text(notes), notes->len);
	if (text.len)
		(void)json_object_set_new(result, "notes", json_stringn(buf_text(&text), text.len));
}

json_t *call_take_result(struct call *c)
{
	json_t *result = json_loadb(buf_text(&c->result), c->result.len, 0, NULL);

	if (!json_is_object(result)) {
		json_decref(result);
		result = json_pack("{s:{s:s, s:s}}", "error", "code",
				   c->is_late ? "timeout" : "system", "message",
				   c->is_late        ? "the call took longer than it may"
				   : c->is_cancelled ? "the call was cancelled"
						     : "the worker process died without a result");
	}
	if (json_object_get(result, "error") == NULL &&
	    c->operation->hints & OPERATION_NEEDS_PROCESS) {
		add_output(c, 0, "stdout", result);
		add_output(c, 1, "stderr", result);
		(void)json_object_set_new(result, "stdout_bytes",
					  json_integer((json_int_t)c->output[0].total_bytes));
		(void)json_object_set_new(result, "stderr_bytes",
					  json_integer((json_int_t)c->output[1].total_bytes));
	}
	add_notes(result, &c->notes);
	hints_translate(result);
	return result;
}
