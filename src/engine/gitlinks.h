#pragma once
/*
 * gitlinks - where else git looks when it works in a directory: its submodules, its linked
 * worktrees, and, for a directory that is such a worktree itself, the repository it belongs to.
 *
 * Reads git's own files and runs nothing. Hostile: all of them, a project brings its own. What they
 * say is believed only where it does harm to nobody: a directory inside is one more to protect; a
 * repository outside has to name the directory in return, as git writes both at once.
 */
#include "base/err.h"

#define GITLINKS_DIRS_MAX 128u  /* submodules, and worktrees below the directory */
#define GITLINKS_ADMIN_MAX 256u /* linked worktrees that the repository knows */
#define GITLINKS_FILE_MAX_BYTES (256u << 10)

struct gitlinks {
	char **dirs;   /* submodules and worktrees, relative to the directory; NULL-ended or NULL */
	char **admin;  /* "worktrees/NAME", relative to the git directory; as above */
	char *outside; /* the git directory, where that is outside; absolute. NULL: it is not */
	int outside_fd; /* the directory that was found there; -1: none */
};

/* Of dir_fd, which was found at `dir`. ERR_LIMIT when there are more than can be protected. */
ERR_CHECKED int gitlinks_read(int dir_fd, const char *dir, struct gitlinks *ret, struct err *e);
void gitlinks_done(struct gitlinks *g); /* may run twice */
