/*
 * mcproute - the Model Context Protocol over HTTP; see mcproute.h.
 *
 * Theory of operation. Each POST gets its own struct protocol for its message, set to the era and
 * version of its headers and session. The protocol's output is the answer; calls use the same
 * machinery as the other routes (http/api, api_start_mcp()).
 */
#include "http/mcproute.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/webcall.h"
#include "mcp/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define JSON_TYPE "application/json"
#define MODERN_VERSION "2026-07-28"
#define ASSUMED_VERSION "2025-03-26" /* of a client without the header */
#define CODE_HEADER (-32020)
#define CODE_METHOD (-32601)
#define CODE_PARSE (-32700)
#define CODE_REQUEST (-32600)
#define CODE_PARAMS (-32602)
#define CODE_VERSION (-32022)

/* One POST. */
struct post {
	struct api *api;
	struct connection *connection; /* NULL: the client is gone */
	struct protocol *protocol;
	struct eventcall_call *calls; /* running */
	bool is_modern, is_stream, is_answered, is_taking;
	const char *owner;                      /* owner of its key; NULL: sees all sandboxes */
	const char *known_session;              /* the request's session; NULL: none */
	char session[API_SESSION_ID_BYTES + 1]; /* id of a new session; "": none */
};

/* One of its calls; a batch has several. */
struct eventcall_call {
	struct post *post;
	struct protocol_call *call;
	struct api_call *running;
	struct eventcall_call *next;
};

static void post_free(struct post *p)
{
	protocol_free(p->protocol);
	free(p);
}

/* ---- sessions ---- */

