/* habits - accepts words of docker, podman and shells; see habits.h. */
#include "cli/habits.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "ops/pickimage.h"
#include "image/reference.h"

#include <stdint.h>
#include <string.h>

/* A first word, or the word after the name of a group. */
static const struct {
	const char *word;
	const char *ours[2]; /* one or two words; NULL: no equivalent */
	const char *instead; /* what to do if there is no equivalent */
} habits[] = {
	{ "ls", { "list" }, NULL },
	{ "rm", { "remove" }, NULL },
	{ "images", { "image", "list" }, NULL },
	{ "pull", { "image", "pull" }, NULL },
	{ "rmi", { "image", "remove" }, NULL },
	{ "load", { "image", "load" }, NULL },
	{ "save", { "image", "save" }, NULL },
	{ "import", { "image", "import" }, NULL },
	{ "inspect", { "info" }, NULL },
	{ "shell", { "exec" }, NULL },
	{ "top", { "ps" }, NULL },
	{ "push", { "image", "push" }, NULL },
	{ "rename",
	  { NULL },
	  "'agentkernel fork NAME NEW' makes a copy with the new name; remove the old one then" },
	{ "login",
	  { NULL },
	  "agentkernel uses the credentials of docker: 'docker login' or 'podman login'" },
	{ "compose", { NULL }, "create each sandbox with 'agentkernel create NAME'" },
};

static size_t count_words(char **argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	return count;
}

/* Copies argv with its first word replaced by one or two of ours. */
static char **replace_first(char **argv, const char *first, const char *second)
{
	size_t count = count_words(argv), at = 0;
	char **words = mem_alloc((count + 2) * sizeof(*words));

	words[at++] = (char *)(uintptr_t)first;
	if (second)
		words[at++] = (char *)(uintptr_t)second;
	memcpy(words + at, argv + 1, count * sizeof(*words));
	return words;
}

int habits_translate(char **argv, char ***ret, struct err *e)
{
	static const char *const groups[] = { "sandbox", "image", "checkpoint", "agent", "plugin" };

	*ret = NULL;
	for (size_t i = 0; argv[0] && i < COUNT_OF(habits); i++) {
		if (strcmp(argv[0], habits[i].word) != 0)
			continue;
		if (!habits[i].ours[0])
			return err_set(e, ERR_UNSUPPORTED, "unknown command '%s': %s", argv[0],
				       habits[i].instead);
		*ret = replace_first(argv, habits[i].ours[0], habits[i].ours[1]);
		return 0;
	}
	/* "image ls", "sandbox rm" */
	for (size_t i = 0; argv[0] && argv[1] && i < COUNT_OF(groups); i++) {
		if (strcmp(argv[0], groups[i]) != 0 ||
		    (strcmp(argv[1], "ls") != 0 && strcmp(argv[1], "rm") != 0))
			continue;
		*ret = mem_alloc((count_words(argv) + 1) * sizeof(**ret));
		memcpy(*ret, argv, (count_words(argv) + 1) * sizeof(**ret));
		(*ret)[1] = (char *)(uintptr_t)(argv[1][0] == 'l' ? "list" : "remove");
	}
	return 0;
}

bool habits_is_image(const char *word)
{
	struct reference ref;
	struct err ignored;

	if (word[0] == '/' || word[0] == '.' || reference_parse(word, &ref, &ignored) < 0)
		return false;
	return strchr(word, ':') || strchr(word, '/') || !pickimage_is_on_host(word);
}
