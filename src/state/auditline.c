/*
 * auditline - one line of the audit log; see auditline.h.
 *
 * Writing. Every text has a budget in bytes of the line, escapes included. A longer text keeps its
 * beginning and its end; of too many arguments the first and the last are kept. A marker in place
 * of the omitted part gives its size, and `"cut":true` shows that the marker is ours, so that a
 * command cannot fake one.
 *
 * Reading. Keys are expected in the order and with the escapes that json.c writes. Texts are
 * unescaped in place, towards the start of the line, where there is always space: a text loses two
 * quotation marks and gains one NUL.
 *
 * Hostile input: commands and error messages when writing; when reading none by design, but the
 * disk may have been full in the middle of a line, and files can be edited.
 */
#include "state/auditline.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/suggest.h"
#include "base/timestamp.h"

#include <assert.h>
#include <string.h>

#define FRAME_BYTES 256u /* keys, numbers, time, type, brackets: 210 at most */
#define PROGRAM_MAX_BYTES 128u
#define SANDBOX_MAX_BYTES 256u
#define ID_MAX_BYTES 64u
#define OWNER_MAX_BYTES 128u
#define RESULT_MAX_BYTES 1024u
#define DETAIL_MAX_BYTES 768u
#define MARK_MAX_BYTES 48u /* "...[1234567890 bytes left out]..." */
#define WORD_FRAME_BYTES 3u

static const char *const type_words[] = {
	[AUDITLINE_CREATE] = "create",
	[AUDITLINE_START] = "start",
	[AUDITLINE_STOP] = "stop",
	[AUDITLINE_RESTART] = "restart",
	[AUDITLINE_PAUSE] = "pause",
	[AUDITLINE_RESUME] = "resume",
	[AUDITLINE_REMOVE] = "remove",
	[AUDITLINE_EXEC] = "exec",
	[AUDITLINE_KILL] = "kill",
	[AUDITLINE_ATTACH] = "attach",
	[AUDITLINE_FILE] = "file",
	[AUDITLINE_CHECKPOINT] = "checkpoint",
	[AUDITLINE_RESTORE] = "restore",
	[AUDITLINE_FORK] = "fork",
	[AUDITLINE_UPDATE] = "update",
	[AUDITLINE_NETWORK] = "network",
	[AUDITLINE_LIMIT] = "limit",
	[AUDITLINE_DENIED] = "denied",
	[AUDITLINE_PROTECTED] = "protected",
	[AUDITLINE_END] = "end",
	[AUDITLINE_GC] = "gc",
	[AUDITLINE_BUILD] = "build",
};
static_assert(COUNT_OF(type_words) == AUDITLINE_TYPE_COUNT, "a type has no word");

const char *auditline_type_word(enum auditline_type type)
{
	return type_words[type];
}

static bool find_type(const char *text, enum auditline_type *ret)
{
	for (int i = 0; i < AUDITLINE_TYPE_COUNT; i++) {
		if (strcmp(text, type_words[i]) != 0)
			continue;
		*ret = (enum auditline_type)i;
		return true;
	}
	return false;
}

int auditline_parse_type(const char *text, enum auditline_type *ret, struct err *e)
{
	cleanup_buf struct buf all;
	const char *nearest;

	buf_init(&all, BUF_TEXT_MAX_BYTES);
	if (find_type(text, ret))
		return 0;
	nearest = suggest_nearest(text, type_words, COUNT_OF(type_words));
	if (nearest)
		return err_set(e, ERR_INVALID, "no event is a '%s', did you mean '%s'?", text,
			       nearest);
	for (size_t i = 0; i < COUNT_OF(type_words); i++)
		buf_addf(&all, "%s%s", i ? ", " : "", type_words[i]);
	return err_set(e, ERR_INVALID, "no event is a '%s' (%s)", text, buf_text(&all));
}

/* ---- writing ---- */

static bool is_c1(const char *text, size_t left)
{
	return left > 1 && text[0] == (char)0xc2 && (unsigned char)text[1] < 0xa0;
}

/* Returns the input bytes of the character at `text`; *ret_written gets its bytes in the line. */
static size_t measure_character(const char *text, size_t left, size_t *ret_written)
{
	unsigned char c = (unsigned char)text[0];
	size_t len = shown_utf8_len(text, left);

	if (len == 0) {
		*ret_written = 3; /* U+FFFD */
		return 1;
	}
	*ret_written = len;
	if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
		*ret_written = 2;
	else if (c < ' ' || c == 0x7f || is_c1(text, left))
		*ret_written = 6;
	return len;
}

static size_t measure(const char *text, size_t len)
{
	size_t total = 0, written;

	for (size_t i = 0; i < len; total += written)
		i += measure_character(text + i, len - i, &written);
	return total;
}

/* Number of leading bytes of `text` that take at most `budget` in the line. */
static size_t find_head(const char *text, size_t len, size_t budget)
{
	size_t at = 0, written;

	while (at < len) {
		size_t n = measure_character(text + at, len - at, &written);

		if (written > budget)
			break;
		budget -= written;
		at += n;
	}
	return at;
}

