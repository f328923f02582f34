/*
 * server - the program agentkernel-mcp: the Model Context Protocol on standard input and output.
 *
 * usage: agentkernel-mcp LAUNCHER [ROW...] [--rate CALLS:WINDOW_MS]...
 *
 * One loop over standard input, standard output and the descriptors of every call. Calls run beside
 * each other, each in a worker of its own (rpc/call); nothing here waits for one. It ends when
 * standard input does, or at SIGTERM and SIGINT, after all calls have been ended with their
 * sandboxes.
 *
 * Backpressure: if a client does not read its answers, we stop reading from it.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/title.h"
#include "mcp/protocol.h"
#include "rpc/call.h"
#include "rpc/savedoutput.h"
#include "policy/ratelimit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RUNNING_MAX 32u /* concurrent calls; others wait */
#define RATES_MAX 2u
#define PROGRESS_MS 5000u
#define OUTPUT_HIGH_BYTES (32u << 20)
#define OUTPUT_MAX_BYTES (512u << 20)
#define READ_BYTES 65536
#define INPUT_MAX_BYTES (PROTOCOL_LINE_MAX_BYTES + 2 * READ_BYTES)
#define END_WAIT_MS 10000u

struct entry {
	struct protocol_call *request;
	struct call call;
	bool is_running;
	bool removes; /* internal call: removes the sandbox that a cancelled call has created */
	uint64_t progress_at_ms;
};

struct server {
	struct protocol *protocol;
	struct call_options options;
	struct buf rows;
	struct ratelimit *rates[RATES_MAX];
	unsigned rate_count;
	struct entry **entries;
	unsigned entry_count;
	struct savedoutput_table saved;
	struct buf input, output;
	size_t output_done;
	bool skips_line, is_ending;
	int signal_fd;
};

/* ---- callbacks of the protocol ---- */

static void on_send(void *context, json_t *message)
{
	struct server *s = context;
	char *text = json_dumps(message, JSON_COMPACT);

	if (text) {
		buf_add_text(&s->output, text);
		buf_add_text(&s->output, "\n");
	}
	free(text);
	json_decref(message);
}

static unsigned on_count(void *context)
{
	return ((struct server *)context)->entry_count;
}

static void free_entry(struct server *s, unsigned index)
{
	struct entry *entry = s->entries[index];

	call_done(&entry->call);
	free(entry);
	s->entries[index] = s->entries[--s->entry_count];
}

static int check_rate(struct server *s, const struct operation *o, struct err *e)
{
	uint64_t wait_ms = 0;

	for (unsigned i = 0; i < s->rate_count; i++)
		if (ratelimit_take(s->rates[i], "mcp", o->name, clock_now_ms(), &wait_ms, e) < 0)
			return -1;
	return 0;
}

static int prepare(struct server *s, struct entry *entry, struct err *e)
{
	const struct operation *o = operation_get(entry->request->operation);

	if (check_rate(s, o, e) < 0)
		return -1;
	return arguments_read(o, entry->request->arguments, &entry->call.arguments, e);
}

static void on_call(void *context, struct protocol_call *request)
{
	struct server *s = context;
	json_t *saved = request->operation == OPERATION_EXEC_OUTPUT
				? savedoutput_read(&s->saved, NULL, request->arguments)
				: NULL;
	struct entry *entry;
	struct err e = { 0 };

	if (saved) {
		protocol_answer(s->protocol, request, saved);
		return;
	}
	entry = mem_alloc(sizeof(*entry));
	*entry = (struct entry){ .request = request };
	call_init(&entry->call);
	entry->call.shown_max_bytes = OPERATION_SHOWN_MAX_BYTES;
	if (prepare(s, entry, &e) < 0) {
		protocol_answer_failure(s->protocol, request, e.msg);
		call_done(&entry->call);
		free(entry);
		return;
	}
	s->entries = mem_grow(s->entries, s->entry_count + 1, sizeof(*s->entries));
	s->entries[s->entry_count++] = entry;
}

