/*
 * execsocket - commands over WebSockets; see execsocket.h.
 *
 * Theory of operation. A plain command, without a terminal and ended with its client, is a call
 * like those of the API (sandbox_exec): its streams are the worker's own, and a client that does
 * not read makes it wait. One that stays, or has a terminal, is followed by a worker process
 * (sandbox_session) that speaks frames (rpc/wire.h); a client that is too slow for the command's
 * log loses output and is told so. This file translates both to messages and back.
 *
 * Hostile input: messages of clients; output of the command, which is passed on and not looked at.
 */
#include "http/execsocket.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/metrics.h"
#include "http/query.h"
#include "http/websocket.h"
#include "rpc/wire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BEGIN "/sandboxes/"
#define PATH_START "/exec/ws"
#define PATH_JOIN "/exec/detached/"
#define PATH_JOIN_END "/ws"
#define CLOSE_NORMAL 1000
#define CLOSE_REFUSED 1008
#define INPUT_MAX_BYTES (1u << 20)

/* The first byte of a binary message, without a terminal. */
enum { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_EXIT, CHANNEL_END_STDIN };

struct execsocket {
	struct api *api;
	struct websocket *socket; /* NULL: the client is gone */
	struct eventcall running;
	struct slots_place place;
	bool has_tty, is_paused, is_plain;
	struct buf frames; /* of the worker, not complete yet */
};

static void execsocket_free(struct execsocket *x)
{
	slots_give(&x->api->slots, &x->place);
	eventcall_done(&x->running);
	buf_done(&x->frames);
	free(x);
}

/* ---- to the client ---- */

static void send_json(struct execsocket *x, json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	if (x->socket && text)
		websocket_send(x->socket, true, text, strlen(text));
	free(text);
	json_decref(value);
}

static void send_output(struct execsocket *x, char channel, const char *bytes, size_t len)
{
	cleanup_free char *message = x->has_tty ? NULL : mem_alloc(len + 1);

	if (!x->socket)
		return;
	if (x->has_tty) {
		websocket_send(x->socket, false, bytes, len);
		return;
	}
	message[0] = channel;
	memcpy(message + 1, bytes, len);
	websocket_send(x->socket, false, message, len + 1);
}

static void tell_exit(struct execsocket *x, uint32_t status)
{
	char code = (char)status;

	send_json(x, json_pack("{s:s, s:i}", "type", "exit", "exit_code", (int)status));
	if (!x->has_tty)
		send_output(x, CHANNEL_EXIT, &code, 1);
	if (x->socket)
		websocket_close(x->socket, CLOSE_NORMAL, "");
}

static void on_frame(struct execsocket *x, const struct wire_frame *h, const char *bytes)
{
	uint64_t missing = 0;
	uint32_t status = 0;

	switch (h->stream) {
	case WIRE_STDOUT:
		send_output(x, CHANNEL_STDOUT, bytes, h->len);
		break;
	case WIRE_STDERR:
		send_output(x, CHANNEL_STDERR, bytes, h->len);
		break;
	case WIRE_BEGUN:
		send_json(x, json_pack("{s:s, s:s%, s:b}", "type", "session_info", "session_id",
				       bytes, (size_t)h->len, "tty", x->has_tty));
		break;
	case WIRE_GAP:
		memcpy(&missing, bytes, h->len < sizeof(missing) ? h->len : sizeof(missing));
		send_json(x, json_pack("{s:s, s:I}", "type", "gap", "bytes", (json_int_t)missing));
		break;
	case WIRE_EXIT:
		memcpy(&status, bytes, h->len < sizeof(status) ? h->len : sizeof(status));
		tell_exit(x, status);
		break;
	}
}

static void on_output(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct execsocket *x = context;
	size_t at = 0;
	struct wire_frame h;

	if (x->is_plain) {
		send_output(x, stream == CALL_STDERR ? CHANNEL_STDERR : CHANNEL_STDOUT, bytes, len);
		return;
	}
	if (stream != CALL_STDOUT)
		return;
	buf_add(&x->frames, bytes, len);
	while (x->frames.len - at >= sizeof(h)) {
		memcpy(&h, x->frames.bytes + at, sizeof(h));
		if (h.len > WIRE_FRAME_MAX_BYTES || x->frames.len - at - sizeof(h) < h.len)
			break;
		on_frame(x, &h, x->frames.bytes + at + sizeof(h));
		at += sizeof(h) + h.len;
	}
	memmove(x->frames.bytes, x->frames.bytes + at, x->frames.len - at);
	x->frames.len -= at;
}

