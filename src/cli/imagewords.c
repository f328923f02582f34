/* imagewords - common parts of the `image` commands; see imagewords.h. */
#include "cli/imagewords.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "engine/imagehelper.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

static const struct opt rows[] = {
	IMAGEWORDS_JSON,
	IMAGEWORDS_QUIET,
};
const struct opts_table imagewords_options = { rows, COUNT_OF(rows) };

static void free_words(char ***words)
{
	for (char **word = *words; word && *word; word++)
		free(*word);
	free(*words);
}

/* The arguments of the operation. */
struct request {
	char *const *references; /* NULL-terminated */
	const char *file;        /* NULL: none */
};

static void add_words(char **words, const struct request *q, const struct imagewords_flags *flags)
{
	unsigned count = 0;

	for (char *const *r = q->references; *r; r++)
		words[count++] = mem_format("reference=%s", *r);
	if (q->file)
		words[count++] = mem_format("file=%s", q->file);
	if (flags->is_json)
		words[count++] = mem_dup("json=yes");
	if (flags->is_quiet)
		words[count++] = mem_dup("quiet=yes");
	if (flags->is_all)
		words[count++] = mem_dup("all=yes");
	if (flags->is_dry)
		words[count++] = mem_dup("dry=yes");
}

/*
 * Swaps the order of `docker import FILE REF`, if the first word is stdin or a file and the second
 * is no file: in our order it could only fail. Docker does not import directories, so a first word
 * that is one may well be the name of an image.
 */
static int swap_dockers_order(char **words, struct err *e)
{
	char *first = words[0];
	bool is_stdin = strcmp(first, "-") == 0;
	struct stat st;

	if (strcmp(words[1], "-") == 0 || stat(words[1], &st) == 0)
		return 0;
	if (!is_stdin && stat(first, &st) < 0)
		return 0;
	if (!is_stdin && S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID,
			       "there is no file '%s', but a directory '%s': the name of the image "
			       "comes first (agentkernel image import REF DIR)",
			       words[1], first);
	words[0] = words[1];
	words[1] = first;
	return 0;
}

/* Only references stay in `words`. */
static void sort_out(enum imagewords_shape shape, const struct imagewords_flags *flags,
		     char **words, unsigned count, struct request *q)
{
	switch (shape) {
	case IMAGEWORDS_NOTHING:
	case IMAGEWORDS_REFERENCES:
		break;
	case IMAGEWORDS_REFERENCE_FILE:
	case IMAGEWORDS_REFERENCES_FILE:
		assert(count > 0); /* the shape was checked */
		q->file = words[count - 1];
		words[count - 1] = NULL;
		break;
	case IMAGEWORDS_FILE:
		q->file = count ? words[0] : "-";
		words[0] = (char *)(uintptr_t)flags->name;
		words[1] = NULL;
		break;
	}
	q->references = words;
}

int imagewords_run(const struct imagewords_command *c, const struct cli_context *context,
		   char **argv, int *ret_status, struct err *e)
{
	CLEANUP(free_words) char **asked = mem_alloc((IMAGEHELPER_WORDS_MAX + 1) * sizeof(*asked));
	const struct imagehelper_request request = {
		.operation = c->operation,
		.words = (const char *const *)asked,
		.ak = context->ak,
	};
	char *words[IMAGEWORDS_MAX];
	struct imagewords_flags flags = { 0 };
	struct request q = { 0 };
	unsigned count = 0;

	if (words_read(&c->rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	if (c->shape == IMAGEWORDS_REFERENCE_FILE && swap_dockers_order(words, e) < 0)
		return -1;
	sort_out(c->shape, &flags, words, count, &q);
	add_words(asked, &q, &flags);
	if (imagehelper_run(&request, e) < 0)
		return -1;
	*ret_status = 0;
	return 0;
}
