/*
 * protocol - the messages of the Model Context Protocol; see protocol.h.
 *
 * Theory of operation. A line is parsed completely, then each of its messages is dispatched: a
 * method has a row in `methods` with a function for each era that has it. Answers to a batch are
 * collected until it is complete.
 */
#include "mcp/protocol.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "mcp/answer.h"
#include "rpc/arguments.h"

#include <string.h>

#define META "io.modelcontextprotocol/"
#define META_VERSION META "protocolVersion"
#define META_CAPABILITIES META "clientCapabilities"
#define META_LOG_LEVEL META "logLevel"
#define META_SERVER META "serverInfo"
#define META_SUBSCRIPTION META "subscriptionId"
#define MODERN_VERSION "2026-07-28"
#define LATEST_LEGACY_VERSION "2025-11-25"
#define BATCH_VERSION "2025-03-26"
#define LIST_TTL_MS 3600000
#define LISTENS_MAX 64u

enum code {
	CODE_PARSE = -32700,
	CODE_REQUEST = -32600,
	CODE_METHOD = -32601,
	CODE_PARAMS = -32602,
	CODE_VERSION = -32022,
};

static const char *const legacy_versions[] = { "2024-11-05", "2025-03-26", "2025-06-18",
					       "2025-11-25" };

static const char instructions[] =
	"Sandboxes for running code without risk to the user's machine. Use sandbox_run for "
	"anything untrusted, generated or one-off; sandbox_create and sandbox_exec when several "
	"commands share files. A denied host or a refused permission is the user's decision: tell "
	"the user what would allow it, do not look for a way around it.";

struct protocol_batch {
	json_t *answers;
	unsigned pending;
};

struct protocol {
	struct protocol_handler handler;
	const char *version;          /* of the legacy era; NULL: no handshake yet */
	bool is_modern;               /* set by the transport */
	json_t *tools;                /* NULL: not requested yet */
	json_t *listens[LISTENS_MAX]; /* ids of open subscriptions */
	unsigned listen_count;
};

/* A message being processed. */
struct request {
	const json_t *id; /* NULL: a notification */
	const json_t *params;
	const json_t *meta;
	enum protocol_era era;
	struct protocol_batch *batch;
};

struct protocol *protocol_new(const struct protocol_handler *handler)
{
	struct protocol *p = mem_alloc(sizeof(*p));

	*p = (struct protocol){ .handler = *handler };
	return p;
}

void protocol_free(struct protocol *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->listen_count; i++)
		json_decref(p->listens[i]);
	json_decref(p->tools);
	free(p);
}

void protocol_set_modern(struct protocol *p)
{
	p->is_modern = true;
}

const char *protocol_find_version(const char *text)
{
	for (size_t i = 0; text && i < COUNT_OF(legacy_versions); i++)
		if (strcmp(text, legacy_versions[i]) == 0)
			return legacy_versions[i];
	return NULL;
}

void protocol_set_version(struct protocol *p, const char *version)
{
	p->version = protocol_find_version(version);
}

const char *protocol_version(const struct protocol *p)
{
	return p->version;
}

void protocol_call_free(struct protocol_call *c)
{
	json_decref(c->id);
	json_decref(c->arguments);
	json_decref(c->progress_token);
	free(c);
}

/* ---- answers ---- */

static void finish_batch(struct protocol *p, struct protocol_batch *batch)
{
	if (--batch->pending > 0)
		return;
	if (json_array_size(batch->answers) > 0)
		p->handler.send(p->handler.context, batch->answers);
	else
		json_decref(batch->answers);
	free(batch);
}

/* Takes ownership of the message. */
static void send(struct protocol *p, struct protocol_batch *batch, json_t *message)
{
	if (batch)
		(void)json_array_append_new(batch->answers, message);
	else
		p->handler.send(p->handler.context, message);
}

static json_t *new_message(const json_t *id)
{
	json_t *message = json_pack("{s:s}", "jsonrpc", "2.0");

	if (id)
		(void)json_object_set(message, "id", (json_t *)(uintptr_t)id);
	return message;
}

/* Takes ownership of `data`, which may be NULL. */
static void answer_error(struct protocol *p, struct protocol_batch *batch, const json_t *id,
			 enum code code, const char *words, json_t *data)
{
	json_t *message = new_message(id);
	json_t *error = json_pack("{s:i, s:s}", "code", (int)code, "message", words);

