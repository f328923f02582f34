/*
 * fuzz_mcp - lines from an MCP client: framing, dispatch, arguments; and messages about them.
 *
 * The input is split into lines. Calls are answered, dropped or left open depending on their id;
 * every valid request gets exactly one answer, and every message sent is one JSON object or a list
 * of them.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "mcp/protocol.h"
#include "rpc/arguments.h"
#include "rpc/hints.h"

#include <string.h>

#define OPEN_MAX 64u

struct world {
	struct protocol *protocol;
	struct protocol_call *open[OPEN_MAX];
	unsigned open_count;
};

static void on_send(void *context, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);

	(void)context;
	FUZZ_CHECK(text);
	FUZZ_CHECK(!strchr(text, '\n'));
	FUZZ_CHECK(json_is_object(message) || json_is_array(message));
	free(text);
	json_decref(message);
}

static void on_call(void *context, struct protocol_call *call)
{
	struct world *w = context;
	const struct operation *o = operation_get(call->operation);
	struct arguments a;
	struct err e = { 0 };

	arguments_init(&a);
	if (arguments_read(o, call->arguments, &a, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_INVALID || e.code == ERR_LIMIT);
		arguments_done(&a);
		protocol_answer_failure(w->protocol, call, e.msg);
		return;
	}
	/* a worker process reads complete rows, each with a value */
	FUZZ_CHECK(a.rows.len > 0 && a.rows.bytes[a.rows.len - 1] == '\0');
	for (size_t at = 0; at < a.rows.len; at += strlen(a.rows.bytes + at) + 1)
		FUZZ_CHECK(strchr(a.rows.bytes + at, '='));
	arguments_done(&a);
	protocol_tell_progress(w->protocol, call, "going on");
	if (json_is_string(call->id) && w->open_count < OPEN_MAX)
		w->open[w->open_count++] = call;
	else
		protocol_answer(w->protocol, call,
				json_pack("{s:i, s:s, s:s, s:i}", "exit_code", 0, "stdout", "x\n",
					  "stderr", "", "duration_ms", 1));
}

static void on_cancel(void *context, const json_t *id)
{
	struct world *w = context;

	for (unsigned i = 0; i < w->open_count; i++) {
		if (!json_equal(w->open[i]->id, id))
			continue;
		protocol_drop(w->protocol, w->open[i]);
		w->open[i] = w->open[--w->open_count];
		return;
	}
}

static unsigned on_count(void *context)
{
	return ((struct world *)context)->open_count;
}

/* A message may quote the caller's input: it stays text, of a bounded length. */
static void check_hints(const uint8_t *data, size_t size)
{
	char *text = mem_dup_bytes((const char *)data, size);
	struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	hints_translate_text(text, &out);
	FUZZ_CHECK(out.len <= 16 * strlen(text) && strlen(buf_text(&out)) == out.len);
	buf_done(&out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { 0 };
	const struct protocol_handler handler = {
		.context = &w,
		.send = on_send,
		.call = on_call,
		.cancel = on_cancel,
		.count_calls = on_count,
	};
	size_t begin = 0;

	check_hints(data, size);
	w.protocol = protocol_new(&handler);
	for (size_t i = 0; i <= size; i++) {
		if (i < size && data[i] != '\n')
			continue;
		protocol_take(w.protocol, (const char *)data + begin, i - begin);
		begin = i + 1;
	}
	while (w.open_count > 0)
		protocol_answer_failure(w.protocol, w.open[--w.open_count], "the end");
	protocol_free(w.protocol);
	return 0;
}
