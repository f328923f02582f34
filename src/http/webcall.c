/* webcall - one request with its call and answer; see webcall.h. */
#include "http/webcall.h"

#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "http/metrics.h"
#include "rpc/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

/* ---- answers ---- */

void webcall_reply_json(struct connection *c, int status, json_t *value,
			const struct connection_header *extra)
{
	char *text = json_dumps(value, JSON_COMPACT);

	connection_reply(c, status, JSON_TYPE, text ? text : "{}", text ? strlen(text) : 2, extra);
	free(text);
	json_decref(value);
}

/* Takes ownership of `data`. */
void webcall_reply_data(struct connection *c, int status, json_t *data)
{
	webcall_reply_json(c, status, json_pack("{s:b, s:o}", "success", 1, "data", data), NULL);
}

void webcall_reply_error(struct connection *c, int status, const char *words)
{
	webcall_reply_json(c, status, json_pack("{s:b, s:s}", "success", 0, "error", words), NULL);
}

void webcall_reply_failure(struct connection *c, const json_t *error)
{
	webcall_reply_error(c, webcall_status(json_string_value(json_object_get(error, "code"))),
			    json_string_value(json_object_get(error, "message")));
}

json_t *webcall_text(const struct buf *b)
{
	cleanup_buf struct buf text;

	buf_init(&text, 3 * WEBCALL_OUTPUT_MAX_BYTES);
	output_add_utf8(&text, buf_text(b), b->len);
	return json_stringn(buf_text(&text), text.len);
}

/* ---- sandboxes in the contract's format ---- */

json_t *webcall_time(json_int_t seconds)
{
	char text[TIMESTAMP_TEXT_MAX_BYTES];

	return json_string(timestamp_format((uint64_t)seconds * 1000, text));
}

int webcall_status(const char *code)
{
	return errcode_http_status(errcode_find(code));
}

/*
 * Called before parsing: three bytes of JSON can become three hundred of memory, and parsing them
 * would block all other clients meanwhile.
 */
bool webcall_is_modest(const struct buf *body)
{
	size_t values = 1, containers = 0;
	bool is_text = false;

	for (size_t i = 0; i < body->len; i++) {
		char c = body->bytes[i];

		if (is_text && c == '\\')
			i++;
		else if (c == '"')
			is_text = !is_text;
		else if (!is_text && (c == ',' || c == ':'))
			values++;
		else if (!is_text && (c == '[' || c == '{'))
			containers++;
	}
	return values <= WEBCALL_VALUES_MAX && containers <= WEBCALL_CONTAINERS_MAX;
}