/* Offset of the tail of `text` that takes at most `budget`; `total` is the size of all of it. */
static size_t find_tail(const char *text, size_t len, size_t total, size_t budget)
{
	size_t at = 0, written;

	while (at < len && total > budget) {
		at += measure_character(text + at, len - at, &written);
		total -= written;
	}
	return at;
}

static void add_text(struct json *j, const char *key, const char *text, size_t budget, bool *is_cut)
{
	cleanup_buf struct buf shorter;
	size_t len = strlen(text), total = measure(text, len);
	size_t head, tail;

	buf_init(&shorter, AUDITLINE_MAX_BYTES);
	if (total <= budget) {
		json_add_text(j, key, text);
		return;
	}
	*is_cut = true;
	head = find_head(text, len, (budget - MARK_MAX_BYTES) / 2);
	tail = find_tail(text, len, total, (budget - MARK_MAX_BYTES) / 2);
	buf_add(&shorter, text, head);
	buf_addf(&shorter, "...[%zu bytes left out]...", tail - head);
	buf_add_text(&shorter, text + tail);
	json_add_text(j, key, buf_text(&shorter));
}

/* Size of a word in an array, limited to `max`. */
static size_t measure_word(const char *word, size_t max)
{
	/* lists are NULL-terminated; NOLINTNEXTLINE(*NonNullParamChecker) */
	size_t total = measure(word, strlen(word));

	return (total < max ? total : max) + WORD_FRAME_BYTES;
}

/* A word gets at most a third of the budget, so the first and the last always fit. */
static void add_words(struct json *j, char *const *argv, size_t budget, bool *is_cut)
{
	size_t max = budget / 3 - WORD_FRAME_BYTES - MARK_MAX_BYTES / 2;
	size_t count = 0, total = 0, head = 0, tail, left;
	cleanup_buf struct buf mark;

	buf_init(&mark, MARK_MAX_BYTES);
	for (; argv[count]; count++)
		total += measure_word(argv[count], max);
	tail = count;
	if (total <= budget) {
		head = count;
	} else {
		left = budget * 2 / 3 - MARK_MAX_BYTES;
		for (; measure_word(argv[head], max) <= left; head++)
			left -= measure_word(argv[head], max);
		left = budget / 3;
		for (; measure_word(argv[tail - 1], max) <= left; tail--)
			left -= measure_word(argv[tail - 1], max);
		*is_cut = true;
		buf_addf(&mark, "...[%zu words left out]...", tail - head);
	}
	json_open_array(j, "argv");
	for (size_t i = 0; i < head; i++)
		add_text(j, NULL, argv[i], max, is_cut);
	if (head < tail)
		json_add_text(j, NULL, buf_text(&mark));
	for (size_t i = tail; i < count; i++)
		add_text(j, NULL, argv[i], max, is_cut);
	json_close_array(j);
}

/* The bytes left for `what` or `argv` after all other texts. */
static size_t find_budget(const struct auditline *a)
{
	const struct {
		const char *text;
		size_t max;
	} others[] = {
		{ a->program, PROGRAM_MAX_BYTES }, { a->sandbox, SANDBOX_MAX_BYTES },
		{ a->id, ID_MAX_BYTES },           { a->owner, OWNER_MAX_BYTES },
		{ a->result, RESULT_MAX_BYTES },   { a->detail, DETAIL_MAX_BYTES },
	};
	size_t budget = AUDITLINE_MAX_BYTES - FRAME_BYTES;

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		size_t total = others[i].text ? measure(others[i].text, strlen(others[i].text)) : 0;

		budget -= total < others[i].max ? total : others[i].max;
	}
	return budget;
}

void auditline_format(const struct auditline *a, struct buf *out)
{
	char time[TIMESTAMP_TEXT_MAX_BYTES];
	size_t budget = find_budget(a);
	size_t before = out->len;
	bool is_cut = a->is_cut;
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_text(&j, "time", timestamp_format(a->time_ms, time));
	json_add_number(&j, "uid", a->uid);
	json_add_number(&j, "pid", a->pid);
	add_text(&j, "program", a->program, PROGRAM_MAX_BYTES, &is_cut);
	if (a->sandbox)
		add_text(&j, "sandbox", a->sandbox, SANDBOX_MAX_BYTES, &is_cut);
	if (a->id)
		add_text(&j, "id", a->id, ID_MAX_BYTES, &is_cut);
	if (a->owner)
		add_text(&j, "owner", a->owner, OWNER_MAX_BYTES, &is_cut);
	json_add_text(&j, "type", type_words[a->type]);
	if (a->argv)
		add_words(&j, a->argv, budget, &is_cut);
	else if (a->what)
		add_text(&j, "what", a->what, budget, &is_cut);
	add_text(&j, "result", a->result, RESULT_MAX_BYTES, &is_cut);
	if (a->detail)
		add_text(&j, "detail", a->detail, DETAIL_MAX_BYTES, &is_cut);
	if (is_cut)
		json_add_bool(&j, "cut", true);
	json_close_object(&j);
	buf_add_text(out, "\n");
	assert(out->len - before <= AUDITLINE_MAX_BYTES);
}

/* ---- reading ---- */

