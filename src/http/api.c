/*
 * api - routes, and what they answer; see api.h.
 *
 * Theory of operation. A request finds its row, is checked (key, Host, Origin, rate), and becomes
 * an exchange: a call under way for one connection. When the call is over the row's function says
 * what goes back; streams send as output comes. A client that goes away cancels; its exchange lives
 * on by itself until the errand has ended.
 *
 * Answers have an envelope: {"success": true, "data": ...} or {"success": false, "error": "..."}.
 */
#include "http/api.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "policy/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_TYPE "application/json"
#define EVENTS_LOOK_MS 200
#define EVENTS_ALIVE_LOOKS 75 /* a comment now and then keeps proxies from closing it */
#define INPUT_HIGH_BYTES (1u << 20)
#define RETRY_AFTER_S "1"
#define OUTPUT_MAX_BYTES (4u << 20) /* of "output" in an answer */

struct exchange;
typedef int args_fn(struct exchange *x, json_t *body, json_t **ret, struct err *e);
typedef void tell_fn(struct exchange *x, json_t *result);

enum route_flags {
	ROUTE_OPEN = 1 << 0,   /* needs no key */
	ROUTE_STREAM = 1 << 1, /* output goes out as it comes */
	ROUTE_BODY = 1 << 2,   /* has a JSON body */
};

struct route {
	const char *method, *pattern; /* "{}" is one part of a path, "{*}" all that is left */
	unsigned flags;
	enum operation_id operation; /* where .direct is NULL */
	args_fn *args;               /* NULL: the body as it is */
	tell_fn *tell;
	void (*direct)(struct api *a, struct connection *c);
};

struct exchange {
	struct api *api;
	struct connection *connection; /* NULL: it has gone */
	const struct route *route;
	struct call call;
	struct event *events[CALL_POLL_MAX];
	unsigned event_count;
	struct event *timer;
	char *parts[3]; /* of the path */
	unsigned part_count;
	struct buf output; /* both, as they came */
	bool is_counted, is_raw, has_begun;

	/* POST /batch/run */
	json_t *commands, *results;
	size_t next_command;
};

/* ---- answers ---- */

static void reply_json(struct connection *c, int status, json_t *value,
		       const struct connection_header *extra)
{
	char *text = json_dumps(value, JSON_COMPACT);

	connection_reply(c, status, JSON_TYPE, text ? text : "{}", text ? strlen(text) : 2, extra);
	free(text);
	json_decref(value);
}

/* Takes `data`. */
static void reply_data(struct connection *c, int status, json_t *data)
{
	reply_json(c, status, json_pack("{s:b, s:o}", "success", 1, "data", data), NULL);
}

static void reply_error(struct connection *c, int status, const char *words)
{
	reply_json(c, status, json_pack("{s:b, s:s}", "success", 0, "error", words), NULL);
}

static int status_of(const char *code)
{
	static const struct {
		const char *code;
		int status;
	} known[] = {
		{ "invalid", 400 }, { "not_found", 404 },   { "exists", 409 },
		{ "busy", 409 },    { "denied", 403 },      { "limit", 429 },
		{ "timeout", 504 }, { "unsupported", 422 }, { "remote", 502 },
	};

	for (size_t i = 0; code && i < COUNT_OF(known); i++)
		if (strcmp(known[i].code, code) == 0)
			return known[i].status;
	return 500;
}

static void reply_failure(struct connection *c, const json_t *error)
{
	reply_error(c, status_of(json_string_value(json_object_get(error, "code"))),
		    json_string_value(json_object_get(error, "message")));
}

static json_t *text_of(const struct buf *b)
{
	cleanup_buf struct buf text;

	buf_init(&text, 3 * OUTPUT_MAX_BYTES);
	output_add_utf8(&text, buf_text(b), b->len);
	return json_stringn(buf_text(&text), text.len);
}

/* ---- an exchange's end ---- */

static void exchange_free(struct exchange *x)
{
	for (unsigned i = 0; i < x->event_count; i++)
		event_free(x->events[i]);
	if (x->timer)
		event_free(x->timer);
	if (x->is_counted)
		x->api->running--;
	call_done(&x->call);
	buf_done(&x->output);
	for (unsigned i = 0; i < x->part_count; i++)
		free(x->parts[i]);
	json_decref(x->commands);
	json_decref(x->results);
	free(x);
}

static struct exchange *exchange_new(struct api *a, struct connection *c, const struct route *r)
{
	struct exchange *x = mem_alloc(sizeof(*x));

	*x = (struct exchange){ .api = a, .connection = c, .route = r };
	call_init(&x->call);
	buf_init(&x->output, OUTPUT_MAX_BYTES);
	connection_set_user(c, x);
	return x;
}

/* ---- calls under way ---- */

static void watch(struct exchange *x);

static void count_latency(struct api *a, uint64_t ms)
{
	static const unsigned bounds_ms[] = {
		2, 5, 10, 25, 50, 100, 250, 1000, 5000, 30000, 300000
	};
	size_t i = 0;

	while (i < COUNT_OF(bounds_ms) && ms > bounds_ms[i])
		i++;
	a->latency[i]++;
	a->latency_sum_s += (double)ms / 1000;
}

static void finish(struct exchange *x)
{
	json_t *result = call_take_result(&x->call);

	if (x->call.operation->hints & OPERATION_NEEDS_PROCESS)
		count_latency(x->api, clock_now_ms() - x->call.started_ms);
	if (x->is_counted)
		x->api->running--;
	x->is_counted = false;
	if (!x->connection) {
		json_decref(result);
		exchange_free(x);
		return;
	}
	x->route->tell(x, result);
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct exchange *x = context;
	const struct pollfd polled = {
		.fd = fd, .revents = (what & EV_READ ? POLLIN : 0) | (what & EV_WRITE ? POLLOUT : 0)
	};

	call_on_ready(&x->call, &polled, 1);
	if (x->connection && x->call.has_more_input &&
	    call_unsent_input(&x->call) < INPUT_HIGH_BYTES)
		connection_go_on(x->connection);
	if (x->call.is_over)
		finish(x);
	else
		watch(x);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct exchange *x = context;

	(void)fd;
	(void)what;
	(void)call_on_time(&x->call, clock_now_ms());
	watch(x);
}

/* A client that does not read is not sent more: the command waits, too. */
static bool is_full(const struct exchange *x)
{
	return x->connection && x->has_begun &&
	       connection_unsent(x->connection) > CONNECTION_UNSENT_MAX_BYTES;
}

