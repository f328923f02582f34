/* encode - turns results into each route's answer; see encode.h. */
#include "http/encode.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

/* Existing clients read "output"; the other members are additional. Takes ownership of `result`. */
static json_t *command_data(struct webcall *x, json_t *result)
{
	(void)json_object_set_new(result, "output", webcall_text(&x->output));
	if (x->output.is_cut)
		(void)json_object_set_new(result, "output_cut", json_true());
	return result;
}

static void reply_exit(struct connection *c, json_t *data)
{
	int code = (int)json_integer_value(json_object_get(data, "exit_code"));
	const char *output = json_string_value(json_object_get(data, "output"));
	const char *reason = json_string_value(json_object_get(data, "reason"));
	cleanup_free char *words =
		mem_format("Command exited with code %d%s%s%s: %s", code, reason ? " (" : "",
			   reason ? reason : "", reason ? ")" : "", output);

	(void)json_object_set_new(data, "success", json_false());
	(void)json_object_set_new(data, "error", json_string(words));
	webcall_reply_json(c, 409, data, NULL);
}

void encode_command(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	struct connection *c = x->connection;
	json_t *data;

	if (error) {
		webcall_reply_failure(c, error);
		json_decref(result);
		return;
	}
	data = command_data(x, result);
	if (json_integer_value(json_object_get(data, "exit_code")) != 0)
		reply_exit(c, data);
	else
		webcall_reply_data(c, 200, data);
}

void encode_stream(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	int code = (int)json_integer_value(json_object_get(result, "exit_code"));

	webcall_begin_events(x);
	if (error) {
		webcall_send_event(
			x->connection, "error",
			json_pack("{s:O}", "message", json_object_get(error, "message")));
	} else {
		json_t *data = json_pack("{s:i, s:b, s:O, s:O}", "exit_code", code, "success",
					 code == 0, "ended_by", json_object_get(result, "ended_by"),
					 "duration_ms", json_object_get(result, "duration_ms"));

		if (json_object_get(result, "reason"))
			(void)json_object_set(data, "reason", json_object_get(result, "reason"));
		if (code != 0)
			(void)json_object_set_new(data, "output", webcall_text(&x->output));
		webcall_send_event(x->connection, "done", data);
	}
	json_decref(result);
	connection_end(x->connection);
}

static json_t *sandbox_data(const json_t *s)
{
	static const char *const others[] = { "image", "checkpoint_every_ms", "checkpoint_keep",
					      "checkpoint_trouble" };
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
	data = json_pack("{s:O, s:O, s:s, s:O, s:o, s:o}", "name", json_object_get(s, "name"),
			 "uuid", json_object_get(s, "id"), "status",
			 state && strcmp(state, "created") == 0 ? "stopped" : state, "backend",
			 json_object_get(s, "backend"), "created_at",
			 webcall_time(json_integer_value(json_object_get(s, "created"))), "labels",
			 labels);
	/* of these there may be none */
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		json_t *value = json_object_get(s, others[i]);

		if (value && !json_is_null(value))
			(void)json_object_set(data, others[i], value);
	}
	return data;
}

static void encode_sandbox_with(struct webcall *x, json_t *result, int status)
{
	if (!webcall_take_success(x, result))
		return;
	webcall_reply_data(x->connection, status, sandbox_data(json_object_get(result, "sandbox")));
	json_decref(result);
}

void encode_sandbox(struct webcall *x, json_t *result)
{
	encode_sandbox_with(x, result, 200);
}

void encode_created(struct webcall *x, json_t *result)
{
	encode_sandbox_with(x, result, 201);
}

void encode_sandboxes(struct webcall *x, json_t *result)
{
	json_t *list = json_array(), *s;
	size_t index;

	if (!webcall_take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "sandboxes"), index, s)(void)
		json_array_append_new(list, sandbox_data(s));
	webcall_reply_data(x->connection, 200, list);
	json_decref(result);
}

static void reply_words(struct webcall *x, json_t *result, const char *words)
{
	if (!webcall_take_success(x, result))
		return;
	json_decref(result);
	webcall_reply_data(x->connection, 200, json_string(words));
}

void encode_words(struct webcall *x, json_t *result)
{
	reply_words(x, result, x->route->words);
}

void encode_file_gone(struct webcall *x, json_t *result)
{
	cleanup_free char *words = mem_format("Deleted /%s", x->parts[1]);

	reply_words(x, result, words);
}

