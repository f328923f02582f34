/* direct - routes that are answered here, or by several calls; see direct.h. */
#include "http/direct.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS_LOOK_MS 200
#define EVENTS_ALIVE_LOOKS 75 /* a comment now and then keeps proxies from closing it */

/* ---- without a call ---- */

void direct_health(struct api *a, struct connection *c)
{
	(void)a;
	webcall_reply_data(c, 200, json_string("ok"));
}

void direct_stats(struct api *a, struct connection *c)
{
	webcall_reply_data(c, 200,
			   json_pack("{s:I, s:I, s:I, s:I, s:I}", "uptime_ms",
				     (json_int_t)(clock_now_ms() - a->started_ms), "connections",
				     (json_int_t)a->connections.count, "running",
				     (json_int_t)a->running, "requests",
				     (json_int_t)a->request_count, "calls",
				     (json_int_t)a->call_count));
}

/* ---- several at once ---- */

/* One after the other, each a call of its own. */
static const struct route write_one_route;

static void write_next(struct webcall *x)
{
	void *iterator = json_object_iter(x->commands);
	struct err e = { 0 };
	uint64_t wait_ms = 0;
	json_t *args;

	for (size_t i = 0; iterator && i < x->next_command; i++)
		iterator = json_object_iter_next(x->commands, iterator);
	if (!iterator) {
		webcall_reply_data(x->connection, 200,
				   json_pack("{s:I}", "written", (json_int_t)x->next_command));
		return;
	}
	args = json_pack("{s:s, s:o, s:O}", "name", x->parts[0], "path",
			 json_sprintf("%s%s", json_object_iter_key(iterator)[0] == '/' ? "" : "/",
				      json_object_iter_key(iterator)),
			 "content", json_object_iter_value(iterator));
	x->next_command++;
	running_done(&x->running);
	webcall_prepare(x);
	x->route = &write_one_route;
	if (webcall_check_rate(x->api, x->owner, operation_get(x->route->operation), &wait_ms, &e) <
		    0 ||
	    webcall_start(x, args, &e) < 0)
		webcall_reply_error(x->connection, e.code == ERR_LIMIT ? 429 : 400, e.msg);
	json_decref(args);
}

static void tell_one_written(struct webcall *x, json_t *result)
{
	if (!webcall_take_success(x, result))
		return;
	json_decref(result);
	write_next(x);
}

static const struct route write_one_route = { .operation = OPERATION_FILE_WRITE,
					      .tell = tell_one_written };

static const struct route batch_route;

static void run_next(struct webcall *x)
{
	json_t *item = json_array_get(x->commands, x->next_command);
	struct err e = { 0 };
	uint64_t wait_ms = 0;
	json_t *args;

	if (!item) {
		webcall_reply_data(x->connection, 200, json_pack("{s:O}", "results", x->results));
		return;
	}
	x->next_command++;
	args = json_pack("{s:O?}", "command", json_object_get(item, "command"));
	running_done(&x->running);
	webcall_prepare(x);
	buf_done(&x->output);
	buf_init(&x->output, WEBCALL_OUTPUT_MAX_BYTES);
	x->running.call.on_output = webcall_on_combined;
	x->route = &batch_route;
	if (webcall_check_rate(x->api, x->owner, operation_get(x->route->operation), &wait_ms, &e) <
		    0 ||
	    webcall_start(x, args, &e) < 0) {
		(void)json_array_append_new(x->results,
					    json_pack("{s:n, s:s}", "output", "error", e.msg));
		json_decref(args);
		run_next(x);
		return;
	}
	json_decref(args);
}

static void tell_one_run(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	int code = (int)json_integer_value(json_object_get(result, "exit_code"));

	if (error)
		(void)json_array_append_new(x->results,
					    json_pack("{s:n, s:O}", "output", "error",
						      json_object_get(error, "message")));
	else
		(void)json_array_append_new(
			x->results,
			json_pack("{s:o, s:o, s:i}", "output", webcall_text(&x->output), "error",
				  code ? json_sprintf("Command exited with code %d", code)
				       : json_null(),
				  "exit_code", code));
	json_decref(result);
	run_next(x);
}

