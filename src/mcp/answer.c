/* answer - formats tools and results for the protocol; see answer.h. */
#include "mcp/answer.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "rpc/arguments.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES (8u << 20) /* clients give up at 10 MiB per line */

static void add_hint(json_t *hints, const char *name, bool value, bool otherwise)
{
	if (value != otherwise)
		(void)json_object_set_new(hints, name, json_boolean(value));
}

/* Defaults of the protocol are left out, because every model reads the list with every request. */
static json_t *annotations(unsigned hints)
{
	json_t *a = json_object();

	add_hint(a, "readOnlyHint", hints & OPERATION_READS_ONLY, false);
	if (!(hints & OPERATION_READS_ONLY)) {
		add_hint(a, "destructiveHint", hints & OPERATION_DESTROYS, true);
		add_hint(a, "idempotentHint", hints & OPERATION_IS_IDEMPOTENT, false);
	}
	add_hint(a, "openWorldHint", hints & OPERATION_IS_OPEN, true);
	return a;
}

/* Only results of commands need a schema; the others explain themselves. */
static json_t *tool(const struct operation *o)
{
	json_t *t = json_pack("{s:s, s:s, s:s, s:o}", "name", o->name, "title", o->title,
			      "description", o->help, "inputSchema", arguments_schema(o, false));
	json_t *hints = annotations(o->hints);

	if (o->hints & OPERATION_NEEDS_PROCESS)
		(void)json_object_set_new(t, "outputSchema", arguments_result_schema(o));
	if (json_object_size(hints))
		(void)json_object_set(t, "annotations", hints);
	json_decref(hints);
	return t;
}

json_t *answer_tools(void)
{
	json_t *list = json_array();

	for (unsigned id = 0; id < OPERATION_COUNT; id++)
		if (!(operation_get(id)->hints & OPERATION_IS_NO_TOOL))
			(void)json_array_append_new(list, tool(operation_get(id)));
	return list;
}

json_t *answer_failure(const char *text)
{
	return json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", text,
			 "isError", 1);
}

/* ---- a command's end, as text ---- */

static void add_denied(const json_t *result, struct buf *out)
{
	const json_t *list = json_object_get(result, "denied");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		const char *fix = json_string_value(json_object_get(d, "fix"));

		buf_addf(out, "denied: %s:%d, %s", json_string_value(json_object_get(d, "host")),
			 (int)json_integer_value(json_object_get(d, "port")),
			 json_string_value(json_object_get(d, "reason")));
		if (fix && fix[0])
			buf_addf(out, " (only the user can allow it: %s)", fix);
		buf_add_text(out, "\n");
	}
}

/* Appends the text of `name`, after a line that marks its beginning. */
static void add_stream(const json_t *result, const char *name, const char *size_name,
		       struct buf *out)
{
	const json_t *text = json_object_get(result, name);

	if (json_string_length(text) == 0)
		return;
	if (out->len && out->bytes[out->len - 1] != '\n')
		buf_add_text(out, "\n");
	buf_addf(out, "--- %s, %" JSON_INTEGER_FORMAT " bytes ---\n", name,
		 json_integer_value(json_object_get(result, size_name)));
	buf_add(out, json_string_value(text), json_string_length(text));
}

static void add_line(const json_t *result, const char *name, struct buf *out)
{
	const char *text = json_string_value(json_object_get(result, name));
	size_t len = text ? strlen(text) : 0;

	while (len > 0 && text[len - 1] == '\n')
		len--;
	if (len)
		buf_addf(out, "%.*s\n", (int)len, text);
}

/*
 * Our own text comes first; from the first "---" on it is the command's output, so nothing that it
 * prints can be mistaken for ours.
 */
static void format_end(const json_t *result, struct buf *out)
{
	const char *by = json_string_value(json_object_get(result, "ended_by"));
	const char *saved = json_string_value(json_object_get(result, "output_id"));

	if (saved)
		buf_addf(out,
			 "output_id %s: the output was cut, sandbox_exec_output with this id reads "
			 "all of it\n",
			 saved);
	buf_addf(out, "exit code %d",
		 (int)json_integer_value(json_object_get(result, "exit_code")));
	if (by && strcmp(by, "exit") != 0)
		buf_addf(out, ", ended by %s",
			 strcmp(by, "deadline") == 0 ? "its deadline (timeout_ms)"
			 : strcmp(by, "memory") == 0 ? "its memory limit"
						     : by);
	buf_addf(out, " (%d ms)\n",
		 (int)json_integer_value(json_object_get(result, "duration_ms")));
	add_line(result, "reason", out);
	add_denied(result, out);
	add_line(result, "notes", out);
	add_stream(result, "stdout", "stdout_bytes", out);
	add_stream(result, "stderr", "stderr_bytes", out);
}

/* jansson's strings must be valid UTF-8: nothing may be cut inside a character. */
static json_t *text_of(const struct operation *o, const json_t *result)
{
	cleanup_buf struct buf text;
	json_t *string;
	char *dump;

	if (o->hints & OPERATION_NEEDS_PROCESS) {
		buf_init(&text, TEXT_MAX_BYTES);
		format_end(result, &text);
		string = json_stringn(buf_text(&text), text.len);
		return string ? string : json_string("(the output cannot be shown)");
	}
	buf_init(&text, 1);
	dump = json_dumps(result, JSON_COMPACT);
	string = json_string(dump);
	free(dump);
	return string;
}

/*
 * Shortens a list that is too long for a model: drops the last names, or the oldest entries, and
 * adds their number to the result.
 */
static void shorten(const struct operation *o, json_t *result)
{
	bool is_by_name =
		o == operation_get(OPERATION_FILE_LIST) || o == operation_get(OPERATION_LIST);
	json_t *list = json_object_get(result, o == operation_get(OPERATION_LIST) ? "sandboxes"
										  : "entries");
	size_t bytes = 0, left_out = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		bytes += json_dumpb(json_array_get(list, i), NULL, 0, JSON_COMPACT) + 1;
	while (bytes > OPERATION_SHOWN_MAX_BYTES && json_array_size(list) > 1) {
		size_t at = is_by_name ? json_array_size(list) - 1 : 0;

		bytes -= json_dumpb(json_array_get(list, at), NULL, 0, JSON_COMPACT) + 1;
		(void)json_array_remove(list, at);
		left_out++;
	}
	if (!left_out)
		return;
	(void)json_object_set_new(result, "cut", json_true());
	(void)json_object_set_new(result, "left_out", json_integer((json_int_t)left_out));
}

json_t *answer_call(const struct operation *o, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	json_t *answer;

	if (error) {
		answer = answer_failure(json_string_value(json_object_get(error, "message")));
		json_decref(result);
		return answer;
	}
	shorten(o, result);
	answer = json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
			   text_of(o, result), "isError", 0);
	(void)json_object_set_new(answer, "structuredContent", result);
	return answer;
}