static void on_over(void *context, json_t *result)
{
	struct execsocket *x = context;
	const json_t *error = json_object_get(result, "error");
	json_t *notes = json_object_get(result, "notes");

	metrics_count_end(x->api, &x->running.call, result);
	if (x->is_plain && !error && notes)
		send_json(x, json_pack("{s:s, s:O}", "type", "notes", "notes", notes));
	if (x->is_plain && !error && !x->running.call.is_cancelled)
		tell_exit(x, (uint32_t)json_integer_value(json_object_get(result, "exit_code")));
	if (x->socket && error)
		send_json(x, json_pack("{s:s, s:O, s:O}", "type", "error", "code",
				       json_object_get(error, "code"), "message",
				       json_object_get(error, "message")));
	if (x->socket)
		websocket_close(x->socket, error ? CLOSE_REFUSED : CLOSE_NORMAL, "");
	json_decref(result);
	if (!x->socket)
		execsocket_free(x);
}

static bool is_full(void *context)
{
	const struct execsocket *x = context;

	return x->socket && websocket_unsent(x->socket) > EXECSOCKET_UNSENT_MAX_BYTES;
}

/* ---- from the client ---- */

static void add_frame(struct execsocket *x, enum wire_stream stream, const void *bytes, size_t len)
{
	const struct wire_frame h = { stream, (uint32_t)len };

	if (x->running.call.is_over)
		return;
	if (!x->is_plain)
		call_add_input(&x->running.call, (const char *)&h, sizeof(h));
	call_add_input(&x->running.call, bytes, len);
	eventcall_go_on(&x->running);
	if (!x->is_paused && call_unsent_input(&x->running.call) > INPUT_MAX_BYTES) {
		x->is_paused = true;
		websocket_pause(x->socket, true);
	}
}

static void on_input_taken(void *context)
{
	struct execsocket *x = context;

	if (!x->is_paused || !x->socket || call_unsent_input(&x->running.call) > INPUT_MAX_BYTES)
		return;
	x->is_paused = false;
	websocket_pause(x->socket, false);
}

static uint32_t find_signal(const char *name)
{
	static const struct {
		const char *name;
		uint32_t number;
	} known[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },     { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 },   { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM }, { "CONT", SIGCONT },   { "STOP", SIGSTOP },
		{ "TSTP", SIGTSTP }, { "WINCH", SIGWINCH },
	};

	name += strncasecmp(name, "SIG", 3) == 0 ? 3 : 0;
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strcasecmp(known[i].name, name) == 0)
			return known[i].number;
	return 0;
}

/* The worker of a plain command passes signals on, but for those that no process can handle. */
static void signal_command(struct execsocket *x, uint32_t number)
{
	if (!x->is_plain)
		add_frame(x, WIRE_SIGNAL, &number, sizeof(number));
	else if (number == SIGKILL)
		eventcall_cancel(&x->running);
	else if (x->running.call.pid_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, x->running.call.pid_fd, (int)number, NULL, 0);
}

static void on_order(struct execsocket *x, const json_t *order)
{
	const char *type = json_string_value(json_object_get(order, "type"));
	const char *name = json_string_value(json_object_get(order, "signal"));
	json_int_t rows = json_integer_value(json_object_get(order, "rows"));
	json_int_t columns = json_integer_value(json_object_get(order, "cols"));
	const uint16_t size[2] = { (uint16_t)rows, (uint16_t)columns };
	uint32_t number = name ? find_signal(name) : 0;

	if (!type)
		return;
	if (strcmp(type, "resize") == 0 && rows > 0 && rows <= UINT16_MAX && columns > 0 &&
	    columns <= UINT16_MAX)
		x->is_plain ? (void)0 : add_frame(x, WIRE_RESIZE, size, sizeof(size));
	else if (strcmp(type, "signal") == 0 && number)
		signal_command(x, number);
}

static void on_message(void *context, bool is_text, const char *bytes, size_t len)
{
	struct execsocket *x = context;
	json_t *order;

	if (is_text) {
		order = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);
		on_order(x, order);
		json_decref(order);
	} else if (x->has_tty) {
		add_frame(x, WIRE_STDIN, bytes, len);
	} else if (len > 0 && bytes[0] == CHANNEL_STDIN) {
		add_frame(x, WIRE_STDIN, bytes + 1, len - 1);
	} else if (len > 0 && bytes[0] == CHANNEL_END_STDIN) {
		if (x->is_plain && !x->running.call.is_over)
			eventcall_end_input(&x->running);
		else
			add_frame(x, WIRE_END_STDIN, "", 0);
	}
}

