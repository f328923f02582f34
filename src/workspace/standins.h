#pragma once
/*
 * standins - placeholders for protected names that do not exist (--protect-new strict).
 *
 * An empty directory, or for git's own files a file without effect, occupies the name while a
 * sandbox runs, so that nobody inside can create it, and is removed afterwards. A lock shows
 * whether another sandbox still uses it; the next sandbox removes one that a crash left behind.
 */
#include "base/err.h"

struct standin {
	int parent_fd, fd;
	char *name;
	const char *text; /* content of a file; NULL: a directory */
};

struct standins {
	struct standin *rows;
	unsigned count;
};

/*
 * Adds a placeholder for base_fd/name with content `text` (NULL: a directory); `base` is for
 * messages. Returns 1: created or shared; 0: the name exists, or nobody inside can create it; -1:
 * failed.
 */
ERR_CHECKED int standins_add(struct standins *s, int base_fd, const char *base, const char *name,
			     const char *text, struct err *e);
void standins_done(struct standins *s); /* may run twice, and on a zeroed struct */