void encode_written(struct webcall *x, json_t *result)
{
	cleanup_free char *words = NULL;

	if (!webcall_take_success(x, result))
		return;
	words = mem_format("Wrote %" JSON_INTEGER_FORMAT " bytes to /%s",
			   json_integer_value(json_object_get(result, "bytes")), x->parts[1]);
	json_decref(result);
	webcall_reply_data(x->connection, 200, json_string(words));
}

/* Returns the whole result unchanged. */
void encode_result(struct webcall *x, json_t *result)
{
	if (webcall_take_success(x, result))
		webcall_reply_data(x->connection, 200, result);
}

void encode_entries(struct webcall *x, json_t *result)
{
	if (!webcall_take_success(x, result))
		return;
	webcall_reply_data(x->connection, 200, json_incref(json_object_get(result, "entries")));
	json_decref(result);
}

void encode_extended(struct webcall *x, json_t *result)
{
	if (!webcall_take_success(x, result))
		return;
	webcall_reply_data(
		x->connection, 200,
		json_pack("{s:o}", "expires_at",
			  webcall_time(json_integer_value(json_object_get(result, "expires")))));
	json_decref(result);
}

/* ---- detached commands ---- */

/* Its argument list; from a supervisor of an older build its command line, as one word. */
static json_t *words_of(const json_t *t)
{
	const json_t *argv = json_object_get(t, "argv");

	return argv ? json_incref((json_t *)(uintptr_t)argv)
		    : json_pack("[O]", json_object_get(t, "command"));
}

static json_t *detached_data(const struct webcall *x, const json_t *t)
{
	bool is_running = json_is_true(json_object_get(t, "running"));
	const json_t *code = json_object_get(t, "exit_code");
	json_int_t started_s = json_integer_value(json_object_get(t, "started_ms")) / 1000;

	return json_pack("{s:O, s:s, s:o, s:O, s:s, s:o, s:o}", "id", json_object_get(t, "id"),
			 "sandbox", x->parts[0], "command", words_of(t), "pid",
			 json_object_get(t, "pid"), "status",
			 is_running                      ? "running"
			 : json_integer_value(code) == 0 ? "completed"
							 : "failed",
			 "exit_code", code ? json_incref((json_t *)(uintptr_t)code) : json_null(),
			 "started_at", webcall_time(started_s));
}

void encode_detached_list(struct webcall *x, json_t *result)
{
	json_t *list = json_array(), *t;
	size_t index;

	if (!webcall_take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "entries"), index, t)(void)
		json_array_append_new(list, detached_data(x, t));
	webcall_reply_data(x->connection, 200, list);
	json_decref(result);
}

void encode_detached(struct webcall *x, json_t *result)
{
	size_t index;
	json_t *t;

	if (!webcall_take_success(x, result))
		return;
	json_array_foreach(json_object_get(result, "entries"), index, t)
	{
		if (strcmp(json_string_value(json_object_get(t, "id")), x->parts[1]) != 0)
			continue;
		webcall_reply_data(x->connection, 200, detached_data(x, t));
		json_decref(result);
		return;
	}
	json_decref(result);
	webcall_reply_error(x->connection, 404, "No such command");
}

void encode_detached_started(struct webcall *x, json_t *result)
{
	const json_t *command = x->commands;

	if (!webcall_take_success(x, result))
		return;
	webcall_reply_data(
		x->connection, 200,
		json_pack("{s:O, s:s, s:o, s:I, s:s, s:n, s:o}", "id",
			  json_object_get(result, "id"), "sandbox", x->parts[0], "command",
			  command ? json_incref((json_t *)(uintptr_t)command) : json_array(), "pid",
			  json_integer_value(json_object_get(result, "pid")), "status", "running",
			  "exit_code", "started_at",
			  webcall_time((json_int_t)(timestamp_now_ms() / 1000))));
	json_decref(result);
}

/* The output is named after the stream, as existing clients expect; the rest is additional. */
void encode_detached_logs(struct webcall *x, json_t *result)
{
	const char *query = connection_request(x->connection)->query;
	const json_t *output = json_object_get(result, "output");

	if (!webcall_take_success(x, result))
		return;
	(void)json_object_set(result, strstr(query, "stream=stderr") ? "stderr" : "stdout",
			      (json_t *)(uintptr_t)output);
	(void)json_object_del(result, "output");
	webcall_reply_data(x->connection, 200, result);
}