static void watch(struct exchange *x)
{
	struct pollfd polled[CALL_POLL_MAX];
	unsigned count = call_poll(&x->call, polled);
	struct timeval later = { .tv_usec = 50000 };

	for (unsigned i = 0; i < x->event_count; i++)
		event_free(x->events[i]);
	x->event_count = 0;
	for (unsigned i = 0; i < count; i++) {
		bool is_output = polled[i].fd == x->call.fds[CALL_STDOUT] ||
				 polled[i].fd == x->call.fds[CALL_STDERR];
		struct event *event;

		if (is_output && is_full(x))
			continue;
		event = event_new(x->api->base, polled[i].fd,
				  polled[i].events & POLLOUT ? EV_WRITE : EV_READ, on_ready, x);
		event_add(event, NULL);
		x->events[x->event_count++] = event;
	}
	if (!x->call.kill_at_ms && !is_full(x))
		return;
	if (!x->timer)
		x->timer = event_new(x->api->base, -1, 0, on_timer, x);
	event_add(x->timer, &later);
}

static int start_call(struct exchange *x, const json_t *args, struct err *e)
{
	const struct operation *o = operation_get(x->route->operation);
	struct arguments arguments;

	arguments_init(&arguments);
	if (arguments_read(o, args, &arguments, e) < 0) {
		arguments_done(&arguments);
		return -1;
	}
	if (x->is_raw)
		buf_add(&arguments.rows, "param.raw=true", sizeof("param.raw=true"));
	if (x->call.has_more_input)
		arguments.has_input = true;
	if (call_start(&x->call, &x->api->options, o, &arguments, e) < 0) {
		arguments_done(&arguments);
		return -1;
	}
	arguments_done(&arguments);
	x->is_counted = true;
	x->api->running++;
	x->api->call_count++;
	watch(x);
	return 0;
}

/* ---- a command's result ---- */

static void on_combined(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct exchange *x = context;

	(void)stream;
	buf_add(&x->output, bytes, len);
}

/* What an existing client reads is "output"; the rest says more. Takes `result`. */
static json_t *command_data(struct exchange *x, json_t *result)
{
	(void)json_object_set_new(result, "output", text_of(&x->output));
	return result;
}

static void reply_exit(struct connection *c, json_t *data)
{
	int code = (int)json_integer_value(json_object_get(data, "exit_code"));
	const char *output = json_string_value(json_object_get(data, "output"));
	cleanup_free char *words = mem_format("Command exited with code %d: %s", code, output);

	(void)json_object_set_new(data, "success", json_false());
	(void)json_object_set_new(data, "error", json_string(words));
	reply_json(c, 409, data, NULL);
}

static void tell_command(struct exchange *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	struct connection *c = x->connection;
	json_t *data;

	if (error) {
		reply_failure(c, error);
		json_decref(result);
		return;
	}
	data = command_data(x, result);
	if (json_integer_value(json_object_get(data, "exit_code")) != 0)
		reply_exit(c, data);
	else
		reply_data(c, 200, data);
}

/* ---- streams ---- */

static void send_event(struct connection *c, const char *kind, json_t *data)
{
	char *text = json_dumps(data, JSON_COMPACT);
	cleanup_free char *event = mem_format("event: %s\ndata: %s\n\n", kind, text ? text : "{}");

	connection_send(c, event, strlen(event));
	free(text);
	json_decref(data);
}

static void begin_events(struct exchange *x)
{
	static const struct connection_header headers[] = { { "Cache-Control", "no-cache" },
							    { "X-Accel-Buffering", "no" },
							    { NULL, NULL } };

	if (x->has_begun)
		return;
	x->has_begun = true;
	connection_begin(x->connection, 200, "text/event-stream", headers);
}

static void on_streamed(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct exchange *x = context;
	cleanup_buf struct buf text;

	on_combined(context, stream, bytes, len);
	if (!x->connection)
		return;
	buf_init(&text, 3 * len + 1);
	output_add_utf8(&text, bytes, len);
	send_event(x->connection, "output",
		   json_pack("{s:s%, s:s}", "data", buf_text(&text), text.len, "stream",
			     stream == CALL_STDERR ? "stderr" : "stdout"));
}

static void tell_stream(struct exchange *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	int code = (int)json_integer_value(json_object_get(result, "exit_code"));

	begin_events(x);
	if (error) {
		send_event(x->connection, "error",
			   json_pack("{s:O}", "message", json_object_get(error, "message")));
	} else {
		json_t *data = json_pack("{s:i, s:b, s:O, s:O}", "exit_code", code, "success",
					 code == 0, "ended_by", json_object_get(result, "ended_by"),
					 "duration_ms", json_object_get(result, "duration_ms"));

		if (code != 0)
			(void)json_object_set_new(data, "output", text_of(&x->output));
		send_event(x->connection, "done", data);
	}
	json_decref(result);
	connection_end(x->connection);
}

/* ---- sandboxes as the contract shows them ---- */

static json_t *shown_time(json_int_t seconds)
{
	char text[TIMESTAMP_TEXT_MAX_BYTES];

	return json_string(timestamp_format((uint64_t)seconds * 1000, text));
}

static json_t *sandbox_data(const json_t *s)
{
	const char *state = json_string_value(json_object_get(s, "state"));
	json_t *labels = json_object(), *data;
	size_t index;
	json_t *label;

	json_array_foreach(json_object_get(s, "labels"), index, label)
	{
		const char *text = json_string_value(label);
		cleanup_free char *key = mem_dup_bytes(text, strcspn(text, "="));

		(void)json_object_set_new(
			labels, key, json_string(text + strlen(key) + (text[strlen(key)] == '=')));
	}
	data = json_pack("{s:O, s:O, s:s, s:s, s:o, s:o}", "name", json_object_get(s, "name"),
			 "uuid", json_object_get(s, "id"), "status",
			 state && strcmp(state, "created") == 0 ? "stopped" : state, "backend",
			 "native", "created_at",
			 shown_time(json_integer_value(json_object_get(s, "created"))), "labels",
			 labels);
	if (json_is_string(json_object_get(s, "image")))
		(void)json_object_set(data, "image", json_object_get(s, "image"));
	return data;
}

/* A failure is told here; NULL then. */
static json_t *take_success(struct exchange *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (!error)
		return result;
	reply_failure(x->connection, error);
	json_decref(result);
	return NULL;
}

static void tell_sandbox_with(struct exchange *x, json_t *result, int status)
{
	if (!take_success(x, result))
		return;
	reply_data(x->connection, status, sandbox_data(json_object_get(result, "sandbox")));
	json_decref(result);
}

static void tell_sandbox(struct exchange *x, json_t *result)
{
	tell_sandbox_with(x, result, 200);
}

static void tell_created(struct exchange *x, json_t *result)
{
	tell_sandbox_with(x, result, 201);
}

