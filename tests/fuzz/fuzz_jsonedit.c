/*
 * fuzz_jsonedit - sets one entry in JSON settings, and removes it again.
 *
 * The first byte selects the flags, the rest is the document. An error names a position and has no
 * control characters. After an edit the document is still valid JSON, the entry has its new value,
 * and everything else has the same meaning, according to jansson if it can parse the document.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/jsonedit.h"

#include <jansson.h>
#include <string.h>

#define NAME "fuzz.json"
#define VALUE "{\"command\":\"agentkernel\",\"args\":[\"mcp\",\"server\"]}"

static const char *const keys[] = { "m", "a", NULL };

static void check_refusal(const struct err *e, size_t size)
{
	unsigned line = 0, column = 0;
	char space = 0;

	FUZZ_CHECK(e->code == ERR_INVALID || e->code == ERR_LIMIT || e->code == ERR_EXISTS);
	FUZZ_CHECK(sscanf(e->msg, NAME ":%u:%u:%c", &line, &column, &space) == 3);
	FUZZ_CHECK(line >= 1 && line <= size + 1 && column >= 1 && column <= size + 1);
	FUZZ_CHECK(space == ' ');
	for (const char *p = e->msg; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void decrefp(json_t **j)
{
	json_decref(*j);
}

/* NULL if jansson cannot parse it: comments, lone surrogates, huge numbers; a NUL ends its text. */
static json_t *load(const struct jsonscan_text *t)
{
	bool has_mark = t->len >= 3 && memcmp(t->bytes, "\xef\xbb\xbf", 3) == 0;

	if (memchr(t->bytes, '\0', t->len))
		return NULL;
	return json_loadb(t->bytes + (has_mark ? 3 : 0), t->len - (has_mark ? 3 : 0),
			  JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* Removes our entry, and the object around it if that becomes empty. */
static void drop_entry(json_t *document)
{
	json_t *m = json_object_get(document, keys[0]);

	(void)json_object_del(m, keys[1]);
	if (json_is_object(m) && json_object_size(m) == 0)
		(void)json_object_del(document, keys[0]);
}

static void check_rest(const struct jsonscan_text *before, const struct jsonscan_text *after)
{
	CLEANUP(decrefp) json_t *old = load(before);
	CLEANUP(decrefp) json_t *new = load(after);

	if (!old)
		return;
	FUZZ_CHECK(new);
	drop_entry(old);
	drop_entry(new);
	FUZZ_CHECK(json_equal(old, new));
}

static void expect_state(const struct jsonscan_text *t, unsigned flags, enum jsonedit_state state)
{
	enum jsonedit_state found = JSONEDIT_DIFFERENT;
	struct err e = { 0 };

	FUZZ_CHECK(jsonedit_look(t, keys, VALUE, flags, &found, &e) == 0);
	FUZZ_CHECK(found == state);
}

static void check_remove(const struct jsonscan_text *t, unsigned flags)
{
	cleanup_free char *text = NULL;
	struct jsonscan_text removed = { .name = NAME };
	struct err e = { 0 };
	int r = jsonedit_remove(t, keys, flags, &text, &removed.len, &e);

	if (r < 0)
		check_refusal(&e, t->len);
	if (r <= 0)
		return;
	removed.bytes = text;
	expect_state(&removed, flags, JSONEDIT_ABSENT);
	check_rest(t, &removed);
	(void)jsonedit_is_empty(text, removed.len);
}

static void check_set(const struct jsonscan_text *t, unsigned flags)
{
	cleanup_free char *text = NULL;
	char *again = NULL;
	struct jsonscan_text set = { .name = NAME };
	size_t len = 0;
	struct err e = { 0 };
	int r = jsonedit_set(t, keys, VALUE, flags, &text, &set.len, &e);

	if (r < 0)
		check_refusal(&e, t->len);
	if (r <= 0)
		return;
	set.bytes = text;
	expect_state(&set, flags, JSONEDIT_SAME);
	FUZZ_CHECK(jsonedit_set(&set, keys, VALUE, flags, &again, &len, &e) == 0);
	check_rest(t, &set);
	check_remove(&set, flags);
}

/* Everything that jansson accepts is accepted. */
static void check_taken(const struct jsonscan_text *t)
{
	CLEANUP(decrefp) json_t *known = load(t);
	struct err e = { 0 };

	if (jsonscan_check(t, 0, &e) < 0)
		FUZZ_CHECK(!known || e.code == ERR_LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jsonscan_text t = { .name = NAME };
	unsigned flags;

	if (size == 0)
		return 0;
	flags = data[0] &
		(JSONEDIT_ALLOW_COMMENTS | JSONEDIT_ALLOW_TRAILING_COMMAS | JSONEDIT_REPLACE);
	t.bytes = (const char *)data + 1;
	t.len = size - 1;
	check_taken(&t);
	check_set(&t, flags);
	check_remove(&t, flags);
	return 0;
}