static const struct route batch_route = { .operation = OPERATION_RUN, .tell = tell_one_run };

void direct_batch(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	json_t *body = NULL, *commands;

	(void)a;
	if (!webcall_read_body(c, &body))
		return;
	commands = json_object_get(body, "commands");
	if (!json_is_array(commands) || json_array_size(commands) > API_BATCH_MAX) {
		json_decref(body);
		webcall_reply_error(c, 400, "commands: a list is expected, of at most 64");
		return;
	}
	x->commands = json_incref(commands);
	x->results = json_array();
	json_decref(body);
	run_next(x);
}

void direct_write_files(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	json_t *body = NULL, *files;

	(void)a;
	if (!webcall_read_body(c, &body))
		return;
	files = json_object_get(body, "files");
	if (!json_is_object(files) || json_object_size(files) > OPERATION_FILES_MAX) {
		json_decref(body);
		webcall_reply_error(c, 400, "files: an object is expected, of at most 256");
		return;
	}
	x->commands = json_incref(files);
	json_decref(body);
	write_next(x);
}

/* ---- the audit log as it grows ---- */

struct tail {
	struct webcall *webcall;
	struct event *timer;
	off_t offset;
	unsigned looks;
};

static void tail_done(struct tail *t)
{
	event_free(t->timer);
	free(t);
}

static void send_lines(struct tail *t, const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char bytes[65536];
	struct stat st;
	ssize_t n;
	char *line = bytes, *end;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (st.st_size < t->offset)
		t->offset = 0; /* a new file took its place */
	n = pread(fd, bytes, sizeof(bytes) - 1, t->offset);
	if (n <= 0)
		return;
	bytes[n] = '\0';
	while ((end = strchr(line, '\n'))) {
		cleanup_free char *event = NULL;

		*end = '\0';
		t->offset += end + 1 - line;
		event = mem_format("id: %lld\nevent: audit\ndata: %s\n\n", (long long)t->offset,
				   line);
		connection_send(t->webcall->connection, event, strlen(event));
		line = end + 1;
	}
}

static void on_tail(evutil_socket_t fd, short what, void *context)
{
	struct tail *t = context;
	struct webcall *x = t->webcall;
	struct timeval later = { .tv_usec = EVENTS_LOOK_MS * 1000 };

	(void)fd;
	(void)what;
	if (!x->connection || x->api->connections.is_draining) {
		struct connection *c = x->connection;

		tail_done(t);
		x->is_tailing = false;
		if (c)
			connection_end(c);
		else
			webcall_free(x);
		return;
	}
	if (connection_unsent(x->connection) < CONNECTION_UNSENT_MAX_BYTES)
		send_lines(t, x->api->audit_path);
	if (++t->looks % EVENTS_ALIVE_LOOKS == 0)
		connection_send(x->connection, ": alive\n\n", 9);
	event_add(t->timer, &later);
}

/* From now on, or from where Last-Event-ID says that a client left off. */
void direct_events(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	const char *last = head_get(&connection_request(c)->head, "last-event-id");
	struct timeval now = { 0 };
	struct tail *t = mem_alloc(sizeof(*t));
	struct stat st;

	*t = (struct tail){ .webcall = x };
	t->offset = last                            ? (off_t)strtoll(last, NULL, 10)
		    : stat(a->audit_path, &st) == 0 ? st.st_size
						    : 0;
	t->timer = event_new(a->base, -1, 0, on_tail, t);
	x->is_tailing = true; /* lives until the timer sees that the client has gone */
	webcall_begin_events(x);
	connection_send(c, ": begun\n\n", 9);
	event_add(t->timer, &now);
}
