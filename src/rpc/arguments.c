/* arguments - the arguments of a call; see arguments.h. */
#include "rpc/arguments.h"

#include "rpc/wire.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/suggest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX_BYTES (16u << 20)
#define FIELDS_MAX 32u

void arguments_init(struct arguments *a)
{
	*a = (struct arguments){ 0 };
	buf_init(&a->rows, ROWS_MAX_BYTES);
	buf_init(&a->input, OPERATION_CONTENT_MAX_BYTES);
	buf_init(&a->contents, OPERATION_CONTENT_MAX_BYTES);
}

void arguments_done(struct arguments *a)
{
	buf_done(&a->rows);
	buf_done(&a->input);
	buf_done(&a->contents);
}

static void put(struct arguments *a, const char *name, const char *text)
{
	cleanup_free char *key = mem_format(WIRE_PARAM "%s", name);

	keyrows_put(&a->rows, key, text);
}

/* Expects a string without NULs, which no path, command or variable can have. */
static int expect_text(const char *name, const json_t *v, const char **ret, struct err *e)
{
	if (!json_is_string(v))
		return err_set(e, ERR_INVALID, "%s: a string is expected", name);
	if (strlen(json_string_value(v)) != json_string_length(v))
		return err_set(e, ERR_INVALID, "%s: it has a NUL character", name);
	*ret = json_string_value(v);
	return 0;
}

static int read_text(const struct operation_field *f, const json_t *v, struct arguments *a,
		     struct err *e)
{
	const char *text = NULL;
	cleanup_buf struct buf known;

	buf_init(&known, BUF_TEXT_MAX_BYTES);
	if (expect_text(f->name, v, &text, e) < 0)
		return -1;
	if (strcmp(f->name, "stdin") == 0) {
		buf_add(&a->input, text, strlen(text));
		a->has_input = true;
		return 0;
	}
	for (const char *const *choice = f->choices; choice && *choice; choice++) {
		if (strcmp(*choice, text) == 0)
			break;
		buf_addf(&known, "%s%s", known.len ? ", " : "", *choice);
		if (!choice[1])
			return err_set(e, ERR_INVALID, "%s: no %s '%.60s' (use one of %s)", f->name,
				       f->name, text, buf_text(&known));
	}
	put(a, f->name, text);
	return 0;
}

static int read_command(const struct operation_field *f, const json_t *v, struct arguments *a,
			struct err *e)
{
	const char *text = NULL;

	if (json_is_string(v)) {
		if (expect_text(f->name, v, &text, e) < 0)
			return -1;
		if (text[strspn(text, " \t\r\n")] == '\0')
			return err_set(e, ERR_INVALID, "%s: it is empty", f->name);
		put(a, "command_text", text);
		return 0;
	}
	if (!json_is_array(v) || json_array_size(v) == 0)
		return err_set(e, ERR_INVALID,
			       "%s: an array of strings is expected, or one string for a shell",
			       f->name);
	if (json_array_size(v) > OPERATION_WORDS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %u words", f->name,
			       OPERATION_WORDS_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (expect_text(f->name, json_array_get(v, i), &text, e) < 0)
			return -1;
		if (i == 0 && !text[0])
			return err_set(e, ERR_INVALID, "%s: the program's name is empty", f->name);
		put(a, f->name, text);
	}
	return 0;
}

static int read_integer(const struct operation_field *f, const json_t *v, struct arguments *a,
			struct err *e)
{
	cleanup_free char *text = NULL;
	json_int_t number;

	/* some programs send 30000 as 30000.0 */
	if (json_is_real(v) && json_real_value(v) >= -9007199254740992.0 &&
	    json_real_value(v) <= 9007199254740992.0 &&
	    json_real_value(v) == (double)(json_int_t)json_real_value(v))
		number = (json_int_t)json_real_value(v);
	else if (json_is_integer(v))
		number = json_integer_value(v);
	else
		return err_set(e, ERR_INVALID, "%s: a whole number is expected", f->name);
	if (number < f->min || number > f->max)
		return err_set(e, ERR_INVALID,
			       "%s: %" PRId64 " is not between %" PRId64 " and %" PRId64, f->name,
			       (int64_t)number, f->min, f->max);
	text = mem_format("%" PRId64, (int64_t)number);
	put(a, f->name, text);
	if (strcmp(f->name, "timeout_ms") == 0)
		a->timeout_ms = (uint64_t)number;
	return 0;
}