/* Owners are texts of keys; several keys may have the same name. */
static bool is_same_owner(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* A session of another owner is treated as missing. */
static struct api_session *find_session(struct api *a, const char *id, const char *owner)
{
	for (unsigned i = 0; id && i < a->session_count; i++)
		if (strcmp(a->sessions[i].id, id) == 0 &&
		    is_same_owner(a->sessions[i].owner, owner))
			return &a->sessions[i];
	return NULL;
}

/* Returns the least recently used session to evict; if this owner has many, one of its own, so that
 * it does not evict those of others. NULL: there is room. */
static struct api_session *find_used_longest_ago(struct api *a, const char *owner)
{
	struct api_session *oldest = NULL, *own = NULL;
	unsigned own_count = 0;

	for (unsigned i = 0; i < a->session_count; i++) {
		struct api_session *s = &a->sessions[i];

		if (!oldest || s->used_ms < oldest->used_ms)
			oldest = s;
		if (!is_same_owner(s->owner, owner))
			continue;
		own_count++;
		if (!own || s->used_ms < own->used_ms)
			own = s;
	}
	if (owner && own_count >= API_SESSIONS_OF_OWNER_MAX)
		return own;
	return a->session_count < API_SESSIONS_MAX ? NULL : oldest;
}

static void add_session(struct api *a, const char *version, const char *owner,
			char ret_id[API_SESSION_ID_BYTES + 1])
{
	struct api_session *s = find_used_longest_ago(a, owner);
	unsigned char bytes[API_SESSION_ID_BYTES / 2];

	if (!s) {
		a->sessions = mem_grow(a->sessions, a->session_count + 1, sizeof(*a->sessions));
		s = &a->sessions[a->session_count++];
	}
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(s->id + 2 * i, 3, "%02x", bytes[i]);
	s->version = version;
	s->owner = owner;
	s->used_ms = clock_now_ms();
	memcpy(ret_id, s->id, sizeof(s->id));
}

/* ---- answers ---- */

static int status_of(const struct post *p, const json_t *message)
{
	const json_t *error = json_object_get(message, "error");
	int code = (int)json_integer_value(json_object_get(error, "code"));

	if (!error)
		return 200;
	if (code == CODE_PARSE || (code == CODE_REQUEST && !json_object_get(message, "id")))
		return 400;
	if (!p->is_modern)
		return 200;
	return code == CODE_METHOD ? 404 : code == CODE_VERSION || code == CODE_PARAMS ? 400 : 200;
}

static bool accepts_stream(const struct connection *c)
{
	const char *accept = head_get(&connection_request(c)->head, "accept");

	return accept && strcasestr(accept, "text/event-stream");
}

/* A client that does not accept events only gets the answer. */
static void begin_stream(struct post *p)
{
	static const struct connection_header headers[] = { { "Cache-Control", "no-cache" },
							    { "X-Accel-Buffering", "no" },
							    { NULL, NULL } };

	if (p->is_stream || !accepts_stream(p->connection))
		return;
	p->is_stream = true;
	connection_begin(p->connection, 200, "text/event-stream", headers);
}

static void send_message(struct post *p, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	const struct connection_header session[] = { { "Mcp-Session-Id", p->session },
						     { NULL, NULL } };
	bool is_answer = json_object_get(message, "result") || json_object_get(message, "error") ||
			 json_is_array(message);

	if (!is_answer && p->connection && !p->is_answered)
		begin_stream(p);
	if (!p->connection || p->is_answered) {
		/* the client is gone */
	} else if (p->is_stream) {
		cleanup_free char *event = mem_format("event: message\ndata: %s\n\n", text);

		connection_send(p->connection, event, strlen(event));
		if (is_answer) {
			p->is_answered = true;
			connection_end(p->connection);
		}
	} else if (is_answer) {
		p->is_answered = true;
		connection_reply(p->connection, status_of(p, message), JSON_TYPE, text,
				 strlen(text), p->session[0] ? session : NULL);
	}
	free(text);
}

static void on_send(void *context, json_t *message)
{
	struct post *p = context;

	if (protocol_version(p->protocol) && !p->is_modern && !p->session[0] &&
	    json_object_get(json_object_get(message, "result"), "serverInfo"))
		add_session(p->api, protocol_version(p->protocol), p->owner, p->session);
	send_message(p, message);
	json_decref(message);
}

static unsigned on_count(void *context)
{
	const struct slots *s = &((struct post *)context)->api->slots;

	return s->count[SLOTS_CALL] + s->count[SLOTS_CARE];
}

static void on_cancel(void *context, const json_t *id)
{
	struct post *p = context;

	/* ids are only unique within a session, so without one we cannot know whose it is */
	if (p->known_session)
		api_cancel_mcp(p->api, p->known_session, id);
}

/* ---- calls ---- */

static void forget_call(struct eventcall_call *k)
{
	struct eventcall_call **link = &k->post->calls;

	while (*link && *link != k)
		link = &(*link)->next;
	if (*link)
		*link = k->next;
	free(k);
}

/* If no call is left: ends an unanswered request, or frees it if the client is gone. */
static void settle(struct post *p)
{
	if (p->calls || p->is_taking)
		return;
	if (!p->connection) {
		post_free(p);
	} else if (!p->is_answered) {
		p->is_answered = true;
		if (p->is_stream)
			connection_end(p->connection);
		else
			connection_reply(p->connection, 202, NULL, "", 0, NULL);
	}
}

static void on_over(void *context, json_t *result)
{
	struct eventcall_call *k = context;
	struct protocol_call *call = k->call;
	struct post *p = k->post;

	forget_call(k);
	p->is_taking = true; /* an answer may close the connection and free p: delay that */
	if (p->connection && result) {
		protocol_answer(p->protocol, call, result);
	} else {
		json_decref(result);
		protocol_drop(p->protocol, call);
	}
	p->is_taking = false;
	settle(p);
}

static void on_progress(void *context, const char *words)
{
	struct eventcall_call *k = context;

	if (k->post->is_stream)
		protocol_tell_progress(k->post->protocol, k->call, words);
}

static void on_call(void *context, struct protocol_call *call)
{
	struct post *p = context;
	json_t *saved = call->operation == OPERATION_EXEC_OUTPUT
				? savedoutput_read(&p->api->saved, p->owner, call->arguments)
				: NULL;
	struct eventcall_call *k;
	struct err e = { 0 };

	if (saved) {
		protocol_answer(p->protocol, call, saved);
		return;
	}
	k = mem_alloc(sizeof(*k));
	*k = (struct eventcall_call){ .post = p, .call = call, .next = p->calls };
	p->calls = k;
	k->running = api_start_mcp(p->api, call, p->known_session, p->owner, on_over, on_progress,
				   k, &e);
	if (!k->running) {
		forget_call(k);
		protocol_answer_failure(p->protocol, call, e.msg);
		return;
	}
	if (call->progress_token && !call->batch)
		begin_stream(p);
}

/* ---- requests ---- */

static void refuse(struct connection *c, int status, int code, const char *words, const json_t *id)
{
	json_t *message = json_pack("{s:s, s:{s:i, s:s}}", "jsonrpc", "2.0", "error", "code", code,
				    "message", words);
	char *text;

	if (id)
		(void)json_object_set(message, "id", (json_t *)(uintptr_t)id);
	text = json_dumps(message, JSON_COMPACT);
	connection_reply(c, status, JSON_TYPE, text, strlen(text), NULL);
	free(text);
	json_decref(message);
}

/* Modern header values may be "=?base64?...?="; we only compare values that need no encoding. */
static bool is_header(const struct head *h, const char *name, const char *expected)
{
	const char *value = head_get(h, name);

	return value && expected && strcmp(value, expected) == 0;
}

static const json_t *modern_meta(const json_t *message)
{
	return json_object_get(json_object_get(json_object_get(message, "params"), "_meta"),
			       "io.modelcontextprotocol/protocolVersion");
}

/* Checks of the modern era; false: an error was sent. */
static bool check_modern(struct connection *c, const json_t *message)
{
	const struct head *h = &connection_request(c)->head;
	const json_t *version = modern_meta(message), *id = json_object_get(message, "id");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *name =
		json_string_value(json_object_get(json_object_get(message, "params"), "name"));

	if (!json_is_string(version))
		return true; /* the protocol reports what is missing */
	if (!is_header(h, "mcp-protocol-version", json_string_value(version))) {
		refuse(c, 400, CODE_HEADER, "MCP-Protocol-Version differs from the message", id);
		return false;
	}
	if (strcmp(json_string_value(version), MODERN_VERSION) != 0)
		return true;
	if (!is_header(h, "mcp-method", method) ||
	    (method && strcmp(method, "tools/call") == 0 && !is_header(h, "mcp-name", name))) {
		refuse(c, 400, CODE_HEADER, "Mcp-Method or Mcp-Name differs from the message", id);
		return false;
	}
	return true;
}

/* Checks the session and its version; false: an error was sent. */
static bool check_legacy(struct post *p, const json_t *message)
{
	const struct head *h = &connection_request(p->connection)->head;
	const char *id = head_get(h, "mcp-session-id"),
		   *version = head_get(h, "mcp-protocol-version");
	const char *method = json_string_value(json_object_get(message, "method"));
	struct api_session *s = find_session(p->api, id, p->owner);

	if (method && strcmp(method, "initialize") == 0)
		return true;
	if (id && !s) {
		refuse(p->connection, 404, CODE_REQUEST, "this session has ended",
		       json_object_get(message, "id"));
		return false;
	}
	if (version && !protocol_find_version(version)) {
		refuse(p->connection, 400, CODE_REQUEST, "this version is not supported",
		       json_object_get(message, "id"));
		return false;
	}
	if (s) {
		s->used_ms = clock_now_ms();
		p->known_session = s->id;
	}
	protocol_set_version(p->protocol, version ? version : s ? s->version : ASSUMED_VERSION);
	return true;
}

/* A legacy version in the header overrides Mcp-Method, which some clients always send. */
static bool is_modern_request(const struct head *h, const json_t *message)
{
	const char *version = head_get(h, "mcp-protocol-version");

	if (modern_meta(message))
		return true;
	return version ? !protocol_find_version(version) : head_get(h, "mcp-method") != NULL;
}

static void on_post_gone(void *context)
{
	struct post *p = context;

	p->connection = NULL;
	/* not in the legacy era, where a client may only have lost its connection */
	for (struct eventcall_call *k = p->calls; p->is_modern && k; k = k->next)
		api_cancel(k->running);
	settle(p);
}

void mcproute_post(struct api *a, struct connection *c)
{
	const struct connection_request *r = connection_request(c);
	struct post *p;
	json_t *message;

	if (r->body.len == 0) {
		refuse(c, 400, CODE_PARSE, "the body is empty", NULL);
		return;
	}
	if (!webcall_is_modest(&r->body)) {
		refuse(c, 413, CODE_REQUEST, "the message has too many values", NULL);
		return;
	}
	message = json_loadb(buf_text(&r->body), r->body.len,
			     JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	p = mem_alloc(sizeof(*p));
	*p = (struct post){ .api = a, .connection = c, .owner = api_owner(c) };
	p->protocol = protocol_new(&(struct protocol_handler){ .context = p,
							       .send = on_send,
							       .call = on_call,
							       .cancel = on_cancel,
							       .count_calls = on_count,
							       .ends_subscriptions = true });
	api_follow(c, on_post_gone, p);
	p->is_modern = is_modern_request(&r->head, message);
	if (p->is_modern)
		protocol_set_modern(p->protocol);
	p->is_taking = true; /* see settle() */
	if (p->is_modern ? check_modern(c, message) : check_legacy(p, message))
		protocol_take(p->protocol, buf_text(&r->body), r->body.len);
	else
		p->is_answered = true;
	p->is_taking = false;
	settle(p);
	json_decref(message);
}

void mcproute_delete(struct api *a, struct connection *c)
{
	struct api_session *s = find_session(
		a, head_get(&connection_request(c)->head, "mcp-session-id"), api_owner(c));

	if (!s) {
		refuse(c, 404, CODE_REQUEST, "no such session", NULL);
		return;
	}
	*s = a->sessions[--a->session_count];
	connection_reply(c, 200, NULL, "", 0, NULL);
}
