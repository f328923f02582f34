/* ignore - .dockerignore; see ignore.h. */
#include "build/ignore.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "build/glob.h"

#include <string.h>

struct pattern {
	struct glob *glob;
	bool is_exception;
};

struct ignore {
	struct pattern *list;
	unsigned count;
	bool has_exceptions;
};

void ignore_free(struct ignore *i)
{
	for (unsigned n = 0; i && n < i->count; n++)
		glob_free(i->list[n].glob);
	if (i)
		free(i->list);
	free(i);
}

static void ignore_freep(struct ignore **i)
{
	ignore_free(*i);
}

/* "./a//b/" is "a/b"; what climbs out of the context matches nothing. */
static char *clean(const char *text)
{
	cleanup_free char *absolute = path_absolute("/", text);

	return mem_dup(absolute ? absolute + 1 : "");
}

static int add_line(struct ignore *i, const char *text, struct err *e)
{
	cleanup_free char *pattern = NULL;
	bool is_exception = text[0] == '!';

	text += is_exception;
	text += strspn(text, " \t");
	pattern = clean(text);
	if (!pattern[0])
		return 0;
	if (i->count == IGNORE_PATTERNS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u patterns", IGNORE_PATTERNS_MAX);
	i->list = mem_grow(i->list, i->count + 1, sizeof(*i->list));
	i->list[i->count] = (struct pattern){ NULL, is_exception };
	if (glob_compile(pattern, GLOB_DEEP, &i->list[i->count].glob, e) < 0)
		return -1;
	i->count++;
	i->has_exceptions = i->has_exceptions || is_exception;
	return 0;
}

int ignore_parse(const char *name, const char *text, size_t len, struct ignore **ret, struct err *e)
{
	CLEANUP(ignore_freep) struct ignore *i = mem_alloc(sizeof(*i));
	cleanup_free char *copy = mem_dup_bytes(text, len);
	char *save = copy, *line;
	unsigned number = 0;

	if (len >= 3 && memcmp(copy, "\xef\xbb\xbf", 3) == 0)
		save += 3;
	while ((line = strsep(&save, "\n"))) {
		size_t end = strlen(line);

		number++;
		while (end > 0 && strchr(" \t\r", line[end - 1]))
			line[--end] = '\0';
		if (line[0] == '#')
			continue;
		line += strspn(line, " \t");
		if (add_line(i, line, e) < 0)
			return err_wrap(e, "%s:%u", name, number);
	}
	*ret = take_ptr(i);
	return 0;
}

/* Matches the path, or a directory that it is in. */
static bool matches(const struct glob *g, const char *path)
{
	cleanup_free char *part = mem_dup(path);

	for (;;) {
		char *slash;

		if (glob_match(g, part))
			return true;
		slash = strrchr(part, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

bool ignore_has(const struct ignore *i, const char *path)
{
	bool is_ignored = false;

	for (unsigned n = 0; i && n < i->count; n++)
		if (i->list[n].is_exception == is_ignored && matches(i->list[n].glob, path))
			is_ignored = !i->list[n].is_exception;
	return is_ignored;
}

bool ignore_has_exceptions(const struct ignore *i)
{
	return i && i->has_exceptions;
}
