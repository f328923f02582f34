/*
 * api - routes and access checks; see api.h.
 *
 * Theory of operation. A request is matched to its row, checked (Host, Origin, key, rate) and
 * becomes a webcall (http/webcall). The row defines how its arguments are decoded (http/decode) and
 * how its result is encoded (http/encode), or handles it completely (http/direct).
 */
#include "http/api.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "http/decode.h"
#include "http/direct.h"
#include "http/metrics.h"
#include "http/mcproute.h"
#include "http/encode.h"
#include "http/execsocket.h"
#include "http/siteframes.h"
#include "http/siterelay.h"
#include "http/siteroute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define JSON_TYPE "application/json"
#define RAW_TYPE "application/octet-stream"
#define TAR_TYPE "application/x-tar"

static webcall_direct_fn reply_openapi;

/* ---- the routes ---- */

static const struct route routes[] = {
	{ "GET", "/health", ROUTE_OPEN, .direct = direct_health },
	{ "GET", "/ready", ROUTE_OPEN, .direct = direct_ready },
	{ "GET", "/stats", ROUTE_OPEN, .direct = direct_stats },
	{ "GET", "/status", ROUTE_OPEN, .direct = direct_stats },
	{ "GET", "/metrics", ROUTE_OPEN, .direct = metrics_tell },
	{ "GET", "/openapi.json", 0, .direct = reply_openapi },
	{ "GET", "/events", 0, .direct = direct_events },
	{ "POST", "/mcp", ROUTE_ANY_QUERY, .direct = mcproute_post },
	{ "DELETE", "/mcp", ROUTE_ANY_QUERY, .direct = mcproute_delete },
	{ "POST", "/run", ROUTE_BODY, OPERATION_RUN, decode_run, encode_command },
	{ "POST", "/run/stream", ROUTE_BODY | ROUTE_STREAM, OPERATION_RUN, decode_run,
	  encode_stream },
	{ "POST", "/batch/run", ROUTE_BODY, .direct = direct_batch },
	{ "GET", "/sandboxes", 0, OPERATION_LIST, decode_nothing, encode_sandboxes,
	  .query = "running" },
	{ "POST", "/sandboxes", ROUTE_BODY, OPERATION_CREATE, decode_create, encode_created },
	{ "GET", "/sandboxes/by-uuid/{}", 0, OPERATION_INFO, decode_uuid, encode_sandbox },
	{ "GET", "/sandboxes/{}", 0, OPERATION_INFO, decode_name, encode_sandbox },
	{ "DELETE", "/sandboxes/{}", 0, OPERATION_REMOVE, decode_name, encode_words,
	  .words = "Sandbox removed" },
	{ "POST", "/sandboxes/{}/start", 0, OPERATION_START, decode_name, encode_words,
	  .words = "Sandbox started" },
	{ "POST", "/sandboxes/{}/stop", 0, OPERATION_STOP, decode_name, encode_words,
	  .query = "force", .words = "Sandbox stopped" },
	{ "POST", "/sandboxes/{}/pause", 0, OPERATION_PAUSE, decode_name, encode_sandbox },
	{ "POST", "/sandboxes/{}/resume", 0, OPERATION_RESUME, decode_name, encode_sandbox },
	{ "POST", "/sandboxes/{}/fork", ROUTE_BODY, OPERATION_FORK, decode_about, encode_created },
	{ "GET", "/sandboxes/{}/stats", 0, OPERATION_STATS, decode_name, encode_result },
	{ "GET", "/sandboxes/{}/network", 0, OPERATION_NETWORK_LOG, decode_name, encode_entries },
	{ "POST", "/sandboxes/{}/network", ROUTE_BODY, OPERATION_NETWORK_CHANGE, decode_about,
	  encode_result },
	{ "GET", "/sandboxes/{}/network/check", 0, OPERATION_NETWORK_CHECK, decode_name,
	  encode_result, .query = "host" },
	{ "POST", "/sandboxes/{}/exec", ROUTE_BODY, OPERATION_EXEC, decode_exec, encode_command },
	{ "POST", "/sandboxes/{}/exec/stream", ROUTE_BODY | ROUTE_STREAM, OPERATION_EXEC,
	  decode_exec, encode_stream },
	{ "POST", "/sandboxes/{}/exec/detach", ROUTE_BODY, OPERATION_EXEC_START, decode_exec,
	  encode_detached_started },
	{ "GET", "/sandboxes/{}/exec/detached", 0, OPERATION_EXEC_LIST, decode_name,
	  encode_detached_list },
	{ "GET", "/sandboxes/{}/exec/detached/{}", 0, OPERATION_EXEC_LIST, decode_name,
	  encode_detached },
	{ "GET", "/sandboxes/{}/exec/detached/{}/logs", 0, OPERATION_EXEC_OUTPUT, decode_detached,
	  encode_detached_logs, .query = "stream offset length tail_lines tail_bytes" },
	{ "GET", "/sandboxes/{}/exec/detached/{}/wait", 0, OPERATION_EXEC_WAIT, decode_detached,
	  encode_result, .query = "timeout_ms" },
	{ "DELETE", "/sandboxes/{}/exec/detached/{}", 0, OPERATION_EXEC_KILL, decode_detached,
	  encode_words, .query = "signal", .words = "Command killed" },
	{ "POST", "/sandboxes/{}/files", ROUTE_BODY, .direct = direct_write_files },
	{ "GET", "/sandboxes/{}/files", 0, OPERATION_FILE_LIST, decode_name, encode_result,
	  .query = "path after" },
	{ "GET", "/sandboxes/{}/files/{*}", 0, OPERATION_FILE_READ, decode_file_read, encode_file,
	  .query = "offset length" },
	{ "PUT", "/sandboxes/{}/files/{*}", ROUTE_BODY, OPERATION_FILE_WRITE, decode_file_write,
	  encode_written, .query = "append" },
	{ "DELETE", "/sandboxes/{}/files/{*}", 0, OPERATION_FILE_REMOVE, decode_file,
	  encode_file_gone, .query = "recursive" },
	{ "POST", "/sandboxes/{}/edit", ROUTE_BODY, OPERATION_FILE_EDIT, decode_about,
	  encode_result },
	{ "GET", "/sandboxes/{}/archive", ROUTE_TAR, OPERATION_DOWNLOAD, decode_download,
	  encode_file, .query = "path" },
	{ "PUT", "/sandboxes/{}/archive", ROUTE_BODY | ROUTE_TAR, OPERATION_UPLOAD, decode_upload,
	  encode_result, .query = "path" },
	{ "GET", "/sandboxes/{}/logs", 0, OPERATION_AUDIT, decode_name, encode_entries },
	{ "POST", "/sandboxes/{}/extend", ROUTE_BODY, OPERATION_EXTEND, decode_about,
	  encode_extended },
	{ "GET", "/sandboxes/{}/services", 0, OPERATION_SERVICE_LIST, decode_name, encode_result },
	{ "POST", "/sandboxes/{}/services", ROUTE_BODY, OPERATION_SERVICE_ADD, decode_about,
	  encode_result },
	{ "DELETE", "/sandboxes/{}/services/{}", 0, OPERATION_SERVICE_REMOVE,
	  siteroute_decode_service, encode_words, .words = "Service removed" },
	{ "POST", "/sandboxes/{}/services/{}/restart", 0, OPERATION_SERVICE_RESTART,
	  siteroute_decode_service, encode_words, .words = "Service restarted" },
	{ "PUT", "/sandboxes/{}/ports/{}", ROUTE_BODY, OPERATION_PORT_ACCESS,
	  siteroute_decode_access, encode_result },
	{ "POST", "/sandboxes/{}/ports/{}/link", ROUTE_BODY, OPERATION_REACH, siteroute_decode_link,
	  siteroute_encode_link },
	{ "GET", "/snapshots", 0, OPERATION_CHECKPOINT_LIST, decode_nothing, encode_snapshots,
	  .query = "name" },
	{ "POST", "/snapshots", ROUTE_BODY, OPERATION_CHECKPOINT, decode_snapshot,
	  encode_snapshot_made },
	{ "GET", "/snapshots/{}", 0, OPERATION_CHECKPOINT_LIST, decode_id, encode_snapshot },
	{ "DELETE", "/snapshots/{}", 0, OPERATION_CHECKPOINT_REMOVE, decode_id, encode_words,
	  .words = "Snapshot deleted" },
	{ "POST", "/snapshots/{}/restore", 0, OPERATION_CHECKPOINT_LIST, decode_id,
	  encode_restore_target },
};

