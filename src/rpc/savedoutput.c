/* savedoutput - stores outputs that were too long for an answer; see savedoutput.h. */
#include "rpc/savedoutput.h"

#include "base/cleanup.h"
#include "base/tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static bool is_same_owner(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void forget(struct savedoutput *s)
{
	if (!s->id[0])
		return;
	output_done(&s->output[0]);
	output_done(&s->output[1]);
	*s = (struct savedoutput){ 0 };
}

void savedoutput_done(struct savedoutput_table *t)
{
	for (unsigned i = 0; i < SAVEDOUTPUT_MAX; i++)
		forget(&t->rows[i]);
}

/* Returns an empty row, or the row to replace. */
static struct savedoutput *choose_row(struct savedoutput_table *t, const char *owner)
{
	struct savedoutput *oldest = NULL, *own = NULL;
	unsigned own_count = 0;

	for (unsigned i = 0; i < SAVEDOUTPUT_MAX; i++) {
		struct savedoutput *s = &t->rows[i];

		if (!oldest || s->number < oldest->number)
			oldest = s;
		if (!s->id[0] || !is_same_owner(s->owner, owner))
			continue;
		own_count++;
		if (!own || s->number < own->number)
			own = s;
	}
	return owner && own_count >= SAVEDOUTPUT_OF_OWNER_MAX ? own : oldest;
}

json_t *savedoutput_keep(struct savedoutput_table *t, const char *owner, struct call *c,
			 json_t *result)
{
	struct savedoutput *s;
	uint64_t number = 0;
	json_t *told;

	if (!call_is_cut(c) || json_object_get(result, "error") ||
	    !(c->operation->hints & OPERATION_NEEDS_PROCESS) ||
	    getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return result;
	s = choose_row(t, owner);
	forget(s);
	*s = (struct savedoutput){ .owner = owner, .number = ++t->count };
	(void)snprintf(s->id, sizeof(s->id), "out-%016" PRIx64, number);
	for (int i = 0; i < 2; i++) {
		s->output[i] = c->output[i];
		output_init(&c->output[i]);
	}
	told = json_pack("{s:s}", "output_id", s->id);
	(void)json_object_update(told, result);
	json_decref(result);
	return told;
}

/* ---- reading ---- */

static uint64_t number_of(const json_t *arguments, const char *name, uint64_t otherwise)
{
	const json_t *v = json_object_get(arguments, name);

	return v ? (uint64_t)json_number_value(v) : otherwise;
}

static json_t *failure(const char *code, const char *words)
{
	return json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", words);
}

static json_t *read_part(const struct output *o, const struct tail_range *r)
{
	uint64_t offset = 0, length = 0;
	cleanup_buf struct buf bytes, text;
	size_t skip;

	tail_find(r, o->kept_bytes, &offset, &length);
	buf_init(&bytes, (size_t)length);
	buf_init(&text, 3 * (size_t)length);
	if (output_read(o, offset, (size_t)length, &bytes) < 0)
		return failure("system", "the output cannot be read");
	skip = tail_skip(r, buf_text(&bytes), bytes.len);
	output_add_utf8(&text, buf_text(&bytes) + skip, bytes.len - skip);
	return json_pack("{s:s%, s:I, s:I, s:b}", "output", buf_text(&text), text.len, "offset",
			 (json_int_t)offset + (json_int_t)skip, "next_offset",
			 (json_int_t)offset + (json_int_t)bytes.len, "running", 0);
}

static const struct savedoutput *find(const struct savedoutput_table *t, const char *owner,
				      const char *id)
{
	for (unsigned i = 0; id && i < SAVEDOUTPUT_MAX; i++)
		if (t->rows[i].id[0] && strcmp(t->rows[i].id, id) == 0 &&
		    is_same_owner(t->rows[i].owner, owner))
			return &t->rows[i];
	return NULL;
}

json_t *savedoutput_read(const struct savedoutput_table *t, const char *owner,
			 const json_t *arguments)
{
	const struct savedoutput *s =
		find(t, owner, json_string_value(json_object_get(arguments, "id")));
	const char *stream = json_string_value(json_object_get(arguments, "stream"));
	struct arguments checked;
	struct tail_range r;
	struct err e = { 0 };
	int ok;

	if (!s)
		return NULL;
	arguments_init(&checked);
	ok = arguments_read(operation_get(OPERATION_EXEC_OUTPUT), arguments, &checked, &e);
	arguments_done(&checked);
	if (ok < 0)
		return failure("invalid", e.msg);
	r = (struct tail_range){
		.has_offset = json_object_get(arguments, "offset"),
		.offset = number_of(arguments, "offset", 0),
		.length = number_of(arguments, "length", OPERATION_SHOWN_MAX_BYTES),
		.bytes = number_of(arguments, "tail_bytes", 0),
		.lines = number_of(arguments, "tail_lines", 0),
	};
	if (tail_check(&r, &e) < 0)
		return failure("invalid", e.msg);
	return read_part(&s->output[stream && strcmp(stream, "stderr") == 0], &r);
}