	if (data)
		(void)json_object_set_new(error, "data", data);
	(void)json_object_set_new(message, "error", error);
	send(p, batch, message);
}

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "agentkernel", "title", "agentkernel",
			 "version", AGENTKERNEL_VERSION);
}

/* Takes ownership of the result, and adds the members that the era requires. */
static void answer_result(struct protocol *p, struct protocol_batch *batch, const json_t *id,
			  enum protocol_era era, json_t *result)
{
	json_t *message = new_message(id);

	if (era == PROTOCOL_MODERN) {
		json_t *meta = json_object_get(result, "_meta");

		(void)json_object_set_new(result, "resultType", json_string("complete"));
		if (!meta) {
			meta = json_object();
			(void)json_object_set_new(result, "_meta", meta);
		}
		(void)json_object_set_new(meta, META_SERVER, server_info());
	}
	(void)json_object_set_new(message, "result", result);
	send(p, batch, message);
}

static void end_call(struct protocol *p, struct protocol_call *call)
{
	if (call->batch)
		finish_batch(p, call->batch);
	protocol_call_free(call);
}

void protocol_answer(struct protocol *p, struct protocol_call *call, json_t *result)
{
	answer_result(p, call->batch, call->id, call->era,
		      answer_call(operation_get(call->operation), result));
	end_call(p, call);
}

void protocol_answer_failure(struct protocol *p, struct protocol_call *call, const char *text)
{
	answer_result(p, call->batch, call->id, call->era, answer_failure(text));
	end_call(p, call);
}

void protocol_drop(struct protocol *p, struct protocol_call *call)
{
	end_call(p, call);
}

void protocol_tell_progress(struct protocol *p, struct protocol_call *call, const char *words)
{
	json_t *message = new_message(NULL);
	json_t *params;

	if (!call->progress_token) {
		json_decref(message);
		return;
	}
	params = json_pack("{s:O, s:I, s:s}", "progressToken", call->progress_token, "progress",
			   (json_int_t)++call->progress, "message", words);
	(void)json_object_set_new(message, "method", json_string("notifications/progress"));
	(void)json_object_set_new(message, "params", params);
	p->handler.send(p->handler.context, message);
}

/* ---- methods ---- */

static void on_initialize(struct protocol *p, const struct request *r)
{
	const char *offered = json_string_value(json_object_get(r->params, "protocolVersion"));

	if (r->batch) {
		answer_error(p, r->batch, r->id, CODE_REQUEST, "initialize cannot be in a batch",
			     NULL);
		return;
	}
	if (!offered) {
		answer_error(p, r->batch, r->id, CODE_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	p->version = protocol_find_version(offered);
	if (!p->version)
		p->version = LATEST_LEGACY_VERSION;
	answer_result(p, r->batch, r->id, r->era,
		      json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion", p->version,
				"capabilities", "tools", "serverInfo", server_info(),
				"instructions", instructions));
}

/* Versions that a request may name in its _meta; legacy versions need `initialize`. */
static json_t *modern_versions(void)
{
	return json_pack("[s]", MODERN_VERSION);
}

static void on_discover(struct protocol *p, const struct request *r)
{
	answer_result(p, r->batch, r->id, r->era,
		      json_pack("{s:o, s:{s:{}}, s:s, s:i, s:s}", "supportedVersions",
				modern_versions(), "capabilities", "tools", "instructions",
				instructions, "ttlMs", LIST_TTL_MS, "cacheScope", "public"));
}

static void on_ping(struct protocol *p, const struct request *r)
{
	answer_result(p, r->batch, r->id, r->era, json_object());
}

static void on_list(struct protocol *p, const struct request *r)
{
	json_t *result;

	if (json_object_get(r->params, "cursor")) {
		answer_error(p, r->batch, r->id, CODE_PARAMS, "there is only one page", NULL);
		return;
	}
	if (!p->tools)
		p->tools = answer_tools();
	result = json_pack("{s:O}", "tools", p->tools);
	if (r->era == PROTOCOL_MODERN) {
		(void)json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
		(void)json_object_set_new(result, "cacheScope", json_string("public"));
	}
	answer_result(p, r->batch, r->id, r->era, result);
}

static bool is_token(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v);
}

