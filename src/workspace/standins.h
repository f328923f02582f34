#pragma once
/*
 * standins - placeholders for protected names that do not exist (--protect-new strict).
 *
 * An empty directory, or for git's own files a file that says nothing, occupies the name while a
 * sandbox runs, so that nobody inside can make it, and is removed afterwards. A lock tells whether
 * another sandbox still needs it; what a crash leaves is removed by whoever comes next.
 */
#include "base/err.h"

struct standin {
	int parent_fd, fd;
	char *name;
	const char *text; /* of a file; NULL: it is a directory */
};

struct standins {
	struct standin *rows;
	unsigned count;
};

/*
 * For base_fd/name; `base` is its path, for words. text: what the placeholder file says; NULL: it
 * is a directory. 1: placeholder made; 0: the name exists, or nobody inside can make it; -1:
 * failed.
 */
ERR_CHECKED int standins_add(struct standins *s, int base_fd, const char *base, const char *name,
			     const char *text, struct err *e);
void standins_done(struct standins *s); /* may run twice, and on a zeroed struct */
