#pragma once
/*
 * gitlinks - files of git's that say where else something lies.
 *
 * Reads them and runs nothing. Hostile: all of them, a project brings its own. A repository outside
 * of a directory is believed to belong to it only if it names the directory in return, as git
 * writes both at once.
 */
#include "base/err.h"

#define GITLINKS_FILE_MAX_BYTES (256u << 10)

/*
 * Where a ".git" that is a file leads, as it says, the caller's to free; NULL: it is no such file.
 * A path with ".." and links in it means what the kernel makes of it: it has to be opened from
 * dir_fd.
 */
char *gitlinks_read_git_file(int dir_fd);

/* Where a git directory has what it shares with others; as above. */
char *gitlinks_read_commondir(int git_fd);

/*
 * `dir` is a linked worktree of a repository outside: its git directory, absolute, the caller's to
 * free, and a descriptor of it, to close. Left alone otherwise.
 */
void gitlinks_find_outside(int dir_fd, const char *dir, char **ret_path, int *ret_fd);