static void tell_sandboxes(struct exchange *x, json_t *result)
{
	json_t *list = json_array(), *s;
	size_t index;

	if (!take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "sandboxes"), index, s)(void)
		json_array_append_new(list, sandbox_data(s));
	reply_data(x->connection, 200, list);
	json_decref(result);
}

static void tell_words(struct exchange *x, json_t *result, const char *words)
{
	if (!take_success(x, result))
		return;
	json_decref(result);
	reply_data(x->connection, 200, json_string(words));
}

static void tell_removed(struct exchange *x, json_t *result)
{
	tell_words(x, result, "Sandbox removed");
}

static void tell_started(struct exchange *x, json_t *result)
{
	tell_words(x, result, "Sandbox started");
}

static void tell_stopped(struct exchange *x, json_t *result)
{
	tell_words(x, result, "Sandbox stopped");
}

static void tell_killed(struct exchange *x, json_t *result)
{
	tell_words(x, result, "Command killed");
}

static void tell_snapshot_gone(struct exchange *x, json_t *result)
{
	tell_words(x, result, "Snapshot deleted");
}

static void tell_file_gone(struct exchange *x, json_t *result)
{
	cleanup_free char *words = mem_format("Deleted /%s", x->parts[1]);

	tell_words(x, result, words);
}

static void tell_written(struct exchange *x, json_t *result)
{
	cleanup_free char *words = NULL;

	if (!take_success(x, result))
		return;
	words = mem_format("Wrote %" JSON_INTEGER_FORMAT " bytes to /%s",
			   json_integer_value(json_object_get(result, "bytes")), x->parts[1]);
	json_decref(result);
	reply_data(x->connection, 200, json_string(words));
}

/* The whole result as it is. */
static void tell_result(struct exchange *x, json_t *result)
{
	if (take_success(x, result))
		reply_data(x->connection, 200, result);
}

static void tell_entries(struct exchange *x, json_t *result)
{
	if (!take_success(x, result))
		return;
	reply_data(x->connection, 200, json_incref(json_object_get(result, "entries")));
	json_decref(result);
}

static void tell_extended(struct exchange *x, json_t *result)
{
	if (!take_success(x, result))
		return;
	reply_data(x->connection, 200,
		   json_pack("{s:o}", "expires_at",
			     shown_time(json_integer_value(json_object_get(result, "expires")))));
	json_decref(result);
}

/* ---- detached commands ---- */

static json_t *words_of(const char *text)
{
	json_t *list = json_array();
	cleanup_free char *copy = mem_dup(text ? text : "");
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		(void)json_array_append_new(list, json_string(word));
	return list;
}

static json_t *detached_data(const struct exchange *x, const json_t *t)
{
	bool is_running = json_is_true(json_object_get(t, "running"));
	const json_t *code = json_object_get(t, "exit_code");
	json_int_t started_s = json_integer_value(json_object_get(t, "started_ms")) / 1000;

	return json_pack("{s:O, s:s, s:o, s:O, s:s, s:o, s:o}", "id", json_object_get(t, "id"),
			 "sandbox", x->parts[0], "command",
			 words_of(json_string_value(json_object_get(t, "command"))), "pid",
			 json_object_get(t, "pid"), "status",
			 is_running                      ? "running"
			 : json_integer_value(code) == 0 ? "completed"
							 : "failed",
			 "exit_code", code ? json_incref((json_t *)(uintptr_t)code) : json_null(),
			 "started_at", shown_time(started_s));
}

static void tell_detached_list(struct exchange *x, json_t *result)
{
	json_t *list = json_array(), *t;
	size_t index;

	if (!take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "entries"), index, t)(void)
		json_array_append_new(list, detached_data(x, t));
	reply_data(x->connection, 200, list);
	json_decref(result);
}

static void tell_detached(struct exchange *x, json_t *result)
{
	size_t index;
	json_t *t;

	if (!take_success(x, result))
		return;
	json_array_foreach(json_object_get(result, "entries"), index, t)
	{
		if (strcmp(json_string_value(json_object_get(t, "id")), x->parts[1]) != 0)
			continue;
		reply_data(x->connection, 200, detached_data(x, t));
		json_decref(result);
		return;
	}
	json_decref(result);
	reply_error(x->connection, 404, "No such command");
}

static void tell_detached_started(struct exchange *x, json_t *result)
{
	const json_t *command = x->commands;

	if (!take_success(x, result))
		return;
	reply_data(x->connection, 200,
		   json_pack("{s:O, s:s, s:o, s:i, s:s, s:n, s:o}", "id",
			     json_object_get(result, "id"), "sandbox", x->parts[0], "command",
			     command ? json_incref((json_t *)(uintptr_t)command) : json_array(),
			     "pid", 0, "status", "running", "exit_code", "started_at",
			     shown_time((json_int_t)(timestamp_now_ms() / 1000))));
	json_decref(result);
}

static void tell_detached_logs(struct exchange *x, json_t *result)
{
	bool is_stderr = strstr(connection_request(x->connection)->query, "stream=stderr");

	if (!take_success(x, result))
		return;
	reply_data(x->connection, 200,
		   json_pack("{s:O}", is_stderr ? "stderr" : "stdout",
			     json_object_get(result, "output")));
	json_decref(result);
}

/* ---- snapshots ---- */

static json_t *snapshot_data(const json_t *s)
{
	const json_t *comment = json_object_get(s, "comment");

	return json_pack("{s:O, s:O, s:O, s:s, s:O, s:o}", "name",
			 json_is_string(comment) ? comment : json_object_get(s, "id"), "sandbox",
			 json_object_get(s, "sandbox"), "image_tag", json_object_get(s, "id"),
			 "backend", "native", "base_image", json_object_get(s, "image"),
			 "created_at",
			 shown_time(json_integer_value(json_object_get(s, "created"))));
}

static void tell_snapshots(struct exchange *x, json_t *result)
{
	json_t *list = json_array(), *s;
	size_t index;

	if (!take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "entries"), index, s)(void)
		json_array_append_new(list, snapshot_data(s));
	reply_data(x->connection, 200, list);
	json_decref(result);
}

static const json_t *find_snapshot(const json_t *result, const char *name)
{
	const json_t *found = NULL, *s;
	size_t index;

	json_array_foreach(json_object_get(result, "entries"), index, s)
	{
		const char *comment = json_string_value(json_object_get(s, "comment"));

		if (strcmp(json_string_value(json_object_get(s, "id")), name) == 0 ||
		    (comment && strcmp(comment, name) == 0))
			found = s;
	}
	return found;
}