/* A call that has not started is dropped at once; the others end with their sandboxes. */
static void cancel(struct server *s, unsigned index)
{
	struct entry *entry = s->entries[index];

	if (entry->request && !entry->is_running) {
		protocol_drop(s->protocol, entry->request);
		free_entry(s, index);
		return;
	}
	/* the sandbox is removed once it is created */
	if (entry->request && entry->request->operation == OPERATION_CREATE)
		entry->call.is_cancelled = true;
	else
		call_cancel(&entry->call);
}

static void on_cancel(void *context, const json_t *id)
{
	struct server *s = context;

	for (unsigned i = 0; i < s->entry_count; i++)
		if (s->entries[i]->request && json_equal(s->entries[i]->request->id, id)) {
			cancel(s, i);
			return;
		}
}

/* ---- calls ---- */

static void remove_created(struct server *s, const char *name)
{
	struct entry *entry = mem_alloc(sizeof(*entry));
	json_t *json = json_pack("{s:s}", "name", name);
	struct arguments arguments;
	struct err e = { 0 };

	*entry = (struct entry){ .is_running = true, .removes = true };
	call_init(&entry->call);
	arguments_init(&arguments);
	if (arguments_read(operation_get(OPERATION_REMOVE), json, &arguments, &e) < 0 ||
	    call_start(&entry->call, &s->options, operation_get(OPERATION_REMOVE), &arguments, &e) <
		    0) {
		call_done(&entry->call);
		free(entry);
	} else {
		s->entries = mem_grow(s->entries, s->entry_count + 1, sizeof(*s->entries));
		s->entries[s->entry_count++] = entry;
	}
	arguments_done(&arguments);
	json_decref(json);
}

static void finish(struct server *s, unsigned index)
{
	struct entry *entry = s->entries[index];
	json_t *result = call_take_result(&entry->call);
	struct protocol_call *request = entry->request;

	if (entry->removes) {
		json_decref(result);
	} else if (entry->call.is_cancelled) {
		if (request->operation == OPERATION_CREATE && !json_object_get(result, "error"))
			remove_created(
				s, json_string_value(json_object_get(request->arguments, "name")));
		json_decref(result);
		protocol_drop(s->protocol, request);
	} else {
		protocol_answer(s->protocol, request,
				savedoutput_keep(&s->saved, NULL, &entry->call, result));
	}
	/* entries may have been appended: the index is still valid */
	free_entry(s, index);
}

static void start_waiting(struct server *s)
{
	unsigned running = 0;

	for (unsigned i = 0; i < s->entry_count; i++)
		running += s->entries[i]->is_running;
	for (unsigned i = 0; i < s->entry_count && running < RUNNING_MAX; i++) {
		struct entry *entry = s->entries[i];
		struct arguments arguments;
		struct err e = { 0 };

		if (entry->is_running)
			continue;
		arguments = entry->call.arguments;
		arguments_init(&entry->call.arguments);
		if (call_start(&entry->call, &s->options, operation_get(entry->request->operation),
			       &arguments, &e) < 0) {
			protocol_answer_failure(s->protocol, entry->request, e.msg);
			free_entry(s, i--);
			continue;
		}
		entry->is_running = true;
		entry->progress_at_ms = clock_now_ms() + PROGRESS_MS;
		running++;
	}
}

