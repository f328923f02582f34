/* decode - turns each route's request into an operation's arguments; see decode.h. */
#include "http/decode.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/query.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- bodies ---- */

enum alias_kind {
	ALIAS_SAME,    /* the same value under another name */
	ALIAS_TEXT,    /* a number in the alias becomes a text */
	ALIAS_ROOT,    /* true: the user is root */
	ALIAS_NOTHING, /* accepted but without effect */
	ALIAS_REFUSED, /* only the user may set this, not a caller */
};

/* Names in the published SDK, and in other servers of its API. */
static const struct alias {
	const char *name, *as;
	enum operation_id operation;
	enum alias_kind kind;
} aliases[] = {
	{ "fast", NULL, OPERATION_RUN, ALIAS_NOTHING }, /* every run is as fast as possible */
	{ "workdir", "cwd", OPERATION_RUN, ALIAS_SAME },
	{ "vcpus", "cpus", OPERATION_RUN, ALIAS_TEXT },
	{ "memory_mb", "memory", OPERATION_RUN, ALIAS_SAME },
	{ "vcpus", "cpus", OPERATION_CREATE, ALIAS_TEXT },
	{ "memory_mb", "memory", OPERATION_CREATE, ALIAS_SAME },
	{ "source_url", NULL, OPERATION_CREATE, ALIAS_REFUSED },
	{ "source_ref", NULL, OPERATION_CREATE, ALIAS_REFUSED },
	{ "volumes", NULL, OPERATION_CREATE, ALIAS_REFUSED },
	{ "secrets", NULL, OPERATION_CREATE, ALIAS_REFUSED },
	{ "secret_files", NULL, OPERATION_CREATE, ALIAS_REFUSED },
	{ "workdir", "cwd", OPERATION_EXEC, ALIAS_SAME },
	{ "sudo", "user", OPERATION_EXEC, ALIAS_ROOT },
	{ "workdir", "cwd", OPERATION_EXEC_START, ALIAS_SAME },
	{ "sudo", "user", OPERATION_EXEC_START, ALIAS_ROOT },
	{ "name", "comment", OPERATION_CHECKPOINT, ALIAS_SAME },
	{ "sandbox", "name", OPERATION_CHECKPOINT, ALIAS_SAME },
};

static const struct alias *find_alias(enum operation_id id, const char *name)
{
	for (size_t i = 0; i < COUNT_OF(aliases); i++)
		if (aliases[i].operation == id && strcmp(aliases[i].name, name) == 0)
			return &aliases[i];
	return NULL;
}

/* Refuses a parameter that is given twice, by two names or also in the path. */
static int put(json_t *args, const char *name, json_t *value, struct err *e)
{
	if (json_object_get(args, name)) {
		json_decref(value);
		return err_set(e, ERR_INVALID, "%s: it is given twice", name);
	}
	return json_object_set_new(args, name, value);
}

static int put_alias(json_t *args, const struct alias *a, json_t *value, struct err *e)
{
	switch (a->kind) {
	case ALIAS_SAME:
		return put(args, a->as, json_incref(value), e);
	case ALIAS_TEXT:
		if (!json_is_integer(value))
			return err_set(e, ERR_INVALID, "%s: a whole number is expected", a->name);
		return put(args, a->as,
			   json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value)), e);
	case ALIAS_ROOT:
	case ALIAS_NOTHING:
		if (!json_is_boolean(value))
			return err_set(e, ERR_INVALID, "%s: true or false is expected", a->name);
		return a->kind == ALIAS_ROOT && json_is_true(value)
			       ? put(args, a->as, json_string("root"), e)
			       : 0;
	case ALIAS_REFUSED:
		break;
	}
	return err_set(e, ERR_UNSUPPORTED, "%s: a caller cannot have what only the user can give",
		       a->name);
}

/* "env" is an object, or a list of "K=V". */
static int put_env(json_t *args, json_t *env, struct err *e)
{
	json_t *map, *entry;
	size_t index;

	if (!json_is_array(env))
		return put(args, "env", json_incref(env), e);
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
	return put(args, "env", map, e);
}

/* Adds the body's members to the path's arguments. Takes ownership of `args`, even on failure. */
static int read_body(enum operation_id id, const json_t *body, json_t *args, json_t **ret,
		     struct err *e)
{
	const char *key;
	json_t *value;

	if (!json_is_object(body)) {
		json_decref(args);
		return err_set(e, ERR_INVALID, "the body is not an object");
	}
	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		const struct alias *alias = find_alias(id, key);
		int r = alias                     ? put_alias(args, alias, value, e)
			: strcmp(key, "env") == 0 ? put_env(args, value, e)
						  : put(args, key, json_incref(value), e);

		if (r < 0) {
			json_decref(args);
			return -1;
		}
	}
	*ret = args;
	return 0;
}

int decode_expect_only(const json_t *body, const char *name, json_type kind, size_t max,
		       json_t **ret, struct err *e)
{
	json_t *found = json_object_get(body, name), *value;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)body, key,
			    value) if (strcmp(key, name) !=
				       0) return err_set(e, ERR_INVALID,
							 "unknown parameter '%.60s'", key);
	if (!found || json_typeof(found) != kind ||
	    (kind == JSON_ARRAY ? json_array_size(found) : json_object_size(found)) > max)
		return err_set(e, ERR_INVALID, "%s: %s is expected, of at most %zu", name,
			       kind == JSON_ARRAY ? "a list" : "an object", max);
	*ret = found;
	return 0;
}

/* ---- queries ---- */