static void tell_snapshot(struct exchange *x, json_t *result)
{
	const json_t *s;

	if (!take_success(x, result))
		return;
	s = find_snapshot(result, x->parts[0]);
	if (s)
		reply_data(x->connection, 200, snapshot_data(s));
	else
		reply_error(x->connection, 404, "No such snapshot");
	json_decref(result);
}

static void tell_snapshot_made(struct exchange *x, json_t *result)
{
	const char *name = x->part_count > 1 ? x->parts[1] : NULL;
	json_t *made;

	if (!take_success(x, result))
		return;
	made = json_pack("{s:O, s:O, s:o?, s:o?, s:I}", "id", json_object_get(result, "id"),
			 "sandbox", json_object_get(result, "name"), "comment",
			 name ? json_string(name) : NULL, "image", json_string("host"), "created",
			 (json_int_t)(timestamp_now_ms() / 1000));
	reply_data(x->connection, 201, snapshot_data(made));
	json_decref(made);
	json_decref(result);
}

/* Whose it is has to be looked up first: the second call follows the first. */
static const struct route restore_route;

static void tell_restore_target(struct exchange *x, json_t *result)
{
	struct err e = { 0 };
	const json_t *s;
	json_t *args;

	if (!take_success(x, result))
		return;
	s = find_snapshot(result, x->parts[0]);
	if (!s) {
		json_decref(result);
		reply_error(x->connection, 404, "No such snapshot");
		return;
	}
	args = json_pack("{s:O, s:O}", "name", json_object_get(s, "sandbox"), "id",
			 json_object_get(s, "id"));
	json_decref(result);
	call_done(&x->call);
	call_init(&x->call);
	x->route = &restore_route;
	if (start_call(x, args, &e) < 0)
		reply_error(x->connection, 500, e.msg);
	json_decref(args);
}

static const struct route restore_route = { .operation = OPERATION_RESTORE, .tell = tell_sandbox };

/* ---- files ---- */

static void tell_raw(struct exchange *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (error && !x->has_begun)
		reply_failure(x->connection, error);
	else if (!x->has_begun)
		connection_reply(x->connection, 200, "application/octet-stream", "", 0, NULL);
	else
		connection_end(x->connection);
	json_decref(result);
}

static void on_raw(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct exchange *x = context;

	if (stream != CALL_STDOUT || !x->connection)
		return;
	if (!x->has_begun)
		connection_begin(x->connection, 200, "application/octet-stream", NULL);
	x->has_begun = true;
	connection_send(x->connection, bytes, len);
}

static void tell_file(struct exchange *x, json_t *result)
{
	if (x->is_raw)
		tell_raw(x, result);
	else
		tell_result(x, result);
}

static bool wants_raw(const struct connection *c)
{
	const char *accept = head_get(&connection_request(c)->head, "accept");

	return accept && strcasecmp(accept, "application/octet-stream") == 0;
}

static json_t *file_args(const struct exchange *x)
{
	cleanup_free char *path = mem_format("/%s", x->parts[1]);

	return json_pack("{s:s, s:s}", "name", x->parts[0], "path", path);
}

static int args_file_read(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	x->is_raw = wants_raw(x->connection);
	if (x->is_raw)
		x->call.on_output = on_raw;
	else
		(void)json_object_set_new(*ret, "length",
					  json_integer(OPERATION_CONTENT_MAX_BYTES));
	return 0;
}

static int args_file_write(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	json_t *encoding = json_object_get(body, "encoding");

	*ret = file_args(x);
	if (x->call.has_more_input) {
		(void)json_object_set_new(*ret, "content", json_string(""));
		return 0;
	}
	if (!json_is_string(json_object_get(body, "content"))) {
		json_decref(*ret);
		return err_set(e, ERR_INVALID, "content: a string is expected");
	}
	(void)json_object_set(*ret, "content", json_object_get(body, "content"));
	if (encoding)
		(void)json_object_set(*ret, "encoding", encoding);
	return 0;
}

static int args_file(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	return 0;
}

/* One after the other, each a call of its own. */
static const struct route write_one_route;

static void write_next(struct exchange *x)
{
	void *iterator = json_object_iter(x->commands);
	struct err e = { 0 };
	json_t *args;

	for (size_t i = 0; iterator && i < x->next_command; i++)
		iterator = json_object_iter_next(x->commands, iterator);
	if (!iterator) {
		reply_data(x->connection, 200,
			   json_pack("{s:I}", "written", (json_int_t)x->next_command));
		return;
	}
	args = json_pack("{s:s, s:o, s:O}", "name", x->parts[0], "path",
			 json_sprintf("%s%s", json_object_iter_key(iterator)[0] == '/' ? "" : "/",
				      json_object_iter_key(iterator)),
			 "content", json_object_iter_value(iterator));
	x->next_command++;
	call_done(&x->call);
	call_init(&x->call);
	x->route = &write_one_route;
	if (start_call(x, args, &e) < 0)
		reply_error(x->connection, 400, e.msg);
	json_decref(args);
}

static void tell_one_written(struct exchange *x, json_t *result)
{
	if (!take_success(x, result))
		return;
	json_decref(result);
	write_next(x);
}

static const struct route write_one_route = { .operation = OPERATION_FILE_WRITE,
					      .tell = tell_one_written };

/* ---- arguments ---- */

static void copy_members(json_t *to, const json_t *from, const char *const *names)
{
	for (; *names; names++)
		if (json_object_get(from, *names))
			(void)json_object_set(to, *names, json_object_get(from, *names));
}

static int expect_object(const json_t *body, struct err *e)
{
	return json_is_object(body) ? 0 : err_set(e, ERR_INVALID, "the body is not an object");
}

static int args_run(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	static const char *const names[] = {
		"command", "image", "profile", "compatibility_mode", "network", "memory",
		"cwd",     "env",   "files",   "timeout_ms",         "stdin",   NULL
	};

	if (expect_object(body, e) < 0)
		return -1;
	*ret = json_object();
	copy_members(*ret, body, names);
	x->call.on_output = x->route->flags & ROUTE_STREAM ? on_streamed : on_combined;
	x->call.context = x;
	return 0;
}

/* "env" is an object, or a list of "K=V". */
static int add_env(json_t *args, const json_t *env, struct err *e)
{
	json_t *map, *entry;
	size_t index;

	if (!env)
		return 0;
	if (json_is_object(env))
		return json_object_set(args, "env", (json_t *)(uintptr_t)env);
	if (!json_is_array(env))
		return err_set(e, ERR_INVALID, "env: an object or a list is expected");
	map = json_object();
	json_array_foreach(env, index, entry)
	{
		const char *text = json_string_value(entry);
		size_t len = text ? strcspn(text, "=") : 0;
		cleanup_free char *key = text ? mem_dup_bytes(text, len) : NULL;

		if (!text || text[len] != '=') {
			json_decref(map);
			return err_set(e, ERR_INVALID, "env: 'NAME=value' is expected");
		}
		(void)json_object_set_new(map, key, json_string(text + len + 1));
	}
	(void)json_object_set_new(args, "env", map);
	return 0;
}

