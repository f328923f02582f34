/* answer - tools and their results in the protocol's form; see answer.h. */
#include "mcp/answer.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "ops/arguments.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES (8u << 20) /* clients give up at 10 MiB a line */

static json_t *tool(const struct operation *o)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", o->name,
			 "title", o->title, "description", o->help, "inputSchema",
			 arguments_schema(o), "outputSchema", arguments_result_schema(o),
			 "annotations", "title", o->title, "readOnlyHint",
			 (o->hints & OPERATION_READS_ONLY) != 0, "destructiveHint",
			 (o->hints & OPERATION_DESTROYS) != 0, "idempotentHint",
			 (o->hints & OPERATION_IS_IDEMPOTENT) != 0, "openWorldHint",
			 (o->hints & OPERATION_IS_OPEN) != 0);
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

/* ---- a command's end, in words ---- */

static void add_denied(const json_t *result, struct buf *out)
{
	const json_t *list = json_object_get(result, "denied");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		const char *fix = json_string_value(json_object_get(d, "fix"));

		buf_addf(out, "\ndenied: %s:%d, %s", json_string_value(json_object_get(d, "host")),
			 (int)json_integer_value(json_object_get(d, "port")),
			 json_string_value(json_object_get(d, "reason")));
		if (fix)
			buf_addf(out, " (the user can allow it with %s)", fix);
	}
}

static void add_stream(const json_t *result, const char *name, struct buf *out)
{
	const json_t *text = json_object_get(result, name);

	if (json_string_length(text) == 0)
		return;
	buf_addf(out, "\n%s:\n", name);
	buf_add(out, json_string_value(text), json_string_length(text));
	if (json_string_value(text)[json_string_length(text) - 1] == '\n')
		out->len--; /* one is added before whatever follows */
}

static void format_end(const json_t *result, struct buf *out)
{
	const char *by = json_string_value(json_object_get(result, "ended_by"));
	const char *notes = json_string_value(json_object_get(result, "notes"));
	const char *kept = json_string_value(json_object_get(result, "output_id"));

	buf_addf(out, "exit code %d",
		 (int)json_integer_value(json_object_get(result, "exit_code")));
	if (by && strcmp(by, "exit") != 0)
		buf_addf(out, ", ended by %s",
			 strcmp(by, "deadline") == 0 ? "its deadline (timeout_ms)"
			 : strcmp(by, "memory") == 0 ? "its memory limit"
						     : by);
	buf_addf(out, " (%d ms)", (int)json_integer_value(json_object_get(result, "duration_ms")));
	add_stream(result, "stdout", out);
	add_stream(result, "stderr", out);
	add_denied(result, out);
	if (notes)
		buf_addf(out, "\n%s", notes);
	if (kept)
		buf_addf(out, "\nAll of the output: sandbox_exec_output with id %s.", kept);
}

/* A string of jansson's must be UTF-8 to the end: nothing is cut inside a character. */
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

json_t *answer_call(const struct operation *o, json_t *result)
{
	const json_t *error = json_object_get(result, "error");
	json_t *answer;

	if (error) {
		answer = answer_failure(json_string_value(json_object_get(error, "message")));
		json_decref(result);
		return answer;
	}
	answer = json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
			   text_of(o, result), "isError", 0);
	(void)json_object_set_new(answer, "structuredContent", result);
	return answer;
}
