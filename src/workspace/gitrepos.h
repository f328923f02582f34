#pragma once
/*
 * gitrepos - finds the git repositories in a directory, wherever git would find one.
 *
 * git accepts a directory as a working tree if it contains ".git", and as a repository if it
 * contains HEAD, objects and refs (or commondir instead of the latter two); this includes bare
 * repositories, the directories of submodules and worktrees, and those of --separate-git-dir. So
 * the walk visits every directory, also those inside repositories, at a few microseconds each. If
 * the file system counts subdirectories in st_nlink, directories without any are not listed. Only
 * paths longer than PATH_MAX are skipped, which no program can name from the top either.
 *
 * Hostile input: all names, and processes that change them meanwhile. No link is followed.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define GITREPOS_DIRS_MAX 4000000u            /* directories visited */
#define GITREPOS_NAMES_MAX_BYTES (256u << 20) /* of the subdirectories of one directory */

enum gitrepos_kind {
	GITREPOS_TREE,       /* a working tree: contains ".git" */
	GITREPOS_REPOSITORY, /* a git directory */
};

struct gitrepos_entry {
	enum gitrepos_kind kind;
	const char *path;   /* relative to the top; "" is the top itself */
	int dir_fd;         /* the directory, borrowed */
	unsigned char type; /* GITREPOS_TREE: the d_type of ".git" */
};

typedef int gitrepos_fn(void *context, const struct gitrepos_entry *entry, struct err *e);

struct gitrepos_result {
	bool is_cut;     /* there are more directories than the maximum */
	bool was_denied; /* a directory could not be read */
};

/*
 * Calls `fn` for parents before children; skips the directory at the path `skipped`, if any. Fails
 * only if `fn` fails or no descriptor can be opened.
 */
ERR_CHECKED int gitrepos_find(int dir_fd, const char *skipped, gitrepos_fn *fn, void *context,
			      struct gitrepos_result *ret, struct err *e);