static int read_amount(const struct operation_field *f, const json_t *v, struct arguments *a,
		       struct err *e)
{
	cleanup_free char *text = NULL;

	if (!json_is_integer(v))
		return read_text(f, v, a, e);
	if (json_integer_value(v) < 1 || json_integer_value(v) > INT32_MAX)
		return err_set(e, ERR_INVALID, "%s: not a number of MiB", f->name);
	text = mem_format("%" PRId64 "MiB", (int64_t)json_integer_value(v));
	put(a, f->name, text);
	return 0;
}

static int read_map(const struct operation_field *f, const json_t *v, struct arguments *a,
		    struct err *e)
{
	const char *key;
	json_t *value;

	if (!json_is_object(v))
		return err_set(e, ERR_INVALID, "%s: an object of strings is expected", f->name);
	if (json_object_size(v) > OPERATION_ENV_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %u names", f->name, OPERATION_ENV_MAX);
	json_object_foreach((json_t *)(uintptr_t)v, key, value)
	{
		const char *text = NULL;
		cleanup_free char *pair = NULL;

		if (!key[0] || strpbrk(key, "= \t\n"))
			return err_set(e, ERR_INVALID, "%s: '%.60s' is not a name", f->name, key);
		if (expect_text(f->name, value, &text, e) < 0)
			return -1;
		pair = mem_format("%s=%s", key, text);
		put(a, f->name, pair);
	}
	return 0;
}

/* ---- contents ---- */

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static int add_base64(const char *name, const char *text, size_t len, struct buf *out,
		      struct err *e)
{
	uint32_t bits = 0;
	unsigned held = 0;
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		char byte;

		if (strchr(" \t\r\n=", text[i]) && text[i])
			continue;
		if (digit_of(text[i]) < 0)
			return err_set(e, ERR_INVALID, "%s: not base64 at character %zu", name,
				       i + 1);
		bits = bits << 6 | (uint32_t)digit_of(text[i]);
		held += 6;
		digits++;
		if (held < 8)
			continue;
		held -= 8;
		byte = (char)(bits >> held & 0xff);
		buf_add(out, &byte, 1);
	}
	if (digits % 4 == 1)
		return err_set(e, ERR_INVALID, "%s: the base64 is cut short", name);
	return 0;
}

static int add_content(const char *name, const json_t *v, const json_t *encoding, struct buf *out,
		       struct err *e)
{
	const char *kind = encoding ? json_string_value(encoding) : "utf8";

	if (!json_is_string(v))
		return err_set(e, ERR_INVALID, "%s: a string is expected", name);
	if (!kind || (strcmp(kind, "utf8") != 0 && strcmp(kind, "base64") != 0))
		return err_set(e, ERR_INVALID, "encoding: use utf8 or base64");
	if (strcmp(kind, "utf8") == 0)
		buf_add(out, json_string_value(v), json_string_length(v));
	else if (add_base64(name, json_string_value(v), json_string_length(v), out, e) < 0)
		return -1;
	if (out->is_cut)
		return err_set(e, ERR_LIMIT, "%s: more than %u bytes in one call", name,
			       OPERATION_CONTENT_MAX_BYTES);
	return 0;
}

static int add_file(const char *path, const json_t *content, const json_t *encoding,
		    struct arguments *a, struct err *e)
{
	size_t before = a->contents.len;
	cleanup_free char *text = NULL;

	if (!path[0] || strchr(path, '\n'))
		return err_set(e, ERR_INVALID, "files: a path is empty or has a line feed");
	if (add_content("files", content, encoding, &a->contents, e) < 0)
		return -1;
	text = mem_format("%s\n%zu", path, a->contents.len - before);
	put(a, "files", text);
	return 0;
}

static bool is_file_member(const char *key)
{
	return strcmp(key, "path") == 0 || strcmp(key, "content") == 0 ||
	       strcmp(key, "encoding") == 0;
}

static int read_files(const struct operation_field *f, const json_t *v, struct arguments *a,
		      struct err *e)
{
	const char *path = NULL, *key = NULL;
	json_t *value, *member;