static int args_exec(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	static const char *const names[] = {
		"command", "cwd", "user", "timeout_ms", "stdin", NULL
	};
	json_t *args;

	if (expect_object(body, e) < 0)
		return -1;
	args = json_pack("{s:s}", "name", x->parts[0]);
	copy_members(args, body, names);
	if (x->route->operation == OPERATION_EXEC_START)
		(void)json_object_del(args, "stdin");
	if (json_object_get(body, "workdir"))
		(void)json_object_set(args, "cwd", json_object_get(body, "workdir"));
	if (json_is_true(json_object_get(body, "sudo")))
		(void)json_object_set_new(args, "user", json_string("root"));
	if (add_env(args, json_object_get(body, "env"), e) < 0) {
		json_decref(args);
		return -1;
	}
	x->commands = json_incref(json_object_get(body, "command"));
	x->call.on_output = x->route->flags & ROUTE_STREAM ? on_streamed : on_combined;
	x->call.context = x;
	*ret = args;
	return 0;
}

static int args_create(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	static const char *const names[] = {
		"name",       "image",  "profile", "compatibility_mode",
		"network",    "memory", "cwd",     "env",
		"timeout_ms", "ttl_ms", "labels",  NULL
	};
	static const char *const refused[] = { "source_url", "volumes", "secrets", "secret_files" };
	json_t *args;

	(void)x;
	if (expect_object(body, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		if (json_object_get(body, refused[i]))
			return err_set(e, ERR_UNSUPPORTED,
				       "%s: a caller cannot have what only the user can give",
				       refused[i]);
	args = json_object();
	copy_members(args, body, names);
	if (json_object_get(body, "memory_mb"))
		(void)json_object_set(args, "memory", json_object_get(body, "memory_mb"));
	*ret = args;
	return 0;
}

static int args_name(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "name", x->parts[0]);
	return 0;
}

static int args_uuid(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "uuid", x->parts[0]);
	return 0;
}

static int args_nothing(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)x;
	(void)body;
	(void)e;
	*ret = json_object();
	return 0;
}

static int args_detached(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s, s:s}", "name", x->parts[0], "id", x->parts[1]);
	if (x->route->operation != OPERATION_EXEC_OUTPUT)
		return 0;
	(void)json_object_set_new(*ret, "length", json_integer(OPERATION_CONTENT_MAX_BYTES));
	if (strstr(connection_request(x->connection)->query, "stream=stderr"))
		(void)json_object_set_new(*ret, "stream", json_string("stderr"));
	return 0;
}

static int args_extend(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	if (!json_is_string(json_object_get(body, "by")))
		return err_set(e, ERR_INVALID, "by: a duration is expected, such as '30m'");
	*ret = json_pack("{s:s, s:O}", "name", x->parts[0], "by", json_object_get(body, "by"));
	return 0;
}

static int args_snapshot(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	const json_t *name = json_object_get(body, "name");

	if (!json_is_string(json_object_get(body, "sandbox")))
		return err_set(e, ERR_INVALID, "sandbox: a string is expected");
	*ret = json_pack("{s:O}", "name", json_object_get(body, "sandbox"));
	if (json_is_string(name)) {
		(void)json_object_set(*ret, "comment", (json_t *)(uintptr_t)name);
		x->part_count = 2;
		x->parts[0] = mem_dup("");
		x->parts[1] = mem_dup(json_string_value(name));
	}
	return 0;
}

static int args_id(struct exchange *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "id", x->parts[0]);
	return 0;
}

/* ---- without a call ---- */

static void direct_health(struct api *a, struct connection *c)
{
	(void)a;
	reply_data(c, 200, json_string("ok"));
}

static void direct_stats(struct api *a, struct connection *c)
{
	reply_data(c, 200,
		   json_pack("{s:I, s:I, s:I, s:I, s:I}", "uptime_ms",
			     (json_int_t)(clock_now_ms() - a->started_ms), "connections",
			     (json_int_t)a->connections.count, "running", (json_int_t)a->running,
			     "requests", (json_int_t)a->request_count, "calls",
			     (json_int_t)a->call_count));
}

static void direct_metrics(struct api *a, struct connection *c)
{
	static const char *const bounds[] = { "0.002", "0.005", "0.01", "0.025", "0.05", "0.1",
					      "0.25",  "1",     "5",    "30",    "300",  "+Inf" };
	cleanup_buf struct buf out;
	uint64_t total = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_addf(&out,
		 "# TYPE agentkernel_requests_total counter\n"
		 "agentkernel_requests_total %" PRIu64 "\n"
		 "# TYPE agentkernel_calls_total counter\n"
		 "agentkernel_calls_total %" PRIu64 "\n"
		 "# TYPE agentkernel_refused_total counter\n"
		 "agentkernel_refused_total %" PRIu64 "\n"
		 "# TYPE agentkernel_calls_running gauge\n"
		 "agentkernel_calls_running %u\n"
		 "# TYPE agentkernel_connections gauge\n"
		 "agentkernel_connections %u\n"
		 "# TYPE agentkernel_command_seconds histogram\n",
		 a->request_count, a->call_count, a->refused_count, a->running,
		 a->connections.count);
	for (size_t i = 0; i < COUNT_OF(bounds); i++) {
		total += a->latency[i];
		buf_addf(&out, "agentkernel_command_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
			 bounds[i], total);
	}
	buf_addf(&out,
		 "agentkernel_command_seconds_sum %f\nagentkernel_command_seconds_count %" PRIu64
		 "\n",
		 a->latency_sum_s, total);
	connection_reply(c, 200, "text/plain; version=0.0.4", buf_text(&out), out.len, NULL);
}

static void direct_openapi(struct api *a, struct connection *c);
static void direct_batch(struct api *a, struct connection *c);
static void direct_write_files(struct api *a, struct connection *c);
static void direct_events(struct api *a, struct connection *c);

/* ---- the routes ---- */

