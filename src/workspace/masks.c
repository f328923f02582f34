/*
 * masks - finds the names in a workspace that match --mask's patterns; see masks.h.
 *
 * Hostile input: every name below. No link is followed.
 */
#include "workspace/masks.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

struct search {
	masks_fn *fn;
	void *context;
	const char *path; /* of the directory, for messages */
	unsigned looked_at, found;
};

static int search_dir(struct search *s, int dir_fd, const char *below, const char *pattern,
		      unsigned depth, struct err *e);

static int found(struct search *s, const char *below, const char *name, struct err *e)
{
	cleanup_free char *path = mem_format("%s%s%s", below, below[0] ? "/" : "", name);

	if (++s->found > MASKS_FOUND_MAX)
		return err_set(e, ERR_LIMIT, "masks match more than %u names", MASKS_FOUND_MAX);
	return s->fn(s->context, path, e);
}

static int descend(struct search *s, int dir_fd, const char *below, const char *name,
		   const char *pattern, unsigned depth, struct err *e)
{
	cleanup_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_free char *path = mem_format("%s%s%s", below, below[0] ? "/" : "", name);

	if (fd < 0)
		return file_is_absence(-errno) ? 0 : err_sys(e, errno, "look into '%s'", path);
	if (depth == MASKS_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "'%s' lies deeper than %u directories (say where)",
			       path, MASKS_DEPTH_MAX);
	return search_dir(s, fd, path, pattern, depth + 1, e);
}

/* `first` is the pattern's first component, `rest` the components after it or NULL. */
static int match_name(struct search *s, int dir_fd, const char *below, const char *name,
		      const char *pattern, const char *first, const char *rest, unsigned depth,
		      struct err *e)
{
	if (++s->looked_at > MASKS_LOOKED_AT_MAX)
		return err_set(e, ERR_LIMIT,
			       "a mask with ** would look at more than %u names (say where)",
			       MASKS_LOOKED_AT_MAX);
	if (strcmp(first, "**") == 0) {
		if (strcmp(name, ".git") == 0)
			return 0;
		/* at the end of a pattern it matches everything */
		return rest ? descend(s, dir_fd, below, name, pattern, depth, e)
			    : found(s, below, name, e);
	}
	if (fnmatch(first, name, FNM_PERIOD * (first[0] != '.')) != 0)
		return 0;
	if (!rest)
		return found(s, below, name, e);
	return descend(s, dir_fd, below, name, rest, depth, e);
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static int search_dir(struct search *s, int dir_fd, const char *below, const char *pattern,
		      unsigned depth, struct err *e)
{
	size_t len = strcspn(pattern, "/");
	cleanup_free char *first = mem_dup_bytes(pattern, len);
	const char *rest = pattern[len] ? pattern + len + 1 : NULL;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close_dir) DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	/* fail: names that were not checked would not be masked */
	if (!entries)
		return err_sys(e, errno, "look into '%s/%s'", s->path, below);
	/* "**" also matches zero directories */
	if (strcmp(first, "**") == 0 && rest && search_dir(s, dir_fd, below, rest, depth, e) < 0)
		return -1;
	while ((errno = 0, entry = readdir(entries))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (match_name(s, dir_fd, below, name, pattern, first, rest, depth, e) < 0)
			return -1;
	}
	return errno != 0 ? err_sys(e, errno, "look into '%s/%s'", s->path, below) : 0;
}

int masks_find(int dir_fd, const char *path, const struct policy *p, masks_fn *fn, void *context,
	       struct err *e)
{
	struct search s = { .fn = fn, .context = context, .path = path };
	cleanup_fd int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (p->mask && list_fd < 0)
		return err_sys(e, errno, "read '%s'", path);
	for (char *const *pattern = p->mask; pattern && *pattern; pattern++)
		if (search_dir(&s, list_fd, "", *pattern, 0, e) < 0)
			return err_wrap(e, "%s '%s'", p->origin[POLICY_MASK].text, *pattern);
	return 0;
}