/* ---- snapshots ---- */

static json_t *snapshot_data(const json_t *s)
{
	const json_t *comment = json_object_get(s, "comment");

	return json_pack("{s:O, s:O, s:O, s:s, s:O, s:o, s:O*}", "name",
			 json_is_string(comment) ? comment : json_object_get(s, "id"), "sandbox",
			 json_object_get(s, "sandbox"), "image_tag", json_object_get(s, "id"),
			 "backend", policy_backends[POLICY_BACKEND_NATIVE], "base_image",
			 json_object_get(s, "image"), "created_at",
			 webcall_time(json_integer_value(json_object_get(s, "created"))),
			 "automatic", json_object_get(s, "automatic"));
}

void encode_snapshots(struct webcall *x, json_t *result)
{
	json_t *list = json_array(), *s;
	size_t index;

	if (!webcall_take_success(x, result)) {
		json_decref(list);
		return;
	}
	json_array_foreach(json_object_get(result, "entries"), index, s)(void)
		json_array_append_new(list, snapshot_data(s));
	webcall_reply_data(x->connection, 200, list);
	json_decref(result);
}

/* The requested one, which the worker process has selected. */
void encode_snapshot(struct webcall *x, json_t *result)
{
	if (!webcall_take_success(x, result))
		return;
	webcall_reply_data(x->connection, 200,
			   snapshot_data(json_array_get(json_object_get(result, "entries"), 0)));
	json_decref(result);
}

void encode_snapshot_made(struct webcall *x, json_t *result)
{
	const char *name = x->part_count > 1 ? x->parts[1] : NULL;
	json_t *made, *data;

	if (!webcall_take_success(x, result))
		return;
	if (!json_object_get(result, "id")) { /* the interval was ended */
		webcall_reply_data(x->connection, 200, result);
		return;
	}
	made = json_pack("{s:O, s:O, s:o?, s:o?, s:I}", "id", json_object_get(result, "id"),
			 "sandbox", json_object_get(result, "name"), "comment",
			 name ? json_string(name) : NULL, "image", json_string("host"), "created",
			 (json_int_t)(timestamp_now_ms() / 1000));
	data = snapshot_data(made);
	(void)json_object_set(data, "every_ms", json_object_get(result, "every_ms"));
	(void)json_object_set(data, "keep", json_object_get(result, "keep"));
	webcall_reply_data(x->connection, 201, data);
	json_decref(made);
	json_decref(result);
}

/* Two calls: the first finds the sandbox of the snapshot, the second restores it. */
static const struct route restore_route;

void encode_restore_target(struct webcall *x, json_t *result)
{
	struct err e = { 0 };
	const json_t *s;
	json_t *args;

	if (!webcall_take_success(x, result))
		return;
	s = json_array_get(json_object_get(result, "entries"), 0);
	args = json_pack("{s:O, s:O}", "name", json_object_get(s, "sandbox"), "id",
			 json_object_get(s, "id"));
	json_decref(result);
	eventcall_done(&x->running);
	webcall_prepare(x);
	x->route = &restore_route;
	if (webcall_start(x, args, &e) < 0)
		webcall_reply_error(x->connection, 500, e.msg);
	json_decref(args);
}

static const struct route restore_route = { .operation = OPERATION_RESTORE,
					    .tell = encode_sandbox };

/* ---- files ---- */

/* A file too large for the answer is 413, not a reason to retry later. */
static void reply_file_failure(struct webcall *x, const json_t *error)
{
	const char *code = json_string_value(json_object_get(error, "code"));

	if (code && strcmp(code, "limit") == 0)
		webcall_reply_error(x->connection, 413,
				    json_string_value(json_object_get(error, "message")));
	else
		webcall_reply_failure(x->connection, error);
}

static void encode_raw(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (error && !x->has_begun)
		reply_file_failure(x, error);
	else if (error)
		connection_abort(x->connection); /* only part of the answer was sent */
	else if (!x->has_begun)
		connection_reply(x->connection, 200, WEBCALL_BYTES_TYPE(x), "", 0, NULL);
	else
		connection_end(x->connection);
	json_decref(result);
}

void encode_file(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (x->is_raw) {
		encode_raw(x, result);
		return;
	}
	if (error)
		reply_file_failure(x, error);
	else
		webcall_reply_data(x->connection, 200, json_incref(result));
	json_decref(result);
}