static const struct route routes[] = {
	{ "GET", "/health", ROUTE_OPEN, .direct = direct_health },
	{ "GET", "/stats", ROUTE_OPEN, .direct = direct_stats },
	{ "GET", "/status", ROUTE_OPEN, .direct = direct_stats },
	{ "GET", "/metrics", ROUTE_OPEN, .direct = direct_metrics },
	{ "GET", "/openapi.json", 0, .direct = direct_openapi },
	{ "GET", "/events", 0, .direct = direct_events },
	{ "POST", "/run", ROUTE_BODY, OPERATION_RUN, args_run, tell_command },
	{ "POST", "/run/stream", ROUTE_BODY | ROUTE_STREAM, OPERATION_RUN, args_run, tell_stream },
	{ "POST", "/batch/run", ROUTE_BODY, .direct = direct_batch },
	{ "GET", "/sandboxes", 0, OPERATION_LIST, args_nothing, tell_sandboxes },
	{ "POST", "/sandboxes", ROUTE_BODY, OPERATION_CREATE, args_create, tell_created },
	{ "GET", "/sandboxes/by-uuid/{}", 0, OPERATION_INFO, args_uuid, tell_sandbox },
	{ "GET", "/sandboxes/{}", 0, OPERATION_INFO, args_name, tell_sandbox },
	{ "DELETE", "/sandboxes/{}", 0, OPERATION_REMOVE, args_name, tell_removed },
	{ "POST", "/sandboxes/{}/start", 0, OPERATION_START, args_name, tell_started },
	{ "POST", "/sandboxes/{}/stop", 0, OPERATION_STOP, args_name, tell_stopped },
	{ "POST", "/sandboxes/{}/exec", ROUTE_BODY, OPERATION_EXEC, args_exec, tell_command },
	{ "POST", "/sandboxes/{}/exec/stream", ROUTE_BODY | ROUTE_STREAM, OPERATION_EXEC, args_exec,
	  tell_stream },
	{ "POST", "/sandboxes/{}/exec/detach", ROUTE_BODY, OPERATION_EXEC_START, args_exec,
	  tell_detached_started },
	{ "GET", "/sandboxes/{}/exec/detached", 0, OPERATION_EXEC_LIST, args_name,
	  tell_detached_list },
	{ "GET", "/sandboxes/{}/exec/detached/{}", 0, OPERATION_EXEC_LIST, args_name,
	  tell_detached },
	{ "GET", "/sandboxes/{}/exec/detached/{}/logs", 0, OPERATION_EXEC_OUTPUT, args_detached,
	  tell_detached_logs },
	{ "DELETE", "/sandboxes/{}/exec/detached/{}", 0, OPERATION_EXEC_KILL, args_detached,
	  tell_killed },
	{ "POST", "/sandboxes/{}/files", ROUTE_BODY, .direct = direct_write_files },
	{ "GET", "/sandboxes/{}/files/{*}", 0, OPERATION_FILE_READ, args_file_read, tell_file },
	{ "PUT", "/sandboxes/{}/files/{*}", ROUTE_BODY, OPERATION_FILE_WRITE, args_file_write,
	  tell_written },
	{ "DELETE", "/sandboxes/{}/files/{*}", 0, OPERATION_FILE_REMOVE, args_file,
	  tell_file_gone },
	{ "GET", "/sandboxes/{}/logs", 0, OPERATION_AUDIT, args_name, tell_entries },
	{ "POST", "/sandboxes/{}/extend", ROUTE_BODY, OPERATION_EXTEND, args_extend,
	  tell_extended },
	{ "GET", "/snapshots", 0, OPERATION_CHECKPOINT_LIST, args_nothing, tell_snapshots },
	{ "POST", "/snapshots", ROUTE_BODY, OPERATION_CHECKPOINT, args_snapshot,
	  tell_snapshot_made },
	{ "GET", "/snapshots/{}", 0, OPERATION_CHECKPOINT_LIST, args_nothing, tell_snapshot },
	{ "DELETE", "/snapshots/{}", 0, OPERATION_CHECKPOINT_REMOVE, args_id, tell_snapshot_gone },
	{ "POST", "/snapshots/{}/restore", 0, OPERATION_CHECKPOINT_LIST, args_nothing,
	  tell_restore_target },
};

/* Takes the parts of the path out; false: it is another path. */
static bool matches(const char *pattern, const char *path, char *parts[3], unsigned *ret_count)
{
	unsigned count = 0;

	while (*pattern) {
		if (strcmp(pattern, "{*}") == 0) {
			if (!*path)
				break;
			parts[count++] = mem_dup(path);
			*ret_count = count;
			return true;
		}
		if (strncmp(pattern, "{}", 2) == 0) {
			size_t len = strcspn(path, "/");

			if (len == 0 || count == 3)
				break;
			parts[count++] = mem_dup_bytes(path, len);
			pattern += 2;
			path += len;
			continue;
		}
		if (*pattern != *path)
			break;
		pattern++;
		path++;
	}
	if (*pattern || *path) {
		while (count > 0)
			free(parts[--count]);
		return false;
	}
	*ret_count = count;
	return true;
}

/* NULL: none; *ret_allowed tells which methods the path has then. */
static const struct route *find_route(const struct connection_request *r, char *parts[3],
				      unsigned *ret_count, struct buf *ret_allowed)
{
	for (size_t i = 0; i < COUNT_OF(routes); i++) {
		if (!matches(routes[i].pattern, r->path, parts, ret_count))
			continue;
		if (strcmp(routes[i].method, r->head.method) == 0)
			return &routes[i];
		while (*ret_count > 0)
			free(parts[--*ret_count]);
		buf_addf(ret_allowed, "%s%s", ret_allowed->len ? ", " : "", routes[i].method);
	}
	return NULL;
}

/* ---- who may ask ---- */

/* Takes as long for a wrong key as for a right one. */
static bool is_same(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	unsigned char differs = a_len != b_len;

	for (size_t i = 0; i < b_len; i++)
		differs |= (unsigned char)(b[i] ^ (i < a_len ? a[i] : 0));
	return differs == 0;
}

static const char *check_key(const struct api *a, const struct connection *c)
{
	const char *given = head_get(&connection_request(c)->head, "authorization");
	bool is_known = false;

	if (a->key_count == 0 || connection_is_trusted(c))
		return NULL;
	if (!given)
		return "Missing Authorization header";
	if (strncasecmp(given, "Bearer ", 7) != 0)
		return "Invalid authorization format. Use: Bearer <api_key>";
	for (unsigned i = 0; i < a->key_count; i++)
		is_known |= is_same(given + 7, a->keys[i]);
	return is_known ? NULL : "Invalid API key";
}

static bool is_local_name(const char *text)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(text, names[i], len) == 0 &&
		    (text[len] == '\0' || text[len] == ':'))
			return true;
	}
	return false;
}

/*
 * A web page in the user's browser can reach this machine's loopback, under a name of its own
 * choosing. Without keys, only our own names are answered; a page of another origin never is.
 */
