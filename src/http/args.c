/* args - the arguments of an operation, from each route's request; see args.h. */
#include "http/args.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>
#include <strings.h>

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

int args_run(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	static const char *const names[] = {
		"command", "image", "profile", "compatibility_mode", "network", "memory",
		"cwd",     "env",   "files",   "timeout_ms",         "stdin",   NULL
	};

	if (expect_object(body, e) < 0)
		return -1;
	*ret = json_object();
	copy_members(*ret, body, names);
	x->running.call.on_output =
		x->route->flags & ROUTE_STREAM ? webcall_on_streamed : webcall_on_combined;
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

int args_exec(struct webcall *x, json_t *body, json_t **ret, struct err *e)
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
	x->running.call.on_output =
		x->route->flags & ROUTE_STREAM ? webcall_on_streamed : webcall_on_combined;
	*ret = args;
	return 0;
}

int args_create(struct webcall *x, json_t *body, json_t **ret, struct err *e)
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

int args_name(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "name", x->parts[0]);
	return 0;
}

int args_uuid(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s}", "uuid", x->parts[0]);
	return 0;
}

int args_nothing(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)x;
	(void)body;
	(void)e;
	*ret = json_object();
	return 0;
}

int args_detached(struct webcall *x, json_t *body, json_t **ret, struct err *e)
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

int args_extend(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	if (!json_is_string(json_object_get(body, "by")))
		return err_set(e, ERR_INVALID, "by: a duration is expected, such as '30m'");
	*ret = json_pack("{s:s, s:O}", "name", x->parts[0], "by", json_object_get(body, "by"));
	return 0;
}

int args_snapshot(struct webcall *x, json_t *body, json_t **ret, struct err *e)
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

int args_id(struct webcall *x, json_t *body, json_t **ret, struct err *e)
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
		connection_begin(x->connection, 200, "application/octet-stream", NULL);
	x->has_begun = true;
	connection_send(x->connection, bytes, len);
}

static bool wants_raw(const struct connection *c)
{
	const char *accept = head_get(&connection_request(c)->head, "accept");

	return accept && strcasecmp(accept, "application/octet-stream") == 0;
}

static json_t *file_args(const struct webcall *x)
{
	cleanup_free char *path = mem_format("/%s", x->parts[1]);

	return json_pack("{s:s, s:s}", "name", x->parts[0], "path", path);
}

int args_file_read(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	x->is_raw = wants_raw(x->connection);
	if (x->is_raw)
		x->running.call.on_output = on_raw;
	else
		(void)json_object_set_new(*ret, "length",
					  json_integer(OPERATION_CONTENT_MAX_BYTES));
	return 0;
}

int args_file_write(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	json_t *encoding = json_object_get(body, "encoding");

	*ret = file_args(x);
	if (x->running.call.has_more_input) {
		(void)json_object_set_new(*ret, "content", json_string(""));
		return 0;
	}
	if (!json_is_string(json_object_get(body, "content"))) {
		json_decref(*ret);
		*ret = NULL;
		return err_set(e, ERR_INVALID, "content: a string is expected");
	}
	(void)json_object_set(*ret, "content", json_object_get(body, "content"));
	if (encoding)
		(void)json_object_set(*ret, "encoding", encoding);
	return 0;
}

int args_file(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = file_args(x);
	return 0;
}
