/* direct - routes answered without a call, or by several calls; see direct.h. */
#include "http/direct.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS_LOOK_MS 200
#define EVENTS_ALIVE_LOOKS 75 /* an occasional comment keeps proxies from closing the stream */

/* ---- without a call ---- */

/* Why a call would be refused now; NULL: it would be accepted. */
static const char *find_obstacle(struct api *a)
{
	const struct slots_place any = { .kind = SLOTS_CALL };
	struct err ignored;

	if (a->connections.is_draining)
		return "the server is ending";
	if (slots_check(&a->slots, &any, &ignored) < 0)
		return "all places for calls are taken";
	if (access(a->options.launcher, X_OK) < 0)
		return "the program agentkernel is gone or cannot be executed";
	if (access(a->state_path, W_OK | X_OK) < 0 && errno != ENOENT)
		return "the state directory cannot be written";
	return NULL;
}

/* The process is alive; /ready tells whether it can serve calls. */
void direct_health(struct api *a, struct connection *c)
{
	const struct slots_place any = { .kind = SLOTS_CALL };
	struct err ignored;

	webcall_reply_data(c, 200,
			   json_string(slots_check(&a->slots, &any, &ignored) < 0 ? "busy" : "ok"));
}

void direct_ready(struct api *a, struct connection *c)
{
	const char *obstacle = find_obstacle(a);

	if (obstacle)
		webcall_reply_error(c, 503, obstacle);
	else
		webcall_reply_data(c, 200, json_string("ready"));
}

void direct_stats(struct api *a, struct connection *c)
{
	webcall_reply_data(c, 200,
			   json_pack("{s:I, s:I, s:I, s:I, s:I}", "uptime_ms",
				     (json_int_t)(clock_now_ms() - a->started_ms), "connections",
				     (json_int_t)a->connections.count, "running",
				     (json_int_t)a->slots.count[SLOTS_CALL], "requests",
				     (json_int_t)a->request_count, "calls",
				     (json_int_t)a->call_count));
}

/* ---- several at once ---- */

/* Writes the files one after the other, each with its own call. */
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
			 json_sprintf("%s%s",
				      strchr("/~", json_object_iter_key(iterator)[0]) ? "" : "/",
				      json_object_iter_key(iterator)),
			 "content", json_object_iter_value(iterator));
	x->next_command++;
	eventcall_done(&x->running);
	webcall_prepare(x);
	x->route = &write_one_route;
	if (webcall_check_rate(x->api, x->owner, operation_get(x->route->operation), &wait_ms, &e) <
		    0 ||
	    webcall_start(x, args, &e) < 0)
		webcall_reply_error(x->connection,
				    e.code == ERR_LIMIT || e.code == ERR_BUSY ? 429 : 400, e.msg);
	json_decref(args);
}

static void encode_one_written(struct webcall *x, json_t *result)
{
	if (!webcall_take_success(x, result))
		return;
	json_decref(result);
	write_next(x);
}

static const struct route write_one_route = { .operation = OPERATION_FILE_WRITE,
					      .tell = encode_one_written };

static const struct route batch_route;

