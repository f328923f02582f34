#pragma once
/*
 * gitrepos - the git repositories in a directory, wherever git would find one.
 *
 * git takes a directory for a working tree if it holds ".git", and for a repository if it holds
 * HEAD, objects and refs (or commondir instead of the two); that is how it finds bare repositories,
 * submodules' and worktrees' directories, and those of --separate-git-dir. So every directory is
 * looked at, at a few microseconds each, those in repositories too: nothing that a directory holds
 * keeps us from looking further. Where the file system counts links to directories, those that hold
 * no other are not listed. Only what lies at a path longer than PATH_MAX is left out, which
 * no program can name from the top either.
 *
 * Hostile: all names, and somebody who changes them meanwhile. No link is followed.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define GITREPOS_DIRS_MAX 4000000u            /* directories that are looked at */
#define GITREPOS_NAMES_MAX_BYTES (256u << 20) /* of the directories in one directory */

enum gitrepos_kind {
	GITREPOS_TREE,       /* a working tree: holds ".git" */
	GITREPOS_REPOSITORY, /* a git directory */
};

struct gitrepos_entry {
	enum gitrepos_kind kind;
	const char *path;   /* relative to the top; "" is the top itself */
	int dir_fd;         /* of it, borrowed */
	unsigned char type; /* GITREPOS_TREE: what ".git" is, as d_type */
};

typedef int gitrepos_fn(void *context, const struct gitrepos_entry *entry, struct err *e);

struct gitrepos_result {
	bool is_cut;     /* there are more directories than the maxima */
	bool was_denied; /* one could not be read */
};

/*
 * Parents before children; the directory at the path `skipped`, if any, is left out. Fails only
 * where `fn` does, or where nothing can be opened any more.
 */
ERR_CHECKED int gitrepos_find(int dir_fd, const char *skipped, gitrepos_fn *fn, void *context,
			      struct gitrepos_result *ret, struct err *e);