static const char *check_origin(const struct api *a, const struct connection *c)
{
	const struct head *h = &connection_request(c)->head;
	const char *host = head_get(h, "host"), *origin = head_get(h, "origin");
	const char *after = origin ? strstr(origin, "://") : NULL;

	if (connection_is_trusted(c))
		return NULL;
	if (a->key_count == 0 && host && !is_local_name(host))
		return "This Host is not ours";
	if (origin && (!after || !is_local_name(after + 3)))
		return "Requests of this origin are not allowed";
	return NULL;
}

static enum connection_body refuse(struct connection *c, int status, const char *words)
{
	reply_error(c, status, words);
	return CONNECTION_REFUSED;
}

static void on_input_pause(struct exchange *x);

static enum connection_body on_head(struct connection *c, void *context)
{
	struct api *a = context;
	const struct connection_request *r = connection_request(c);
	const char *type = head_get(&r->head, "content-type");
	char *parts[3];
	unsigned part_count = 0;
	cleanup_buf struct buf allowed;
	const struct route *route;
	const char *why;
	struct exchange *x;

	buf_init(&allowed, BUF_TEXT_MAX_BYTES);
	a->request_count++;
	why = check_origin(a, c);
	if (why)
		return refuse(c, 403, why);
	route = find_route(r, parts, &part_count, &allowed);
	if (route && !(route->flags & ROUTE_OPEN)) {
		why = check_key(a, c);
		if (why) {
			while (part_count > 0)
				free(parts[--part_count]);
			return refuse(c, 401, why);
		}
	}
	if (!route && allowed.len) {
		const struct connection_header extra[] = { { "Allow", buf_text(&allowed) },
							   { NULL, NULL } };

		reply_json(c, 405,
			   json_pack("{s:b, s:s}", "success", 0, "error", "Method not allowed"),
			   extra);
		return CONNECTION_REFUSED;
	}
	if (!route)
		return refuse(c, 404, "Not found");
	x = exchange_new(a, c, route);
	x->part_count = part_count;
	for (unsigned i = 0; i < part_count; i++)
		x->parts[i] = parts[i];
	if (strcmp(r->head.method, "PUT") == 0 && type &&
	    strcasecmp(type, "application/octet-stream") == 0) {
		x->call.has_more_input = true;
		return CONNECTION_HAND_ON;
	}
	return CONNECTION_COLLECT;
}

/* ---- requests ---- */

static int check_rate(struct api *a, const struct operation *o, uint64_t *ret_wait_ms,
		      struct err *e)
{
	for (unsigned i = 0; i < a->rate_count; i++)
		if (ratelimit_take(a->rates[i], "http", o->name, clock_now_ms(), ret_wait_ms, e) <
		    0)
			return -1;
	return 0;
}

static void reply_busy(struct api *a, struct connection *c, const char *words, uint64_t wait_ms)
{
	cleanup_free char *seconds = mem_format("%" PRIu64, wait_ms / 1000 + 1);
	const struct connection_header extra[] = { { "Retry-After", seconds }, { NULL, NULL } };

	a->refused_count++;
	reply_json(c, 429, json_pack("{s:b, s:s}", "success", 0, "error", words), extra);
}

/* The body as JSON; false: it was answered. */
static bool read_body(struct connection *c, json_t **ret)
{
	const struct buf *body = &connection_request(c)->body;
	json_error_t why;

	*ret = json_loadb(buf_text(body), body->len, JSON_ALLOW_NUL, &why);
	if (!*ret) {
		cleanup_free char *words = mem_format("Invalid JSON: line %d, column %d: %s",
						      why.line, why.column, why.text);

		reply_error(c, 400, words);
		return false;
	}
	return true;
}

static void start_stream(struct exchange *x, const json_t *args)
{
	const json_t *command = json_object_get(args, "command");
	char time[TIMESTAMP_TEXT_MAX_BYTES];

	begin_events(x);
	send_event(x->connection, "started",
		   json_pack("{s:O, s:b, s:s}", "command", command, "fast", 1, "timestamp",
			     timestamp_format(timestamp_now_ms(), time)));
}

static void on_request(struct connection *c, void *context)
{
	struct api *a = context;
	struct exchange *x = connection_user(c);
	const struct operation *o = operation_get(x->route->operation);
	json_t *body = NULL, *args = NULL;
	uint64_t wait_ms = 0;
	struct err e = { 0 };

	if (x->route->direct) {
		x->route->direct(a, c);
		return;
	}
	if (a->running >= API_RUNNING_MAX) {
		reply_busy(a, c, "Too many calls at once", 0);
		return;
	}
	if (check_rate(a, o, &wait_ms, &e) < 0) {
		reply_busy(a, c, e.msg, wait_ms);
		return;
	}
	if (x->route->flags & ROUTE_BODY && !x->call.has_more_input && !read_body(c, &body))
		return;
	x->call.context = x;
	if (x->route->args(x, body, &args, &e) < 0) {
		reply_error(c, status_of(e.code == ERR_UNSUPPORTED ? "unsupported" : "invalid"),
			    e.msg);
	} else {
		if (x->route->flags & ROUTE_STREAM && json_object_get(args, "command"))
			start_stream(x, args);
		if (start_call(x, args, &e) < 0) {
			if (x->has_begun) {
				send_event(c, "error", json_pack("{s:s}", "message", e.msg));
				connection_end(c);
			} else {
				reply_error(c,
					    e.code == ERR_INVALID ? 400
					    : e.code == ERR_LIMIT ? 413
								  : 500,
					    e.msg);
			}
		}
	}
	json_decref(args);
	json_decref(body);
}

static void on_input_pause(struct exchange *x)
{
	watch(x);
}

static bool on_body(struct connection *c, const char *bytes, size_t len)
{
	struct exchange *x = connection_user(c);

	if (!x || x->call.is_over)
		return true;
	if (len == 0)
		call_end_input(&x->call);
	else
		call_add_input(&x->call, bytes, len);
	on_input_pause(x);
	return call_unsent_input(&x->call) < INPUT_HIGH_BYTES;
}

/* Its answer is complete, or the client has gone. */
static void on_gone(struct connection *c)
{
	struct exchange *x = connection_user(c);

	if (!x)
		return;
	connection_set_user(c, NULL);
	x->connection = NULL;
	if (x->call.pid <= 0 || x->call.is_over) {
		exchange_free(x);
		return;
	}
	call_end_input(&x->call);
	call_cancel(&x->call);
	watch(x);
}

struct connection_handler api_handler(struct api *a)
{
	return (struct connection_handler){ .on_head = on_head,
					    .on_request = on_request,
					    .on_body = on_body,
					    .on_gone = on_gone,
					    .context = a };
}

/* ---- several at once ---- */

static const struct route batch_route;