static int shorter(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Handles timeouts; returns the milliseconds until the next one, -1: none. */
static int on_time(struct server *s)
{
	uint64_t now_ms = clock_now_ms();
	int wait_ms = -1;

	for (unsigned i = 0; i < s->entry_count; i++) {
		struct entry *entry = s->entries[i];
		char words[64];

		wait_ms = shorter(wait_ms, call_on_time(&entry->call, now_ms));
		if (!entry->is_running || entry->removes || !entry->request->progress_token ||
		    entry->call.is_cancelled)
			continue;
		if (now_ms >= entry->progress_at_ms) {
			(void)snprintf(words, sizeof(words), "running for %" PRIu64 " s",
				       (now_ms - entry->call.started_ms) / 1000);
			protocol_tell_progress(s->protocol, entry->request, words);
			entry->progress_at_ms = now_ms + PROGRESS_MS;
		}
		wait_ms = shorter(wait_ms, (int)(entry->progress_at_ms - now_ms));
	}
	return wait_ms;
}

/* ---- standard input and output ---- */

static void take_lines(struct server *s)
{
	size_t begin = 0;

	for (;;) {
		const char *end = memchr(s->input.bytes + begin, '\n', s->input.len - begin);

		if (!end)
			break;
		if (s->skips_line)
			protocol_refuse_long(s->protocol);
		else
			protocol_take(s->protocol, s->input.bytes + begin,
				      (size_t)(end - s->input.bytes) - begin);
		s->skips_line = false;
		begin = (size_t)(end - s->input.bytes) + 1;
	}
	if (begin > 0) {
		memmove(s->input.bytes, s->input.bytes + begin, s->input.len - begin);
		s->input.len -= begin;
	}
	if (s->input.len > PROTOCOL_LINE_MAX_BYTES || (s->skips_line && s->input.len > 0)) {
		s->skips_line = true; /* skip up to its end */
		buf_done(&s->input);
		buf_init(&s->input, INPUT_MAX_BYTES);
	}
}

static void on_input(struct server *s)
{
	char bytes[READ_BYTES];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->is_ending = true;
		return;
	}
	buf_add(&s->input, bytes, (size_t)n);
	take_lines(s);
}

static void on_output(struct server *s)
{
	ssize_t n = write(STDOUT_FILENO, s->output.bytes + s->output_done,
			  s->output.len - s->output_done);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		s->is_ending = true; /* the client is gone */
		s->output_done = s->output.len;
	} else {
		s->output_done += (size_t)n;
	}
	if (s->output_done == s->output.len) {
		buf_done(&s->output);
		buf_init(&s->output, OUTPUT_MAX_BYTES);
		s->output_done = 0;
	}
}

/* ---- the loop ---- */

enum slot { SLOT_INPUT, SLOT_OUTPUT, SLOT_SIGNAL, SLOT_FIRST_CALL };

static unsigned fill(const struct server *s, struct pollfd *polled)
{
	bool is_full = s->output.len - s->output_done > OUTPUT_HIGH_BYTES;
	unsigned count = SLOT_FIRST_CALL;

	assert(polled); /* there are slots even without a call */
	polled[SLOT_INPUT] = (struct pollfd){ .fd = s->is_ending || is_full ? -1 : STDIN_FILENO,
					      .events = POLLIN };
	polled[SLOT_OUTPUT] =
		(struct pollfd){ .fd = s->output.len > s->output_done ? STDOUT_FILENO : -1,
				 .events = POLLOUT };
	polled[SLOT_SIGNAL] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	for (unsigned i = 0; i < s->entry_count; i++)
		if (s->entries[i]->is_running)
			count += call_poll(&s->entries[i]->call, polled + count);
	return count;
}

static void turn(struct server *s, struct pollfd *polled, int most_ms)
{
	unsigned count, at = SLOT_FIRST_CALL;
	int wait_ms;

	start_waiting(s);
	wait_ms = shorter(on_time(s), most_ms);
	count = fill(s, polled);
	if (poll(polled, count, wait_ms) < 0)
		return;
	for (unsigned i = 0; i < s->entry_count; i++) {
		struct call *c = &s->entries[i]->call;
		struct pollfd own[CALL_POLL_MAX];
		unsigned own_count = s->entries[i]->is_running ? call_poll(c, own) : 0;

		call_on_ready(c, polled + at, own_count);
		at += own_count;
	}
	for (unsigned i = s->entry_count; i-- > 0;)
		if (s->entries[i]->is_running && s->entries[i]->call.is_over)
			finish(s, i);
	if (polled[SLOT_OUTPUT].revents)
		on_output(s);
	if (polled[SLOT_SIGNAL].revents)
		s->is_ending = true;
	if (polled[SLOT_INPUT].revents)
		on_input(s);
}