struct reader {
	const char *at;
	const char *end;
	char *out; /* never after `at` */
};

static bool take(struct reader *r, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0)
		return false;
	r->at += len;
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes the escape after a backslash, as json.c writes it: 1 byte, or 2 for U+0080 to U+009F. */
static bool take_escape(struct reader *r, char ret[2], size_t *ret_len)
{
	static const char from[] = "\"\\nrt", to[] = "\"\\\n\r\t";
	const char *known;
	int high, low;

	if (r->at == r->end)
		return false;
	known = *r->at ? strchr(from, *r->at) : NULL;
	*ret_len = 1;
	if (known) {
		r->at++;
		*ret = to[known - from];
		return true;
	}
	if (!take(r, "u00") || r->end - r->at < 2)
		return false;
	high = hex_digit(r->at[0]);
	low = hex_digit(r->at[1]);
	r->at += 2;
	if (high < 0 || low < 0)
		return false;
	if (high == 8 || high == 9) {
		ret[0] = (char)0xc2;
		ret[1] = (char)(high << 4 | low);
		*ret_len = 2;
		return true;
	}
	*ret = (char)(high << 4 | low);
	return (*ret > 0 && *ret < ' ' && !strchr("\n\r\t", *ret)) || *ret == 0x7f;
}

static bool take_text(struct reader *r, char **ret)
{
	*ret = r->out;
	if (!take(r, "\""))
		return false;
	while (r->at < r->end && *r->at != '"') {
		size_t len = shown_utf8_len(r->at, (size_t)(r->end - r->at));
		char c[2];

		if (take(r, "\\")) {
			if (!take_escape(r, c, &len))
				return false;
			memcpy(r->out, c, len);
			r->out += len;
			continue;
		}
		if (len == 0 || is_c1(r->at, len) || (unsigned char)*r->at < ' ' || *r->at == 0x7f)
			return false;
		memmove(r->out, r->at, len);
		r->out += len;
		r->at += len;
	}
	if (!take(r, "\""))
		return false;
	*r->out++ = '\0';
	return true;
}

static bool take_number(struct reader *r, uint32_t *ret)
{
	const char *start = r->at;
	uint64_t value = 0;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= UINT32_MAX)
		value = value * 10 + (uint64_t)(*r->at++ - '0');
	*ret = (uint32_t)value;
	return r->at > start && value <= UINT32_MAX && (*start != '0' || r->at == start + 1);
}

static bool take_time(struct reader *r, uint64_t *ret)
{
	char again[TIMESTAMP_TEXT_MAX_BYTES];
	char *text = NULL;

	return take_text(r, &text) && timestamp_parse(text, ret) &&
	       strcmp(timestamp_format(*ret, again), text) == 0;
}

static bool take_type(struct reader *r, enum auditline_type *ret)
{
	char *text = NULL;

	return take_text(r, &text) && find_type(text, ret);
}

static bool take_words(struct reader *r, char **words)
{
	unsigned count = 0;

	while (!take(r, "]")) {
		if (count + 1 == AUDITLINE_WORDS_MAX || (count > 0 && !take(r, ",")) ||
		    !take_text(r, &words[count]))
			return false;
		count++;
	}
	words[count] = NULL;
	return true;
}

static bool take_subject(struct reader *r, char **words, struct auditline *ret)
{
	char *what = NULL;

	if (take(r, ",\"argv\":[")) {
		ret->argv = words;
		return take_words(r, words);
	}
	if (take(r, ",\"what\":") && !take_text(r, &what))
		return false;
	ret->what = what;
	return true;
}

/* Reads a text that may be missing. */
static bool take_optional(struct reader *r, const char *key, const char **ret)
{
	char *text = NULL;

	if (take(r, key) && !take_text(r, &text))
		return false;
	*ret = text;
	return true;
}

bool auditline_parse(char *line, size_t len, char *words[AUDITLINE_WORDS_MAX],
		     struct auditline *ret)
{
	struct reader r = { .at = line, .end = line + len, .out = line };
	char *program = NULL, *result = NULL;

	*ret = (struct auditline){ 0 };
	if (len >= AUDITLINE_MAX_BYTES || !take(&r, "{\"time\":") ||
	    !take_time(&r, &ret->time_ms) || !take(&r, ",\"uid\":") ||
	    !take_number(&r, &ret->uid) || !take(&r, ",\"pid\":") || !take_number(&r, &ret->pid) ||
	    !take(&r, ",\"program\":") || !take_text(&r, &program) ||
	    !take_optional(&r, ",\"sandbox\":", &ret->sandbox) ||
	    !take_optional(&r, ",\"id\":", &ret->id) ||
	    !take_optional(&r, ",\"owner\":", &ret->owner) || !take(&r, ",\"type\":") ||
	    !take_type(&r, &ret->type) || !take_subject(&r, words, ret) ||
	    !take(&r, ",\"result\":") || !take_text(&r, &result) ||
	    !take_optional(&r, ",\"detail\":", &ret->detail))
		return false;
	ret->program = program;
	ret->result = result;
	ret->is_cut = take(&r, ",\"cut\":true");
	return take(&r, "}") && r.at == r.end;
}