	if ((json_is_object(v) ? json_object_size(v) : json_array_size(v)) > OPERATION_FILES_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %u", f->name, OPERATION_FILES_MAX);
	if (json_is_object(v)) {
		json_object_foreach((json_t *)(uintptr_t)v, path,
				    value) if (add_file(path, value, NULL, a, e) < 0) return -1;
		return 0;
	}
	if (!json_is_array(v))
		return err_set(e, ERR_INVALID, "%s: an object or an array is expected", f->name);
	for (size_t i = 0; i < json_array_size(v); i++) {
		value = json_array_get(v, i);
		if (!json_is_object(value))
			return err_set(e, ERR_INVALID, "%s: objects are expected", f->name);
		json_object_foreach(value, key, member)
		{
			if (!is_file_member(key))
				return err_set(e, ERR_INVALID,
					       "%s: unknown member '%.60s' (use path, content, "
					       "encoding)",
					       f->name, key);
		}
		if (expect_text("files: path", json_object_get(value, "path"), &path, e) < 0 ||
		    add_file(path, json_object_get(value, "content"),
			     json_object_get(value, "encoding"), a, e) < 0)
			return -1;
	}
	return 0;
}

static int read_bytes(const struct operation_field *f, const json_t *v, struct arguments *a,
		      struct err *e)
{
	json_t *encoding = json_string("base64");
	int r = add_content(f->name, v, encoding, &a->input, e);

	json_decref(encoding);
	a->has_input = true;
	return r;
}

static int read_list(const struct operation_field *f, const json_t *v, struct arguments *a,
		     struct err *e)
{
	const char *text = NULL;

	if (!json_is_array(v) || json_array_size(v) > OPERATION_PATTERNS_MAX)
		return err_set(e, ERR_INVALID, "%s: an array of at most %u strings is expected",
			       f->name, OPERATION_PATTERNS_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (expect_text(f->name, json_array_get(v, i), &text, e) < 0)
			return -1;
		put(a, f->name, text);
	}
	return 0;
}

/* ---- all types ---- */

static int read_one(const struct operation_field *f, const json_t *v, const json_t *all,
		    struct arguments *a, struct err *e)
{
	switch (f->type) {
	case OPERATION_TEXT:
		return read_text(f, v, a, e);
	case OPERATION_COMMAND:
		return read_command(f, v, a, e);
	case OPERATION_INTEGER:
		return read_integer(f, v, a, e);
	case OPERATION_AMOUNT:
		return read_amount(f, v, a, e);
	case OPERATION_MAP:
		return read_map(f, v, a, e);
	case OPERATION_FILES:
		return read_files(f, v, a, e);
	case OPERATION_FLAG:
		if (!json_is_boolean(v))
			return err_set(e, ERR_INVALID, "%s: true or false is expected", f->name);
		put(a, f->name, json_is_true(v) ? "true" : "false");
		return 0;
	case OPERATION_CONTENT:
		a->has_input = true;
		return add_content(f->name, v, json_object_get(all, "encoding"), &a->input, e);
	case OPERATION_BYTES:
		return read_bytes(f, v, a, e);
	case OPERATION_TEXTS:
		return read_list(f, v, a, e);
	case OPERATION_OBJECT:
	case OPERATION_OBJECTS:
		break;
	}
	return err_set(e, ERR_INVALID, "%s: not a parameter", f->name);
}

static int unknown(const struct operation *o, const char *key, struct err *e)
{
	const char *names[FIELDS_MAX];
	const char *nearest;
	size_t count = 0;

	for (const struct operation_field *f = o->params; f->name && count < FIELDS_MAX; f++)
		names[count++] = f->name;
	nearest = suggest_nearest(key, names, count);
	return err_set(e, ERR_INVALID, "%s has no parameter '%.60s'%s%s%s", o->name, key,
		       nearest ? " (did you mean '" : "", nearest ? nearest : "",
		       nearest ? "'?)" : "");
}

int arguments_read(const struct operation *o, const json_t *json, struct arguments *ret,
		   struct err *e)
{
	const char *key;
	json_t *value;

	keyrows_put(&ret->rows, WIRE_OPERATION, o->name);
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		const struct operation_field *f = operation_param(o, key);

		if (!f)
			return unknown(o, key, e);
		if (read_one(f, value, json, ret, e) < 0)
			return -1;
	}
	for (const struct operation_field *f = o->params; f->name; f++)
		if (f->is_required && !json_object_get(json, f->name))
			return err_set(e, ERR_INVALID, "%s: it is missing", f->name);
	if (operation_param(o, "timeout_ms") && o->hints & OPERATION_NEEDS_PROCESS &&
	    !json_object_get(json, "timeout_ms")) {
		cleanup_free char *text = mem_format("%d", OPERATION_TIMEOUT_DEFAULT_MS);

		put(ret, "timeout_ms", text);
		ret->timeout_ms = OPERATION_TIMEOUT_DEFAULT_MS;
	}
	if (ret->rows.is_cut || ret->input.is_cut)
		return err_set(e, ERR_LIMIT, "the arguments are too large");
	return 0;
}

