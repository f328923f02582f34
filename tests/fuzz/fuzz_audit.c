/*
 * fuzz_audit - lines of the audit log, and events with arbitrary bytes.
 *
 * The first byte of an input selects how the rest is used. Even: it is a line. An accepted one must
 * be written again unchanged. Odd: it is an event, texts between NULs, whose line must be bounded,
 * a single line, and accepted by the reader.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "state/auditline.h"

#include <string.h>

#define TEXTS_MAX 512

static void check_line(const uint8_t *data, size_t size)
{
	cleanup_free char *line = mem_dup_bytes((const char *)data, size);
	char *words[AUDITLINE_WORDS_MAX];
	cleanup_buf struct buf again;
	struct auditline a;

	buf_init(&again, AUDITLINE_MAX_BYTES);
	if (!auditline_parse(line, size, words, &a))
		return;
	auditline_format(&a, &again);
	FUZZ_CHECK(!again.is_cut && again.bytes[again.len - 1] == '\n');
	/* a line longer than the writer's maximum is cut again */
	if (again.len == size + 1)
		FUZZ_CHECK(memcmp(again.bytes, data, size) == 0);
	else
		FUZZ_CHECK(a.is_cut || strstr(again.bytes, "\"cut\":true"));
}

static void check_event(const uint8_t *data, size_t size)
{
	cleanup_free char *bytes = mem_dup_bytes((const char *)data, size);
	char *texts[TEXTS_MAX + 1], *words[AUDITLINE_WORDS_MAX];
	unsigned count = 0;
	cleanup_buf struct buf line;
	struct auditline a = { .program = "", .result = AUDITLINE_RESULT_OK }, back;

	for (size_t at = 0; at < size && count < TEXTS_MAX; at += strlen(bytes + at) + 1)
		texts[count++] = bytes + at;
	texts[count] = NULL;
	a.type = (enum auditline_type)(size % AUDITLINE_TYPE_COUNT);
	a.time_ms = size * 1234567891ull;
	if (count > 0)
		a.program = texts[0];
	if (count > 1)
		a.sandbox = a.id = a.owner = texts[1];
	if (count > 2)
		a.result = texts[2];
	if (count > 3)
		a.detail = texts[3];
	if (count > 4 && size % 2)
		a.what = texts[4];
	else if (count > 4)
		a.argv = texts + 4;
	buf_init(&line, AUDITLINE_MAX_BYTES);
	auditline_format(&a, &line);
	FUZZ_CHECK(!line.is_cut && line.len <= AUDITLINE_MAX_BYTES);
	FUZZ_CHECK(memchr(line.bytes, '\n', line.len) == line.bytes + line.len - 1);
	FUZZ_CHECK(auditline_parse(line.bytes, line.len - 1, words, &back));
	FUZZ_CHECK(back.time_ms == a.time_ms && back.type == a.type);
	FUZZ_CHECK((back.argv != NULL) == (a.argv != NULL) &&
		   (back.what != NULL) == (a.what != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] & 1)
		check_event(data + 1, size - 1);
	else
		check_line(data + 1, size - 1);
	return 0;
}