static void on_call(struct protocol *p, const struct request *r)
{
	const char *name = json_string_value(json_object_get(r->params, "name"));
	json_t *arguments = json_object_get(r->params, "arguments");
	json_t *token = json_object_get(r->meta, "progressToken");
	struct protocol_call *call;
	enum operation_id id = 0;
	cleanup_buf struct buf words;

	buf_init(&words, BUF_TEXT_MAX_BYTES);
	if (!name || !operation_find(name, &id) ||
	    operation_get(id)->hints & OPERATION_IS_NO_TOOL) {
		buf_add_text(&words, name ? "no such tool (tools/list shows them)"
					  : "the tool's name is missing");
		answer_error(p, r->batch, r->id, CODE_PARAMS, buf_text(&words), NULL);
		return;
	}
	if (arguments && !json_is_object(arguments)) {
		answer_error(p, r->batch, r->id, CODE_PARAMS, "arguments is not an object", NULL);
		return;
	}
	call = mem_alloc(sizeof(*call));
	*call = (struct protocol_call){
		.id = json_incref((json_t *)(uintptr_t)r->id),
		.era = r->era,
		.operation = id,
		.arguments = json_incref(arguments),
		.progress_token = is_token(token) ? json_incref(token) : NULL,
		.batch = r->batch,
	};
	if (r->batch)
		r->batch->pending++;
	if (p->handler.count_calls(p->handler.context) >= PROTOCOL_CALLS_MAX) {
		protocol_answer_failure(p, call,
					"too many calls at once: wait for some to end, then try "
					"again");
		return;
	}
	p->handler.call(p->handler.context, call);
}

static void acknowledge(struct protocol *p, const struct request *r)
{
	json_t *message = new_message(NULL);

	(void)json_object_set_new(message, "method",
				  json_string("notifications/subscriptions/acknowledged"));
	(void)json_object_set_new(
		message, "params",
		json_pack("{s:{s:O}, s:{}}", "_meta", META_SUBSCRIPTION, r->id, "notifications"));
	send(p, r->batch, message);
}

/*
 * The list of tools never changes: a subscription is acknowledged, but never notified. It stays
 * open until it is cancelled, or ends at once if the transport would have to keep a connection.
 */
static void on_listen(struct protocol *p, const struct request *r)
{
	if (p->handler.ends_subscriptions) {
		json_t *result = json_pack("{s:{s:O}}", "_meta", META_SUBSCRIPTION, r->id);

		acknowledge(p, r);
		answer_result(p, r->batch, r->id, r->era, result);
		return;
	}
	if (p->listen_count == LISTENS_MAX) {
		answer_error(p, r->batch, r->id, CODE_REQUEST, "too many subscriptions", NULL);
		return;
	}
	p->listens[p->listen_count++] = json_incref((json_t *)(uintptr_t)r->id);
	acknowledge(p, r);
}

static void on_cancelled(struct protocol *p, const struct request *r)
{
	const json_t *id = json_object_get(r->params, "requestId");

	if (!is_token(id))
		return;
	for (unsigned i = 0; i < p->listen_count; i++) {
		if (!json_equal(p->listens[i], id))
			continue;
		json_decref(p->listens[i]);
		p->listens[i] = p->listens[--p->listen_count];
		return;
	}
	p->handler.cancel(p->handler.context, id);
}

static const struct {
	const char *name;
	void (*legacy)(struct protocol *p, const struct request *r); /* NULL: not in this era */
	void (*modern)(struct protocol *p, const struct request *r);
} methods[] = {
	{ "initialize", on_initialize, NULL },    { "ping", on_ping, NULL },
	{ "server/discover", NULL, on_discover }, { "tools/list", on_list, on_list },
	{ "tools/call", on_call, on_call },       { "subscriptions/listen", NULL, on_listen },
};

/* ---- messages ---- */

static bool is_modern(const char *method, const json_t *meta)
{
	return json_object_get(meta, META_VERSION) || strcmp(method, "server/discover") == 0;
}

static bool is_log_level(const char *text)
{
	static const char *const levels[] = { "debug", "info",     "notice", "warning",
					      "error", "critical", "alert",  "emergency" };

	for (size_t i = 0; text && i < COUNT_OF(levels); i++)
		if (strcmp(text, levels[i]) == 0)
			return true;
	return false;
}