static void run_next(struct exchange *x)
{
	json_t *item = json_array_get(x->commands, x->next_command);
	struct err e = { 0 };
	json_t *args;

	if (!item) {
		reply_data(x->connection, 200, json_pack("{s:O}", "results", x->results));
		return;
	}
	x->next_command++;
	args = json_pack("{s:O?}", "command", json_object_get(item, "command"));
	call_done(&x->call);
	call_init(&x->call);
	buf_done(&x->output);
	buf_init(&x->output, OUTPUT_MAX_BYTES);
	x->call.on_output = on_combined;
	x->call.context = x;
	x->route = &batch_route;
	if (start_call(x, args, &e) < 0) {
		(void)json_array_append_new(x->results,
					    json_pack("{s:n, s:s}", "output", "error", e.msg));
		json_decref(args);
		run_next(x);
		return;
	}
	json_decref(args);
}

static void tell_one_run(struct exchange *x, json_t *result)
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
			json_pack("{s:o, s:o, s:i}", "output", text_of(&x->output), "error",
				  code ? json_sprintf("Command exited with code %d", code)
				       : json_null(),
				  "exit_code", code));
	json_decref(result);
	run_next(x);
}

static const struct route batch_route = { .operation = OPERATION_RUN, .tell = tell_one_run };

static void direct_batch(struct api *a, struct connection *c)
{
	struct exchange *x = connection_user(c);
	json_t *body = NULL, *commands;

	(void)a;
	if (!read_body(c, &body))
		return;
	commands = json_object_get(body, "commands");
	if (!json_is_array(commands) || json_array_size(commands) > API_BATCH_MAX) {
		json_decref(body);
		reply_error(c, 400, "commands: a list is expected, of at most 64");
		return;
	}
	x->commands = json_incref(commands);
	x->results = json_array();
	json_decref(body);
	run_next(x);
}

static void direct_write_files(struct api *a, struct connection *c)
{
	struct exchange *x = connection_user(c);
	json_t *body = NULL, *files;

	(void)a;
	if (!read_body(c, &body))
		return;
	files = json_object_get(body, "files");
	if (!json_is_object(files)) {
		json_decref(body);
		reply_error(c, 400, "files: an object is expected");
		return;
	}
	x->commands = json_incref(files);
	json_decref(body);
	write_next(x);
}

/* ---- the audit log as it grows ---- */

struct tail {
	struct exchange *exchange;
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
		connection_send(t->exchange->connection, event, strlen(event));
		line = end + 1;
	}
}

static void on_tail(evutil_socket_t fd, short what, void *context)
{
	struct tail *t = context;
	struct exchange *x = t->exchange;
	struct timeval later = { .tv_usec = EVENTS_LOOK_MS * 1000 };

	(void)fd;
	(void)what;
	if (!x->connection || x->api->connections.is_draining) {
		struct connection *c = x->connection;

		tail_done(t);
		x->call.pid = 0;
		if (c)
			connection_end(c);
		else
			exchange_free(x);
		return;
	}
	if (connection_unsent(x->connection) < CONNECTION_UNSENT_MAX_BYTES)
		send_lines(t, x->api->audit_path);
	if (++t->looks % EVENTS_ALIVE_LOOKS == 0)
		connection_send(x->connection, ": alive\n\n", 9);
	event_add(t->timer, &later);
}

/* From now on, or from where Last-Event-ID says that a client left off. */
static void direct_events(struct api *a, struct connection *c)
{
	struct exchange *x = connection_user(c);
	const char *last = head_get(&connection_request(c)->head, "last-event-id");
	struct timeval now = { 0 };
	struct tail *t = mem_alloc(sizeof(*t));
	struct stat st;

	*t = (struct tail){ .exchange = x };
	t->offset = last                            ? (off_t)strtoll(last, NULL, 10)
		    : stat(a->audit_path, &st) == 0 ? st.st_size
						    : 0;
	t->timer = event_new(a->base, -1, 0, on_tail, t);
	x->call.pid = -1; /* lives until the timer sees that the client has gone */
	begin_events(x);
	connection_send(c, ": begun\n\n", 9);
	event_add(t->timer, &now);
}

/* ---- the description of it all ---- */

static json_t *path_parameters(const char *pattern)
{
	json_t *list = json_array();
	unsigned number = 0;

	for (const char *at = pattern; (at = strchr(at, '{')); at++)
		(void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s}}", "name",
							    at[1] == '*' ? "path"
							    : number++   ? "id"
									 : "name",
							    "in", "path", "required", 1, "schema",
							    "type", "string"));
	return list;
}

static void name_pattern(const char *pattern, struct buf *out)
{
	unsigned number = 0;

	for (; *pattern; pattern++) {
		if (*pattern != '{') {
			buf_add(out, pattern, 1);
			continue;
		}
		buf_addf(out, "{%s}", pattern[1] == '*' ? "path" : number++ ? "id" : "name");
		pattern = strchr(pattern, '}');
	}
}

static json_t *describe(const struct route *r)
{
	const struct operation *o = operation_get(r->operation);
	json_t *d =
		json_pack("{s:o, s:{s:{s:s}, s:{s:s}}}", "parameters", path_parameters(r->pattern),
			  "responses", "200", "description", "as asked for", "default",
			  "description", "an object with success = false and an error in words");

	(void)json_object_set_new(d, "summary", json_string(r->direct ? r->pattern : o->title));
	if (!r->direct)
		(void)json_object_set_new(d, "description", json_string(o->help));
	if (r->flags & ROUTE_BODY && !r->direct)
		(void)json_object_set_new(d, "requestBody",
					  json_pack("{s:{s:{s:o}}}", "content", JSON_TYPE, "schema",
						    arguments_schema(o)));
	return d;
}

static void direct_openapi(struct api *a, struct connection *c)
{
	json_t *paths = json_object();

	(void)a;
	for (size_t i = 0; i < COUNT_OF(routes); i++) {
		cleanup_free char *method = mem_dup(routes[i].method);
		cleanup_buf struct buf path;
		json_t *item;

		buf_init(&path, BUF_TEXT_MAX_BYTES);
		name_pattern(routes[i].pattern, &path);
		item = json_object_get(paths, buf_text(&path));
		if (!item) {
			item = json_object();
			(void)json_object_set_new(paths, buf_text(&path), item);
		}
		for (char *m = method; *m; m++)
			*m = (char)(*m | 0x20);
		(void)json_object_set_new(item, method, describe(&routes[i]));
	}
	reply_json(c, 200,
		   json_pack("{s:s, s:{s:s, s:s}, s:o}", "openapi", "3.1.0", "info", "title",
			     "agentkernel", "version", AGENTKERNEL_VERSION, "paths", paths),
		   NULL);
}