/* The variable components of a path. */
struct parts {
	char *texts[3];
	unsigned count;
};

static void free_parts(struct parts *p)
{
	while (p->count > 0)
		free(p->texts[--p->count]);
}

/* Extracts the variable components of the path; false: it does not match. */
static bool matches(const char *pattern, const char *path, struct parts *ret)
{
	CLEANUP(free_parts) struct parts found = { 0 };

	while (*pattern && strcmp(pattern, "{*}") != 0) {
		size_t len = strcspn(path, "/");

		if (strncmp(pattern, "{}", 2) == 0) {
			if (len == 0 || found.count == COUNT_OF(found.texts))
				return false;
			found.texts[found.count++] = mem_dup_bytes(path, len);
			pattern += 2;
			path += len;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	/* the rest is one component, or nothing is left */
	if (*pattern ? !*path || found.count == COUNT_OF(found.texts) : *path != '\0')
		return false;
	if (*pattern)
		found.texts[found.count++] = mem_dup(path);
	*ret = found;
	found = (struct parts){ 0 };
	return true;
}

/* NULL: none; *ret_allowed then lists the methods of the path. */
static const struct route *find_route(const struct connection_request *r, struct parts *ret,
				      struct buf *ret_allowed)
{
	for (size_t i = 0; i < COUNT_OF(routes); i++) {
		struct parts parts = { 0 };

		if (!matches(routes[i].pattern, r->path, &parts))
			continue;
		if (strcmp(routes[i].method, r->head.method) == 0) {
			*ret = parts;
			return &routes[i];
		}
		free_parts(&parts);
		buf_addf(ret_allowed, "%s%s", ret_allowed->len ? ", " : "", routes[i].method);
	}
	return NULL;
}

/* ---- access checks ---- */

/* Returns NULL if access is allowed; *ret_owner is whose sandboxes it sees (NULL: all). */
static const char *check_key(const struct api *a, const struct connection *c,
			     const char **ret_owner)
{
	const char *given = head_get(&connection_request(c)->head, "authorization");
	const struct keys_key *key;

	*ret_owner = NULL;
	/* the owner of a unix socket needs no key, but one that is given is checked */
	if (a->keys.count == 0 || (connection_place(c)->is_unix && !given))
		return NULL;
	if (!given)
		return "Missing Authorization header";
	if (strncasecmp(given, "Bearer ", 7) != 0)
		return "Invalid authorization format. Use: Bearer <api_key>";
	key = keys_find(&a->keys, given + 7);
	if (!key)
		return "Invalid API key";
	*ret_owner = keys_owner(&a->keys, key);
	return NULL;
}

static enum connection_body refuse(struct connection *c, int status, const char *words)
{
	webcall_reply_error(c, status, words);
	return CONNECTION_REFUSED;
}

const char *api_check_origin(const struct connection *c)
{
	const struct head *h = &connection_request(c)->head;

	return origin_check(connection_place(c),
			    &(struct origin_claims){ .host = head_get(h, "host"),
						     .origin = head_get(h, "origin"),
						     .fetch_site = head_get(h, "sec-fetch-site") });
}

static enum connection_body refuse_method(struct connection *c, const struct buf *allowed)
{
	const struct connection_header extra[] = { { "Allow", buf_text(allowed) }, { NULL, NULL } };

	webcall_reply_json(c, 405,
			   json_pack("{s:b, s:s}", "success", 0, "error", "Method not allowed"),
			   extra);
	return CONNECTION_REFUSED;
}

/*
 * A web page may send form data and plain text to any server without permission: so requests that
 * change something are not accepted with such a type, nor without a type.
 */
static bool is_accepted_type(const struct connection_request *r, const struct route *route,
			     bool *ret_is_raw)
{
	const char *type = head_get(&r->head, "content-type");

	*ret_is_raw =
		!route->direct && type &&
		((route->operation == OPERATION_FILE_WRITE && strcasecmp(type, RAW_TYPE) == 0) ||
		 (route->operation == OPERATION_UPLOAD &&
		  (strcasecmp(type, RAW_TYPE) == 0 || strcasecmp(type, TAR_TYPE) == 0)));
	if (*ret_is_raw || strcmp(r->head.method, "GET") == 0)
		return true;
	return (!type && r->head.content_length == 0) || origin_is_json_type(type);
}

static enum connection_body on_head(struct connection *c, void *context)
{
	struct api *a = context;
	const struct connection_request *r = connection_request(c);
	const char *why = api_check_origin(c), *owner = NULL;
	CLEANUP(free_parts) struct parts parts = { 0 };
	cleanup_buf struct buf allowed;
	const struct route *route;
	bool is_raw = false;
	struct webcall *x;
	struct site site;

	buf_init(&allowed, BUF_TEXT_MAX_BYTES);
	a->request_count++;
	site_find(&r->head, a->domain, &site);
	if (site.way != SITE_NONE)
		return siterelay_on_head(a, c, &site);
	if (why)
		return refuse(c, 403, why);
	if (execsocket_is_path(r->path)) {
		why = check_key(a, c, &owner);
		return why ? refuse(c, 401, why) : execsocket_on_head(a, c, owner);
	}
	route = find_route(r, &parts, &allowed);
	if (!route)
		return allowed.len ? refuse_method(c, &allowed) : refuse(c, 404, "Not found");
	why = route->flags & ROUTE_OPEN ? NULL : check_key(a, c, &owner);
	if (why)
		return refuse(c, 401, why);
	if (!is_accepted_type(r, route, &is_raw))
		return refuse(c, 415, "Content-Type has to be " JSON_TYPE);
	x = webcall_new(a, c, route, owner);
	memcpy(x->parts, parts.texts, sizeof(x->parts));
	x->part_count = parts.count;
	parts.count = 0;
	x->running.call.has_more_input = is_raw;
	return is_raw ? CONNECTION_HAND_ON : CONNECTION_COLLECT;
}

static void reply_busy(struct api *a, struct connection *c, const char *words, uint64_t wait_ms)
{
	cleanup_free char *seconds = mem_format("%" PRIu64, wait_ms / 1000 + 1);
	const struct connection_header extra[] = { { "Retry-After", seconds }, { NULL, NULL } };

	a->refused_count++;
	webcall_reply_json(c, 429, json_pack("{s:b, s:s}", "success", 0, "error", words), extra);
}

static void start_stream(struct webcall *x, const json_t *args)
{
	const json_t *command = json_object_get(args, "command");
	char time[TIMESTAMP_TEXT_MAX_BYTES];

	webcall_begin_events(x);
	webcall_send_event(x->connection, "started",
			   json_pack("{s:O, s:b, s:s}", "command", command, "fast", 1, "timestamp",
				     timestamp_format(timestamp_now_ms(), time)));
}

/* False: an error was sent. If no members are expected there must be none. */
static bool read_body(struct connection *c, const struct webcall *x, json_t **ret)
{
	const char *first;

	if (x->running.call.has_more_input ||
	    (!(x->route->flags & ROUTE_BODY) && connection_request(c)->body.len == 0))
		return true;
	if (!webcall_read_body(c, ret))
		return false;
	if (x->route->flags & ROUTE_BODY || (json_is_object(*ret) && json_object_size(*ret) == 0))
		return true;
	first = json_object_iter_key(json_object_iter(*ret));
	if (first) {
		cleanup_free char *words = mem_format("unknown parameter '%.60s'", first);

		webcall_reply_error(c, 400, words);
	} else {
		webcall_reply_error(c, 400, "the body is not an object");
	}
	json_decref(*ret);
	return false;
}

static void encode_not_started(struct webcall *x, const struct err *e)
{
	if (!x->has_begun) {
		webcall_reply_error(x->connection,
				    e->code == ERR_INVALID ? 400
				    : e->code == ERR_BUSY  ? 429
				    : e->code == ERR_LIMIT ? 413
							   : 500,
				    e->msg);
		return;
	}
	webcall_send_event(x->connection, "error", json_pack("{s:s}", "message", e->msg));
	connection_end(x->connection);
}

/* Routes without an operation have no parameters. False: an error was sent. */
static bool is_query_known(struct connection *c, const struct route *route)
{
	const char *query = connection_request(c)->query;
	cleanup_free char *words = NULL;

	if (!query[0] || route->flags & (ROUTE_OPEN | ROUTE_ANY_QUERY))
		return true;
	words = mem_format("unknown parameter '%.*s' in the query",
			   (int)strcspn(query, "=&") < 60 ? (int)strcspn(query, "=&") : 60, query);
	webcall_reply_error(c, 400, words);
	return false;
}

static void on_request(struct connection *c, void *context)
{
	struct api *a = context;
	struct webcall *x = connection_user(c);
	const struct operation *o = operation_get(x->route->operation);
	json_t *body = NULL, *args = NULL;
	uint64_t wait_ms = 0;
	struct err e = { 0 };

	if (x->route->direct) {
		if (is_query_known(c, x->route))
			x->route->direct(a, c);
		return;
	}
	webcall_choose_place(&x->place, o, x->part_count ? x->parts[0] : NULL);
	if (slots_check(&a->slots, &x->place, &e) < 0) {
		reply_busy(a, c, e.msg, 0);
		return;
	}
	if (webcall_check_rate(a, x->owner, o, &wait_ms, &e) < 0) {
		reply_busy(a, c, e.msg, wait_ms);
		return;
	}
	if (!read_body(c, x, &body))
		return;
	if (x->route->args(x, body, &args, &e) < 0 || decode_add_query(x, args, &e) < 0) {
		webcall_reply_error(
			c, webcall_status(e.code == ERR_UNSUPPORTED ? "unsupported" : "invalid"),
			e.msg);
	} else {
		if (x->route->flags & ROUTE_STREAM && json_object_get(args, "command"))
			start_stream(x, args);
		if (webcall_start(x, args, &e) < 0)
			encode_not_started(x, &e);
	}
	json_decref(args);
	json_decref(body);
}

static bool on_body(struct connection *c, const char *bytes, size_t len)
{
	struct webcall *x = connection_user(c);

	if (!x || x->running.call.is_over)
		return true;
	if (len == 0)
		eventcall_end_input(&x->running);
	else
		call_add_input(&x->running.call, bytes, len);
	eventcall_go_on(&x->running);
	return call_unsent_input(&x->running.call) < WEBCALL_INPUT_HIGH_BYTES;
}

/* The answer is complete, or the client is gone. */
static void on_gone(struct connection *c)
{
	struct webcall *x = connection_user(c);

	if (!x)
		return;
	connection_set_user(c, NULL);
	x->connection = NULL;
	if (x->on_gone)
		x->on_gone(x->context);
	if (x->is_counted)
		eventcall_cancel(&x->running);
	else if (!x->is_tailing)
		webcall_free(x);
}

static bool on_http2(struct connection *c, void *context)
{
	return siteframes_on_http2(context, c);
}

struct connection_handler api_handler(struct api *a)
{
	return (struct connection_handler){ .on_head = on_head,
					    .on_request = on_request,
					    .on_http2 = on_http2,
					    .on_body = on_body,
					    .on_gone = on_gone,
					    .context = a };
}

/* ---- for mcproute ---- */

struct api_call {
	struct api *api;
	struct eventcall running;
	struct slots_place place;
	json_t *id;
	char session[API_SESSION_ID_BYTES + 1]; /* "": none */
	void (*on_over)(void *context, json_t *result);
	void (*on_progress)(void *context, const char *words);
	void *context;
	struct api_call *next;
};

void api_follow(struct connection *c, void (*gone)(void *context), void *context)
{
	struct webcall *x = connection_user(c);

	x->on_gone = gone;
	x->context = context;
}

const char *api_owner(const struct connection *c)
{
	return ((const struct webcall *)connection_user(c))->owner;
}

static void api_call_free(struct api_call *k)
{
	struct api_call **link = &k->api->mcp_calls;

	while (*link && *link != k)
		link = &(*link)->next;
	if (*link)
		*link = k->next;
	eventcall_done(&k->running);
	json_decref(k->id);
	free(k);
}

static void on_mcp_over(void *context, json_t *result)
{
	struct api_call *k = context;
	bool is_cancelled = k->running.call.is_cancelled;
	void (*tell)(void *, json_t *) = k->on_over;
	void *whom = k->context;

	metrics_count_end(k->api, &k->running.call, result);
	slots_give(&k->api->slots, &k->place);
	if (!is_cancelled)
		result = savedoutput_keep(&k->api->saved, k->place.owner, &k->running.call, result);
	api_call_free(k);
	if (is_cancelled) {
		json_decref(result);
		result = NULL;
	}
	tell(whom, result);
}

static void on_mcp_progress(void *context, const char *words)
{
	struct api_call *k = context;

	k->on_progress(k->context, words);
}

struct api_call *api_start_mcp(struct api *a, const struct protocol_call *call, const char *session,
			       const char *owner, void (*on_over_fn)(void *context, json_t *result),
			       void (*on_progress)(void *context, const char *words), void *context,
			       struct err *e)
{
	const struct operation *o = operation_get(call->operation);
	struct slots_place place = { .owner = owner };
	struct api_call *k;
	uint64_t wait_ms = 0;

	webcall_choose_place(&place, o,
			     json_string_value(json_object_get(call->arguments, "name")));
	if (slots_check(&a->slots, &place, e) < 0) {
		(void)err_set(e, ERR_LIMIT, "too many calls at once: try again in a second");
		return NULL;
	}
	if (webcall_check_rate(a, owner, o, &wait_ms, e) < 0)
		return NULL;
	k = mem_alloc(sizeof(*k));
	*k = (struct api_call){ .api = a,
				.id = json_incref(call->id),
				.on_over = on_over_fn,
				.on_progress = on_progress,
				.context = context,
				.place = place,
				.next = a->mcp_calls };
	if (session)
		memcpy(k->session, session, sizeof(k->session));
	eventcall_init(&k->running, a->base);
	k->running.owner = owner;
	k->running.call.shown_max_bytes = OPERATION_SHOWN_MAX_BYTES;
	k->running.context = k;
	k->running.on_over = on_mcp_over;
	k->running.on_progress = on_mcp_progress;
	if (call->progress_token)
		k->running.progress_at_ms = clock_now_ms() + EVENTCALL_PROGRESS_MS;
	a->mcp_calls = k;
	if (eventcall_start(&k->running, &a->options, o, call->arguments, NULL, e) < 0 ||
	    slots_take(&a->slots, &place, e) < 0) {
		api_call_free(k);
		return NULL;
	}
	a->call_count++;
	return k;
}

void api_cancel(struct api_call *k)
{
	eventcall_cancel(&k->running);
}

void api_cancel_mcp(struct api *a, const char *session, const json_t *id)
{
	for (struct api_call *k = a->mcp_calls; k; k = k->next)
		if (strcmp(k->session, session) == 0 && json_equal(k->id, id)) {
			api_cancel(k);
			return;
		}
}

/* ---- OpenAPI description ---- */

static json_t *parameter(const char *name, const char *where, json_t *schema)
{
	return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", where, "required",
			 strcmp(where, "path") == 0, "schema", schema);
}

static json_t *parameters_of(const struct route *r)
{
	json_t *list = json_array();
	json_t *schema = arguments_schema(operation_get(r->operation), true);
	const json_t *known = json_object_get(schema, "properties");
	cleanup_free char *names = mem_dup(r->query ? r->query : "");
	char *rest = names, *name;
	unsigned number = 0;

	for (const char *at = r->pattern; (at = strchr(at, '{')); at++)
		(void)json_array_append_new(list, parameter(at[1] == '*' ? "path"
							    : number++   ? "id"
									 : "name",
							    "path",
							    json_pack("{s:s}", "type", "string")));
	while ((name = strsep(&rest, " ")))
		if (*name)
			(void)json_array_append_new(
				list, parameter(name, "query",
						json_incref(json_object_get(known, name))));
	json_decref(schema);
	return list;
}

/* The members of its body: the operation's parameters that are not in the path. */
static json_t *body_schema(const struct route *r)
{
	json_t *schema = arguments_schema(operation_get(r->operation), true);
	json_t *required = json_object_get(schema, "required");
	const char *in_path[] = { strstr(r->pattern, "/{}") ? "name" : NULL,
				  strstr(r->pattern, "{*}") ? "path" : NULL };

	for (size_t i = 0; i < COUNT_OF(in_path); i++) {
		if (!in_path[i])
			continue;
		(void)json_object_del(json_object_get(schema, "properties"), in_path[i]);
		for (size_t at = json_array_size(required); at-- > 0;)
			if (strcmp(json_string_value(json_array_get(required, at)), in_path[i]) ==
			    0)
				(void)json_array_remove(required, at);
	}
	return schema;
}

/* Only the first route of an operation has its name as operationId: messages name operations. */
static bool is_first_of_operation(const struct route *r)
{
	for (const struct route *other = routes; other < r; other++)
		if (!other->direct && other->operation == r->operation)
			return false;
	return true;
}

static json_t *body_of(const struct route *r)
{
	json_t *content = json_pack("{s:{s:o}}", JSON_TYPE, "schema", body_schema(r));

	if (r->operation == OPERATION_FILE_WRITE || r->operation == OPERATION_UPLOAD)
		(void)json_object_set_new(content, r->flags & ROUTE_TAR ? TAR_TYPE : RAW_TYPE,
					  json_object());
	return json_pack("{s:o}", "content", content);
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
		json_pack("{s:o, s:{s:{s:s}, s:{s:s}}}", "parameters", parameters_of(r),
			  "responses", "200", "description", "as asked for", "default",
			  "description", "an object with success = false and an error in words");

	(void)json_object_set_new(d, "summary", json_string(r->direct ? r->pattern : o->title));
	if (!r->direct)
		(void)json_object_set_new(d, "description", json_string(o->help));
	if (!r->direct && is_first_of_operation(r))
		(void)json_object_set_new(d, "operationId", json_string(o->name));
	if (r->flags & ROUTE_BODY && !r->direct)
		(void)json_object_set_new(d, "requestBody", body_of(r));
	return d;
}

static void reply_openapi(struct api *a, struct connection *c)
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
	webcall_reply_json(c, 200,
			   json_pack("{s:s, s:{s:s, s:s}, s:o}", "openapi", "3.1.0", "info",
				     "title", "agentkernel", "version", AGENTKERNEL_VERSION,
				     "paths", paths),
			   NULL);
}