/* Checks the members that every modern request needs. False: an error was sent. */
static bool check_meta(struct protocol *p, const struct request *r)
{
	const json_t *version = json_object_get(r->meta, META_VERSION);
	const json_t *level = json_object_get(r->meta, META_LOG_LEVEL);

	if (!json_is_string(version) ||
	    !json_is_object(json_object_get(r->meta, META_CAPABILITIES))) {
		answer_error(p, r->batch, r->id, CODE_PARAMS,
			     "_meta needs " META_VERSION " (a string) and " META_CAPABILITIES
			     " (an object)",
			     NULL);
		return false;
	}
	if (strcmp(json_string_value(version), MODERN_VERSION) != 0) {
		answer_error(p, r->batch, r->id, CODE_VERSION, "this version is not supported",
			     json_pack("{s:o, s:O}", "supported", modern_versions(), "requested",
				       version));
		return false;
	}
	if (level && !is_log_level(json_string_value(level))) {
		answer_error(p, r->batch, r->id, CODE_PARAMS, META_LOG_LEVEL " is not a level",
			     NULL);
		return false;
	}
	return true;
}

static void on_request(struct protocol *p, const char *method, const struct request *r)
{
	bool is_early = r->era == PROTOCOL_LEGACY && !p->version &&
			strcmp(method, "initialize") != 0 && strcmp(method, "ping") != 0;

	if (r->era == PROTOCOL_MODERN && !check_meta(p, r))
		return;
	if (is_early) {
		answer_error(p, r->batch, r->id, CODE_PARAMS,
			     "begin with initialize, or send " META_VERSION " \"" MODERN_VERSION
			     "\" in params._meta",
			     NULL);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(methods); i++) {
		if (strcmp(methods[i].name, method) != 0)
			continue;
		if (r->era == PROTOCOL_MODERN && methods[i].modern) {
			methods[i].modern(p, r);
			return;
		}
		if (r->era == PROTOCOL_LEGACY && methods[i].legacy) {
			methods[i].legacy(p, r);
			return;
		}
	}
	answer_error(p, r->batch, r->id, CODE_METHOD, "no such method", NULL);
}

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

static void take_message(struct protocol *p, const json_t *message, struct protocol_batch *batch)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	const char *method = json_string_value(json_object_get(message, "method"));
	struct request r = { .id = id, .params = params, .batch = batch };

	/* we send no requests, so we expect no answers */
	if (json_is_object(message) && !json_object_get(message, "method") &&
	    (json_object_get(message, "result") || json_object_get(message, "error")))
		return;
	if (!json_is_object(message) || !version || strcmp(version, "2.0") != 0 || !method ||
	    (id && !is_id(id)) || (params && !json_is_object(params))) {
		answer_error(p, batch, is_id(id) ? id : NULL, CODE_REQUEST,
			     "this is not a request: it needs \"jsonrpc\":\"2.0\", a method, an id "
			     "that is a string or a whole number, and params that are an object",
			     NULL);
		return;
	}
	r.meta = json_object_get(params, "_meta");
	r.era = p->is_modern || is_modern(method, r.meta) ? PROTOCOL_MODERN : PROTOCOL_LEGACY;
	if (id)
		on_request(p, method, &r);
	else if (strcmp(method, "notifications/cancelled") == 0)
		on_cancelled(p, &r);
}

static void take_batch(struct protocol *p, const json_t *list)
{
	struct protocol_batch *batch;

	if (!p->version || strcmp(p->version, BATCH_VERSION) != 0 || json_array_size(list) == 0 ||
	    json_array_size(list) > PROTOCOL_BATCH_MAX) {
		answer_error(p, NULL, NULL, CODE_REQUEST,
			     json_array_size(list) > PROTOCOL_BATCH_MAX
				     ? "the batch is too large"
				     : "batches are not part of this version",
			     NULL);
		return;
	}
	batch = mem_alloc(sizeof(*batch));
	*batch = (struct protocol_batch){ .answers = json_array(), .pending = 1 };
	for (size_t i = 0; i < json_array_size(list); i++)
		take_message(p, json_array_get(list, i), batch);
	finish_batch(p, batch);
}

void protocol_take(struct protocol *p, const char *line, size_t len)
{
	json_error_t why;
	json_t *message;
	cleanup_buf struct buf words;

	buf_init(&words, BUF_TEXT_MAX_BYTES);
	while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1])
		len--;
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (len == 0)
		return;
	message = json_loadb(line, len, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES,
			     &why);
	if (!message) {
		buf_addf(&words, "not JSON at byte %d: %s", why.position, why.text);
		answer_error(p, NULL, NULL, CODE_PARSE, buf_text(&words), NULL);
		return;
	}
	if (json_is_array(message))
		take_batch(p, message);
	else
		take_message(p, message, NULL);
	json_decref(message);
}

void protocol_refuse_long(struct protocol *p)
{
	answer_error(p, NULL, NULL, CODE_REQUEST, "the line is longer than 16 MiB", NULL);
}