static void on_written(void *context)
{
	struct execsocket *x = context;

	if (!x->running.call.is_over)
		eventcall_go_on(&x->running);
}

/* Proxies and clients that count messages alone see that the connection is alive. */
static void on_quiet(void *context)
{
	send_json(context, json_pack("{s:s}", "type", "keepalive"));
}

static void on_closed(void *context)
{
	struct execsocket *x = context;

	x->socket = NULL;
	if (x->running.call.is_over)
		execsocket_free(x);
	else
		eventcall_cancel(&x->running);
}

/* ---- the request ---- */

/* 1: starts a command; 2: joins one; 0: another path. The texts are the caller's to free. */
static int split_path(const char *path, char **ret_name, char **ret_id)
{
	const char *name = path + strlen(PATH_BEGIN), *rest;
	size_t len;

	*ret_name = *ret_id = NULL;
	if (strncmp(path, PATH_BEGIN, strlen(PATH_BEGIN)) != 0 || !(rest = strchr(name, '/')) ||
	    rest == name)
		return 0;
	len = strlen(rest);
	if (strcmp(rest, PATH_START) == 0) {
		*ret_name = mem_dup_bytes(name, (size_t)(rest - name));
		return 1;
	}
	if (strncmp(rest, PATH_JOIN, strlen(PATH_JOIN)) != 0 ||
	    len <= strlen(PATH_JOIN) + strlen(PATH_JOIN_END) ||
	    strcmp(rest + len - strlen(PATH_JOIN_END), PATH_JOIN_END) != 0)
		return 0;
	*ret_id = mem_dup_bytes(rest + strlen(PATH_JOIN),
				len - strlen(PATH_JOIN) - strlen(PATH_JOIN_END));
	*ret_name = mem_dup_bytes(name, (size_t)(rest - name));
	return 2;
}

bool execsocket_is_path(const char *path)
{
	cleanup_free char *name = NULL;
	cleanup_free char *id = NULL;

	return split_path(path, &name, &id) > 0;
}

static void add_number(json_t *args, const char *name, const char *value)
{
	char *end;
	long long number = strtoll(value, &end, 10);

	/* what is no number is refused by its type */
	(void)json_object_set_new(args, name,
				  *value && !*end ? json_integer(number) : json_string(value));
}

static bool add_variable(json_t *env, const char *text)
{
	cleanup_free char *name = mem_dup_bytes(text, strcspn(text, "="));

	if (!*name || !strchr(text, '='))
		return false;
	(void)json_object_set_new(env, name, json_string(strchr(text, '=') + 1));
	return true;
}

