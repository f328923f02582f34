#pragma once
/*
 * gitlinks - parses git's files that refer to other directories.
 *
 * Only reads them, runs nothing. Hostile input: all of them, since a project brings its own. A
 * repository outside a directory is accepted as belonging to it only if it refers back to the
 * directory; git always writes both references together.
 */
#include "base/err.h"

#define GITLINKS_FILE_MAX_BYTES (256u << 10)

/*
 * Returns the path in a ".git" file, which the caller frees; NULL if ".git" is not such a file. The
 * path may contain ".." and links, so open it from dir_fd and let the kernel resolve it.
 */
char *gitlinks_read_git_file(int dir_fd);

/* Returns the path in a git directory's "commondir" file, likewise. */
char *gitlinks_read_commondir(int git_fd);

/*
 * If `dir` is a linked worktree of a repository outside, sets *ret_path to the repository's git
 * directory (absolute, the caller frees it) and *ret_fd to a descriptor of it (the caller closes
 * it). Otherwise both stay unchanged.
 */
void gitlinks_find_outside(int dir_fd, const char *dir, char **ret_path, int *ret_fd);