static struct pollfd *make_room(const struct server *s, struct pollfd *polled, unsigned *capacity)
{
	unsigned needed = SLOT_FIRST_CALL + (s->entry_count + RUNNING_MAX) * CALL_POLL_MAX;

	if (needed <= *capacity)
		return polled;
	*capacity = needed;
	return mem_grow(polled, needed, sizeof(*polled));
}

/* Ends every call with its sandbox; answers that are ready are still sent. */
static void end_all(struct server *s)
{
	uint64_t give_up_ms = clock_now_ms() + END_WAIT_MS;
	struct pollfd *polled = NULL;
	unsigned capacity = 0;

	for (unsigned i = s->entry_count; i-- > 0;)
		cancel(s, i);
	while ((s->entry_count > 0 || s->output.len > s->output_done) &&
	       clock_now_ms() < give_up_ms) {
		polled = make_room(s, polled, &capacity);
		turn(s, polled, 100);
	}
	free(polled);
}

static void serve(struct server *s)
{
	struct pollfd *polled = NULL;
	unsigned capacity = 0;

	while (!s->is_ending) {
		polled = make_room(s, polled, &capacity);
		turn(s, polled, -1);
	}
	free(polled);
}

/* ---- start ---- */

static bool read_rate(struct server *s, const char *text)
{
	uint64_t calls, window_ms;
	char *end;

	calls = strtoull(text, &end, 10);
	if (*end != ':' || s->rate_count == RATES_MAX || calls == 0)
		return false;
	window_ms = strtoull(end + 1, &end, 10);
	if (*end || window_ms == 0)
		return false;
	s->rates[s->rate_count++] = ratelimit_new(calls, window_ms);
	return true;
}

static bool read_words(struct server *s, char **words)
{
	if (!words[0] || !words[1])
		return false;
	s->options.launcher = words[1];
	for (words += 2; *words; words++) {
		if (strcmp(*words, "--rate") == 0) {
			if (!words[1] || !read_rate(s, words[1]))
				return false;
			words++;
			continue;
		}
		buf_add(&s->rows, *words, strlen(*words) + 1);
	}
	return true;
}

static void open_signals(struct server *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN); /* see rpc/call.h */
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	/* static, so that leak checkers do not report what it holds at the end */
	static struct server s = { .signal_fd = -1 };
	const struct protocol_handler handler = {
		.context = &s,
		.send = on_send,
		.call = on_call,
		.cancel = on_cancel,
		.count_calls = on_count,
	};

	(void)argc;
	buf_init(&s.rows, BUF_TEXT_MAX_BYTES);
	buf_init(&s.input, INPUT_MAX_BYTES);
	buf_init(&s.output, OUTPUT_MAX_BYTES);
	argv = title_init(argv);
	title_set(TITLE_MCP_SERVER, NULL);
	if (!read_words(&s, argv)) {
		(void)fprintf(stderr, "agentkernel-mcp is started by 'agentkernel mcp server'\n");
		return 125;
	}
	s.options.environ_list = environ;
	s.options.rows = &s.rows;
	open_signals(&s);
	(void)fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	(void)fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
	s.protocol = protocol_new(&handler);
	serve(&s);
	end_all(&s);
	for (unsigned i = s.entry_count; i-- > 0;)
		free_entry(&s, i);
	for (unsigned i = 0; i < s.rate_count; i++)
		ratelimit_free(s.rates[i]);
	savedoutput_done(&s.saved);
	protocol_free(s.protocol);
	return 0;
}