/* One parameter of the query; false: there is none of that name, or its value cannot be. */
static bool add_parameter(json_t *args, json_t *command, json_t *env, const char *name,
			  const char *value)
{
	static const char *const texts[] = { "cwd", "user" };
	static const char *const numbers[] = { "rows", "cols", "timeout_ms", "offset" };
	static const char *const flags[] = { "tty", "detachable" };

	if (strcmp(name, "cmd") == 0)
		return json_array_size(command) < EXECSOCKET_WORDS_MAX &&
		       json_array_append_new(command, json_string(value)) == 0;
	if (strcmp(name, "env") == 0)
		return add_variable(env, value);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (strcmp(name, texts[i]) == 0)
			return json_object_set_new(args, name, json_string(value)) == 0;
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (strcmp(name, numbers[i]) == 0) {
			add_number(args, name, value);
			return true;
		}
	for (size_t i = 0; i < COUNT_OF(flags); i++)
		if (strcmp(name, flags[i]) == 0 &&
		    (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
			return json_object_set_new(args, name,
						   json_boolean(strcmp(value, "true") == 0)) == 0;
	return false;
}

/* A new reference; NULL: *ret_why says what is wrong, to be freed. */
static json_t *read_query(const char *query, char **ret_why)
{
	json_t *args = json_object(), *command = json_array(), *env = json_object();
	struct query_pair pair = { 0 };
	int r;

	while (!*ret_why && (r = query_next(&query, &pair)) != 0) {
		if (r < 0)
			*ret_why = mem_dup("the query cannot be decoded");
		else if (!add_parameter(args, command, env, pair.name, pair.value))
			*ret_why = mem_format("unknown parameter '%.60s' in the query, or a value "
					      "that cannot be",
					      pair.name);
		query_pair_done(&pair);
	}
	if (json_is_true(json_object_get(args, "tty")) && !json_object_get(env, "TERM"))
		(void)json_object_set_new(env, "TERM", json_string("xterm-256color"));
	if (json_array_size(command) > 0)
		(void)json_object_set(args, "command", command);
	if (json_object_size(env) > 0)
		(void)json_object_set(args, "env", env);
	json_decref(command);
	json_decref(env);
	if (!*ret_why)
		return args;
	json_decref(args);
	return NULL;
}

static enum connection_body refuse(struct connection *c, int status, const char *words)
{
	webcall_reply_error(c, status, words);
	return CONNECTION_REFUSED;
}

static void open_socket(struct execsocket *x, struct connection *c)
{
	const struct websocket_owner owner = { .context = x,
					       .on_message = on_message,
					       .on_closed = on_closed,
					       .on_written = on_written,
					       .on_quiet = on_quiet };

	x->socket = websocket_accept(c, &owner);
}

/* Does it end with its client, and has no terminal? Then its arguments are those of sandbox_exec.
 */
static bool make_plain(json_t *args)
{
	if (json_object_get(args, "id") || json_is_true(json_object_get(args, "tty")) ||
	    json_is_true(json_object_get(args, "detachable")))
		return false;
	(void)json_object_del(args, "tty");
	(void)json_object_del(args, "detachable");
	if (!json_object_get(args, "timeout_ms"))
		(void)json_object_set_new(args, "timeout_ms",
					  json_integer(OPERATION_TIMEOUT_MAX_MS));
	return true;
}

static struct execsocket *make(struct api *a, const char *owner, const char *sandbox, json_t *args)
{
	struct execsocket *x = mem_alloc(sizeof(*x));

	*x = (struct execsocket){ .api = a,
				  .place = { .kind = SLOTS_STREAM, .owner = owner },
				  .has_tty = json_is_true(json_object_get(args, "tty")),
				  .is_plain = make_plain(args) };
	buf_init(&x->frames, 2 * WIRE_FRAME_MAX_BYTES);
	eventcall_init(&x->running, a->base);
	x->running.context = x;
	x->running.owner = owner;
	x->running.on_over = on_over;
	x->running.on_input_taken = on_input_taken;
	x->running.is_full = is_full;
	x->running.call.has_more_input = true;
	x->running.call.context = x;
	x->running.call.on_output = on_output;
	slots_set_sandbox(&x->place, sandbox);
	return x;
}

/* 0, or the status of a refusal. */
static int start(struct execsocket *x, const json_t *args, struct err *e)
{
	const struct operation *o = operation_get(x->is_plain ? OPERATION_EXEC : OPERATION_SESSION);
	uint64_t wait_ms = 0;

	if (webcall_check_rate(x->api, x->place.owner, o, &wait_ms, e) == 0 &&
	    eventcall_start(&x->running, &x->api->options, o, args, NULL, e) == 0) {
		x->api->call_count++;
		return 0;
	}
	return e->code == ERR_INVALID ? 400 : e->code == ERR_BUSY ? 429 : 500;
}

enum connection_body execsocket_on_head(struct api *a, struct connection *c, const char *owner)
{
	const struct connection_request *r = connection_request(c);
	const char *why = websocket_check(&r->head);
	cleanup_free char *name = NULL;
	cleanup_free char *id = NULL;
	cleanup_free char *wrong = NULL;
	struct execsocket *x;
	struct err e = { 0 };
	int status = 429;
	json_t *args;

	(void)split_path(r->path, &name, &id);
	args = why ? NULL : read_query(r->query, &wrong);
	if (!args)
		return refuse(c, 400, why ? why : wrong);
	(void)json_object_set_new(args, "name", json_string(name));
	if (id)
		(void)json_object_set_new(args, "id", json_string(id));
	x = make(a, owner, name, args);
	if (slots_take(&a->slots, &x->place, &e) < 0) {
		eventcall_done(&x->running);
		free(x);
	} else {
		status = start(x, args, &e);
		if (status)
			execsocket_free(x);
	}
	json_decref(args);
	if (status)
		return refuse(c, status, e.msg);
	open_socket(x, c);
	if (x->is_plain)
		send_json(x, json_pack("{s:s, s:b}", "type", "session_info", "tty", 0));
	return CONNECTION_TAKEN;
}