/* ---- schemas ---- */

static json_t *string_array(const char *const *texts)
{
	json_t *list = json_array();

	for (; *texts; texts++)
		(void)json_array_append_new(list, json_string(*texts));
	return list;
}

static json_t *file_schema(void)
{
	return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:[s,s]}}, s:[s,s]}", "type", "object",
			 "properties", "path", "type", "string", "content", "type", "string",
			 "encoding", "type", "string", "enum", "utf8", "base64", "required", "path",
			 "content");
}

static json_t *field_schema(const struct operation_field *f, bool has_help)
{
	json_t *s = json_object();

	switch (f->type) {
	case OPERATION_TEXT:
	case OPERATION_CONTENT:
	case OPERATION_BYTES:
		(void)json_object_set_new(s, "type", json_string("string"));
		if (f->choices)
			(void)json_object_set_new(s, "enum", string_array(f->choices));
		break;
	case OPERATION_COMMAND:
		(void)json_object_set_new(s, "anyOf",
					  json_pack("[{s:s, s:{s:s}, s:i}, {s:s}]", "type", "array",
						    "items", "type", "string", "minItems", 1,
						    "type", "string"));
		break;
	case OPERATION_INTEGER:
		(void)json_object_set_new(s, "type", json_string("integer"));
		if (f->max) {
			(void)json_object_set_new(s, "minimum", json_integer(f->min));
			if (f->max < INT64_MAX)
				(void)json_object_set_new(s, "maximum", json_integer(f->max));
		}
		break;
	case OPERATION_FLAG:
		(void)json_object_set_new(s, "type", json_string("boolean"));
		break;
	case OPERATION_AMOUNT:
		(void)json_object_set_new(s, "anyOf",
					  json_pack("[{s:s}, {s:s, s:i}]", "type", "string", "type",
						    "integer", "minimum", 1));
		break;
	case OPERATION_MAP:
		(void)json_object_set_new(s, "type", json_string("object"));
		(void)json_object_set_new(s, "additionalProperties",
					  json_pack("{s:s}", "type", "string"));
		break;
	case OPERATION_FILES:
		(void)json_object_set_new(s, "anyOf",
					  json_pack("[{s:s, s:{s:s}}, {s:s, s:o}]", "type",
						    "object", "additionalProperties", "type",
						    "string", "type", "array", "items",
						    file_schema()));
		break;
	case OPERATION_TEXTS:
		(void)json_object_set_new(s, "type", json_string("array"));
		(void)json_object_set_new(s, "items", json_pack("{s:s}", "type", "string"));
		break;
	case OPERATION_OBJECT:
		(void)json_object_set_new(s, "type", json_string("object"));
		break;
	case OPERATION_OBJECTS:
		(void)json_object_set_new(s, "type", json_string("array"));
		(void)json_object_set_new(s, "items", json_pack("{s:s}", "type", "object"));
		break;
	}
	if (has_help)
		(void)json_object_set_new(s, "description", json_string(f->help));
	return s;
}

static json_t *fields_schema(const struct operation_field *fields, bool has_help, bool has_unlisted)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_object();

	for (; fields->name; fields++) {
		if (fields->is_unlisted && !has_unlisted)
			continue;
		(void)json_object_set_new(properties, fields->name, field_schema(fields, has_help));
		if (fields->is_required)
			(void)json_array_append_new(required, json_string(fields->name));
	}
	(void)json_object_set_new(schema, "type", json_string("object"));
	(void)json_object_set_new(schema, "properties", properties);
	if (json_array_size(required))
		(void)json_object_set_new(schema, "required", required);
	else
		json_decref(required);
	return schema;
}

json_t *arguments_schema(const struct operation *o, bool has_unlisted)
{
	json_t *schema = fields_schema(o->params, true, has_unlisted);

	(void)json_object_set_new(schema, "additionalProperties", json_false());
	return schema;
}

json_t *arguments_result_schema(const struct operation *o)
{
	return fields_schema(o->results, false, true);
}