static void run_next(struct webcall *x)
{
	json_t *item = json_array_get(x->commands, x->next_command);
	struct err e = { 0 };
	uint64_t wait_ms = 0;
	json_t *args = NULL;

	if (!item) {
		webcall_reply_data(x->connection, 200, json_pack("{s:O}", "results", x->results));
		return;
	}
	x->next_command++;
	eventcall_done(&x->running);
	webcall_prepare(x);
	buf_done(&x->output);
	buf_init(&x->output, WEBCALL_OUTPUT_MAX_BYTES);
	x->running.call.on_output = webcall_on_combined;
	x->route = &batch_route;
	if (decode_batched(item, &args, &e) < 0 ||
	    webcall_check_rate(x->api, x->owner, operation_get(x->route->operation), &wait_ms, &e) <
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

static void encode_one_run(struct webcall *x, json_t *result)
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

static const struct route batch_route = { .operation = OPERATION_RUN, .tell = encode_one_run };

/* Returns the member of that name, a new reference; NULL: an error was sent. */
static json_t *read_only_member(struct connection *c, const char *name, json_type kind, size_t max)
{
	json_t *body = NULL, *found = NULL;
	struct err e = { 0 };

	if (!webcall_read_body(c, &body))
		return NULL;
	if (decode_expect_only(body, name, kind, max, &found, &e) < 0)
		webcall_reply_error(c, 400, e.msg);
	json_incref(found);
	json_decref(body);
	return found;
}

void direct_batch(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	json_t *commands = read_only_member(c, "commands", JSON_ARRAY, API_BATCH_MAX);

	(void)a;
	if (!commands)
		return;
	x->commands = commands;
	x->results = json_array();
	run_next(x);
}

void direct_write_files(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	json_t *files = read_only_member(c, "files", JSON_OBJECT, OPERATION_FILES_MAX);

	(void)a;
	if (!files)
		return;
	x->commands = files;
	write_next(x);
}

/* ---- following the audit log ---- */

/*
 * A worker process (cli/workeraudit) decides which events a caller may see, as with the logs of one
 * sandbox. We check whether the file has grown, and start one worker at a time to read it.
 */
struct tail {
	struct webcall *webcall;
	struct slots_place place;
	struct event *timer;
	json_int_t offset;
	unsigned looks;
};

static void tail_done(struct tail *t)
{
	slots_give(&t->webcall->api->slots, &t->place);
	event_free(t->timer);
	free(t);
}

static const struct route events_route;

static void read_more(struct tail *t)
{
	struct webcall *x = t->webcall;
	struct err ignored;
	struct stat st;
	json_t *args;

	if (stat(x->api->audit_path, &st) < 0 || st.st_size == t->offset)
		return;
	if (st.st_size < t->offset)
		t->offset = 0; /* the file was replaced by a new one */
	args = json_pack("{s:I}", "offset", t->offset);
	eventcall_done(&x->running);
	webcall_prepare(x);
	x->route = &events_route;
	(void)!webcall_start(x, args, &ignored); /* too many calls: retry at the next check */
	json_decref(args);
}

static void encode_lines(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	struct tail *t = x->context;
	size_t index;
	json_t *entry;

	if (error) {
		webcall_send_event(
			x->connection, "error",
			json_pack("{s:O}", "message", json_object_get(error, "message")));
		json_decref(result);
		connection_end(x->connection); /* on_tail() releases the rest */
		return;
	}
	json_array_foreach(json_object_get(result, "entries"), index, entry)
	{
		cleanup_free char *event =
			mem_format("id: %" JSON_INTEGER_FORMAT "\nevent: audit\ndata: %s\n\n",
				   json_integer_value(json_object_get(entry, "offset")),
				   json_string_value(json_object_get(entry, "line")));

		connection_send(x->connection, event, strlen(event));
	}
	t->offset = json_integer_value(json_object_get(result, "next_offset"));
	json_decref(result);
}

static const struct route events_route = { .operation = OPERATION_EVENTS, .tell = encode_lines };

static void on_tail(evutil_socket_t fd, short what, void *context)
{
	struct tail *t = context;
	struct webcall *x = t->webcall;
	struct timeval later = { .tv_usec = EVENTS_LOOK_MS * 1000 };

	(void)fd;
	(void)what;
	if (!x->is_counted && (!x->connection || x->api->connections.is_draining)) {
		struct connection *c = x->connection;

		tail_done(t);
		x->is_tailing = false;
		if (c)
			connection_end(c);
		else
			webcall_free(x);
		return;
	}
	if (!x->is_counted && connection_unsent(x->connection) < CONNECTION_UNSENT_MAX_BYTES)
		read_more(t);
	if (x->connection && ++t->looks % EVENTS_ALIVE_LOOKS == 0)
		connection_send(x->connection, ": alive\n\n", 9);
	event_add(t->timer, &later);
}

/* Digits, as we sent them. */
static bool read_offset(const char *text, json_int_t *ret)
{
	char *end;

	if (strspn(text, "0123456789") != strlen(text) || !*text || strlen(text) > 18)
		return false;
	*ret = strtoll(text, &end, 10);
	return true;
}

/* Starts at the end of the log, or at the client's Last-Event-ID. */
void direct_events(struct api *a, struct connection *c)
{
	struct webcall *x = connection_user(c);
	const char *last = head_get(&connection_request(c)->head, "last-event-id");
	const struct slots_place stream = { .kind = SLOTS_STREAM, .owner = x->owner };
	struct timeval now = { 0 };
	json_int_t offset = 0;
	struct err e = { 0 };
	struct tail *t;
	struct stat st;

	if (last && !read_offset(last, &offset)) {
		webcall_reply_error(c, 400, "Last-Event-ID: invalid event id");
		return;
	}
	if (slots_take(&a->slots, &stream, &e) < 0) {
		webcall_reply_error(c, 429, e.msg);
		return;
	}
	x->place.kind = SLOTS_READER;
	if (!last && stat(a->audit_path, &st) == 0)
		offset = st.st_size;
	t = mem_alloc(sizeof(*t));
	*t = (struct tail){ .webcall = x, .place = stream, .offset = offset };
	t->timer = event_new(a->base, -1, 0, on_tail, t);
	x->context = t;
	x->is_tailing = true; /* lives until the timer sees that the client is gone */
	webcall_begin_events(x);
	connection_send(c, ": begun\n\n", 9);
	event_add(t->timer, &now);
}