/* Converts a query parameter to JSON of its type; NULL: not of that type. */
static json_t *query_value(const struct operation_field *f, const char *text)
{
	if (f->type == OPERATION_INTEGER) {
		size_t len = strlen(text);

		return len > 0 && len < 19 && strspn(text, "0123456789") == len
			       ? json_integer(strtoll(text, NULL, 10))
			       : NULL;
	}
	if (f->type == OPERATION_FLAG)
		return strcmp(text, "true") == 0    ? json_true()
		       : strcmp(text, "false") == 0 ? json_false()
						    : NULL;
	return json_string(text);
}

static bool is_listed(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names; at && *at; at += strspn(at, " ")) {
		size_t own = strcspn(at, " ");

		if (own == len && strncmp(at, name, len) == 0)
			return true;
		at += own;
	}
	return false;
}

static int put_query(const struct route *r, json_t *args, const struct query_pair *pair,
		     struct err *e)
{
	const struct operation_field *f = NULL;
	json_t *value;

	if (is_listed(r->query, pair->name))
		f = operation_param(operation_get(r->operation), pair->name);
	if (!f)
		return err_set(e, ERR_INVALID, "unknown parameter '%.60s' in the query%s%s%s",
			       pair->name, r->query ? " (this route knows: " : "",
			       r->query ? r->query : "", r->query ? ")" : "");
	value = query_value(f, pair->value);
	if (!value)
		return err_set(e, ERR_INVALID, "%s: %s is expected", f->name,
			       f->type == OPERATION_INTEGER ? "a whole number"
			       : f->type == OPERATION_FLAG  ? "true or false"
							    : "text in UTF-8");
	return put(args, f->name, value, e);
}

int decode_add_query(const struct webcall *x, json_t *args, struct err *e)
{
	const char *at = connection_request(x->connection)->query;
	struct query_pair pair = { 0 };
	int r;

	while ((r = query_next(&at, &pair)) == 1) {
		int ok = put_query(x->route, args, &pair, e);

		query_pair_done(&pair);
		if (ok < 0)
			return -1;
	}
	return r < 0 ? err_set(e, ERR_INVALID, "the query has a bad escape") : 0;
}

/* ---- arguments ---- */

static void take_output(struct webcall *x)
{
	x->running.call.on_output =
		x->route->flags & ROUTE_STREAM ? webcall_on_streamed : webcall_on_combined;
}

int decode_run(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	take_output(x);
	return read_body(OPERATION_RUN, body, json_object(), ret, e);
}

int decode_batched(const json_t *item, json_t **ret, struct err *e)
{
	return read_body(OPERATION_RUN, item, json_object(), ret, e);
}

int decode_exec(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	take_output(x);
	x->commands = json_incref(json_object_get(body, "command"));
	return read_body(x->route->operation, body, json_pack("{s:s}", "name", x->parts[0]), ret,
			 e);
}

int decode_create(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)x;
	return read_body(OPERATION_CREATE, body, json_object(), ret, e);
}

int decode_name(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "name", x->parts[0]);
	return 0;
}

int decode_uuid(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "uuid", x->parts[0]);
	return 0;
}

int decode_nothing(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)x;
	(void)body;
	(void)e;
	*ret = json_object();
	return 0;
}

int decode_detached(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s, s:s}", "name", x->parts[0], "id", x->parts[1]);
	return 0;
}

/* For a body with parameters about the sandbox in the path. */
int decode_about(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	return read_body(x->route->operation, body, json_pack("{s:s}", "name", x->parts[0]), ret,
			 e);
}

int decode_snapshot(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	const json_t *name = json_object_get(body, "name");

	if (!json_is_string(json_object_get(body, "sandbox")))
		return err_set(e, ERR_INVALID, "sandbox: a string is expected");
	if (json_is_string(name)) {
		x->part_count = 2;
		x->parts[0] = mem_dup("");
		x->parts[1] = mem_dup(json_string_value(name));
	}
	return read_body(OPERATION_CHECKPOINT, body, json_object(), ret, e);
}

int decode_id(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "id", x->parts[0]);
	return 0;
}

/* ---- files ---- */

static void on_raw(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	struct webcall *x = context;

	if (stream != CALL_STDOUT || !x->connection)
		return;
	if (!x->has_begun)
		connection_begin(x->connection, 200, WEBCALL_BYTES_TYPE(x), NULL);
	x->has_begun = true;
	connection_send(x->connection, bytes, len);
}

static bool wants_raw(const struct connection *c)
{
	const char *accept = head_get(&connection_request(c)->head, "accept");

	return accept && strcasecmp(accept, "application/octet-stream") == 0;
}

/* Paths in a URL are absolute, by the published SDK's contract, except that "~" is the home. */
static json_t *file_args(const struct webcall *x)
{
	const char *rest = x->parts[1];
	bool is_home = strcmp(rest, "~") == 0 || strncmp(rest, "~/", 2) == 0;
	cleanup_free char *path = mem_format("%s%s", is_home ? "" : "/", rest);

	return json_pack("{s:s, s:s}", "name", x->parts[0], "path", path);
}

static void take_raw(struct webcall *x)
{
	x->is_raw = true;
	x->running.call.on_output = on_raw;
}

int decode_file_read(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	x->is_whole = true;
	if (wants_raw(x->connection))
		take_raw(x);
	return 0;
}

int decode_file_write(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	if (!x->running.call.has_more_input)
		return read_body(OPERATION_FILE_WRITE, body, file_args(x), ret, e);
	*ret = file_args(x);
	return json_object_set_new(*ret, "content", json_string(""));
}

int decode_file(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	return 0;
}

int decode_upload(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	if (!x->running.call.has_more_input)
		return decode_about(x, body, ret, e);
	x->is_raw = true;
	*ret = json_pack("{s:s, s:s}", "name", x->parts[0], "tar", "");
	return 0;
}

int decode_download(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	take_raw(x);
	return decode_name(x, body, ret, e);
}
