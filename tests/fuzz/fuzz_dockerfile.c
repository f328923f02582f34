/*
 * fuzz_dockerfile - a Dockerfile, its words and their variables.
 *
 * An error names a place within the document and has no control characters. What is accepted is
 * within the maxima, and each of its words is expanded or refused with words.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "build/dockerfile.h"
#include "build/expand.h"

#include <string.h>

#define NAME "fuzz"

static const char *find(void *context, const char *name)
{
	const struct dockerfile *d = context;

	/* the document's own values, so that words grow */
	for (unsigned i = 0; i < d->count; i++)
		for (unsigned n = 0; n + 1 < d->list[i].word_count; n++)
			if (strcmp(d->list[i].words[n].text, name) == 0)
				return d->list[i].words[n + 1].text;
	return name[0] == 'A' ? "value with blanks" : NULL;
}

static void check_word(struct dockerfile *d, const char *text)
{
	for (unsigned flags = 0; flags <= (EXPAND_RAW | EXPAND_KEEP_UNSET | EXPAND_AS_IS);
	     flags++) {
		const struct expand x = { d->escape, flags, find, d };
		CLEANUP(keyrows_list_free) char **words = NULL;
		cleanup_free char *result = NULL;
		struct err e = { 0 };

		if (expand_word(&x, text, &result, &e) < 0)
			FUZZ_CHECK(e.code == ERR_INVALID || e.code == ERR_LIMIT);
		else
			FUZZ_CHECK(strlen(result) <= EXPAND_RESULT_MAX_BYTES);
		if (expand_words(&x, text, &words, &e) == 0)
			for (char **word = words; *word; word++)
				FUZZ_CHECK((*word)[0]);
	}
}

static void check_instruction(struct dockerfile *d, const struct dockerfile_instruction *i,
			      unsigned lines)
{
	FUZZ_CHECK(i->line >= 1 && i->line <= i->end_line && i->end_line <= lines);
	FUZZ_CHECK(i->column >= 1 && i->words_column >= i->column);
	FUZZ_CHECK(i->word_count <= DOCKERFILE_WORDS_MAX);
	FUZZ_CHECK(i->heredoc_count <= DOCKERFILE_HEREDOCS_MAX);
	for (unsigned n = 0; n < i->word_count && n < 8; n++) {
		FUZZ_CHECK(i->words[n].text[i->words[n].len] == '\0');
		check_word(d, i->words[n].text);
	}
	for (unsigned n = 0; n < i->heredoc_count; n++)
		FUZZ_CHECK(i->heredocs[n].name[0] && i->heredocs[n].content);
}

static void check_refusal(const struct err *e, unsigned lines)
{
	unsigned line = 0, column = 0;

	FUZZ_CHECK(e->code == ERR_INVALID || e->code == ERR_LIMIT);
	if (e->code == ERR_INVALID) {
		FUZZ_CHECK(sscanf(e->msg, NAME ":%u:%u: ", &line, &column) == 2);
		FUZZ_CHECK(line >= 1 && line <= lines && column >= 1);
	}
	for (const char *p = e->msg; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(dockerfile_done) struct dockerfile d = { 0 };
	struct err e = { 0 };
	unsigned lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (dockerfile_parse(NAME, (const char *)data, size, &d, &e) < 0) {
		check_refusal(&e, lines);
		return 0;
	}
	FUZZ_CHECK(d.count > 0 && d.count <= DOCKERFILE_INSTRUCTIONS_MAX);
	for (unsigned i = 0; i < d.count; i++) {
		check_instruction(&d, &d.list[i], lines);
		if (d.list[i].sub && d.list[i].sub->end_line == 0)
			d.list[i].sub->end_line = d.list[i].end_line;
		if (d.list[i].sub)
			check_instruction(&d, d.list[i].sub, lines);
	}
	return 0;
}