/* Parses the body as JSON; false: an error was sent. */
bool webcall_read_body(struct connection *c, json_t **ret)
{
	const struct buf *body = &connection_request(c)->body;
	json_error_t why = { .line = 1 };

	*ret = NULL;
	if (webcall_is_modest(body))
		*ret = json_loadb(buf_text(body), body->len,
				  JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
	else
		(void)snprintf(why.text, sizeof(why.text),
			       "more than %u values or %u lists and objects", WEBCALL_VALUES_MAX,
			       WEBCALL_CONTAINERS_MAX);
	if (!*ret) {
		cleanup_free char *words = mem_format("Invalid JSON: line %d, column %d: %s",
						      why.line, why.column, why.text);

		webcall_reply_error(c, 400, words);
		return false;
	}
	return true;
}

/* If the call failed, sends the error and returns NULL. */
json_t *webcall_take_success(struct webcall *x, json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (!error)
		return result;
	webcall_reply_failure(x->connection, error);
	json_decref(result);
	return NULL;
}

/* ---- start and end ---- */

void webcall_free(struct webcall *x)
{
	if (x->is_counted)
		slots_give(&x->api->slots, &x->place);
	eventcall_done(&x->running);
	buf_done(&x->output);
	for (unsigned i = 0; i < x->part_count; i++)
		free(x->parts[i]);
	json_decref(x->commands);
	json_decref(x->results);
	free(x);
}

struct webcall *webcall_new(struct api *a, struct connection *c, const struct route *r,
			    const char *owner)
{
	struct webcall *x = mem_alloc(sizeof(*x));

	*x = (struct webcall){
		.api = a, .connection = c, .route = r, .owner = owner, .place.owner = owner
	};
	if (r->flags & ROUTE_STREAM)
		x->place.kind = SLOTS_STREAM;
	webcall_prepare(x);
	buf_init(&x->output, WEBCALL_OUTPUT_MAX_BYTES);
	connection_set_user(c, x);
	return x;
}

/* ---- running calls ---- */

static void on_over(void *context, json_t *result)
{
	struct webcall *x = context;

	metrics_count_end(x->api, &x->running.call, result);
	slots_give(&x->api->slots, &x->place);
	x->is_counted = false;
	if (x->is_counting)
		x->api->counts.is_counting = false;
	if (x->connection) {
		x->route->tell(x, result);
		return;
	}
	json_decref(result);
	if (!x->is_tailing) /* otherwise its timer frees it */
		webcall_free(x);
}

static void on_input_taken(void *context)
{
	struct webcall *x = context;

	if (x->connection && call_unsent_input(&x->running.call) < WEBCALL_INPUT_HIGH_BYTES)
		connection_go_on(x->connection);
}

/* If the client does not read, no more is sent, and the command blocks too. */
static bool is_full(void *context)
{
	const struct webcall *x = context;

	return x->connection && x->has_begun &&
	       connection_unsent(x->connection) > CONNECTION_UNSENT_MAX_BYTES;
}

void webcall_prepare(struct webcall *x)
{
	eventcall_init(&x->running, x->api->base);
	x->running.context = x;
	x->running.owner = x->owner;
	x->running.on_over = on_over;
	x->running.on_input_taken = on_input_taken;
	x->running.is_full = is_full;
	x->running.call.context = x;
}

void webcall_choose_place(struct slots_place *p, const struct operation *o, const char *sandbox)
{
	if (p->kind == SLOTS_READER)
		return;
	if (p->kind != SLOTS_STREAM)
		p->kind = o->hints & OPERATION_IS_CARE ? SLOTS_CARE : SLOTS_CALL;
	slots_set_sandbox(p, sandbox);
}

int webcall_start(struct webcall *x, const json_t *args, struct err *e)
{
	const struct operation *o = operation_get(x->route->operation);

	webcall_choose_place(&x->place, o, json_string_value(json_object_get(args, "name")));
	if (slots_take(&x->api->slots, &x->place, e) < 0)
		return -1;
	if (eventcall_start(&x->running, &x->api->options, o, args,
			    x->is_raw     ? WIRE_PARAM "raw=true"
			    : x->is_whole ? WIRE_PARAM "whole=true"
					  : NULL,
			    e) < 0) {
		slots_give(&x->api->slots, &x->place);
		return -1;
	}
	if (x->is_raw) /* any number of bytes: only the client's patience is the limit */
		x->running.call.deadline_ms = 0;
	x->is_counted = true;
	x->api->call_count += x->place.kind != SLOTS_READER;
	return 0;
}

/* ---- requests ---- */

int webcall_check_rate(struct api *a, const char *owner, const struct operation *o,
		       uint64_t *ret_wait_ms, struct err *e)
{
	for (unsigned i = 0; i < a->rate_count; i++)
		if (ratelimit_take(a->rates[i], owner ? owner : "http", o->name, clock_now_ms(),
				   ret_wait_ms, e) < 0)
			return -1;
	return 0;
}

/* ---- output as it arrives ---- */

/* ---- a command's result ---- */

void webcall_on_combined(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct webcall *x = context;

	(void)stream;
	buf_add(&x->output, bytes, len);
}

/* ---- streams ---- */

void webcall_send_event(struct connection *c, const char *kind, json_t *data)
{
	char *text = json_dumps(data, JSON_COMPACT);
	cleanup_free char *event = mem_format("event: %s\ndata: %s\n\n", kind, text ? text : "{}");

	connection_send(c, event, strlen(event));
	free(text);
	json_decref(data);
}

void webcall_begin_events(struct webcall *x)
{
	static const struct connection_header headers[] = { { "Cache-Control", "no-cache" },
							    { "X-Accel-Buffering", "no" },
							    { NULL, NULL } };

	if (x->has_begun)
		return;
	x->has_begun = true;
	connection_begin(x->connection, 200, "text/event-stream", headers);
}

void webcall_on_streamed(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct webcall *x = context;
	cleanup_buf struct buf text;

	buf_init(&text, 3 * len + 1);
	webcall_on_combined(context, stream, bytes, len);
	if (!x->connection)
		return;
	output_add_utf8(&text, bytes, len);
	webcall_send_event(x->connection, "output",
			   json_pack("{s:s%, s:s}", "data", buf_text(&text), text.len, "stream",
				     stream == CALL_STDERR ? "stderr" : "stdout"));
}
